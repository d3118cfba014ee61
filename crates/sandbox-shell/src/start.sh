# Starts the worker $2, with the arguments that follow, as a session leader, so
# that it can be ended with everything it runs. $1 is a shell.
sh=$1 script=$2
shift 2
{ read -r s </proc/$$/stat; } 2>/dev/null
s=${s##*) } s=${s#* } s=${s#* } s=${s%% *}
if [ "$s" != $$ ] && command -v setsid >/dev/null 2>&1; then
	exec setsid "$sh" -c "$script" sh "$@"
fi
exec "$sh" -c "$script" sh "$@"
