# Starts the agent and prints its port. $1 is its path, $2 its size, $3 its SHA-256, $4 a
# new directory with the token, $5 the working directory, $6 the agent under another name
# if it was just sent.
p=$1 n=$2 h=$3 d=$4 w=$5 new=$6
check() {
	[ -f "$1" ] && ! [ -h "$1" ] && [ "$(wc -c <"$1")" -eq "$n" ] || return 1
	command -v sha256sum >/dev/null 2>&1 || return 0
	s=$(sha256sum <"$1") && [ "${s%% *}" = "$h" ]
}
if [ -n "$new" ]; then
	if ! check "$new"; then
		rm -rf "$new" "$d"
		echo damaged
		exit 0
	fi
	chmod 755 "$new" && mv -f "$new" "$p" || {
		rm -rf "$new" "$d"
		echo unwritable
		exit 0
	}
elif ! check "$p" || ! [ -x "$p" ]; then
	echo send
	exit 0
fi
(
	"$p" --listen "$d/token" --directory "$w" </dev/null >/dev/null 2>"$d/log"
	echo "$?" >"$d/exit"
	! [ -e "$d/up" ] || rm -rf "$d"
) </dev/null >/dev/null 2>&1 &
i=0
until [ -s "$d/token.port" ]; do
	i=$((i + 1))
	if [ -s "$d/exit" ]; then
		read -r code <"$d/exit"
		echo "failed $code"
		head -c 1000 "$d/log"
		rm -rf "$d"
		exit 0
	fi
	if [ $i -gt 500 ]; then
		echo late
		exit 0
	fi
	sleep 0.02 2>/dev/null || sleep 1
done
read -r port <"$d/token.port"
: >"$d/up"
echo "port $port"
