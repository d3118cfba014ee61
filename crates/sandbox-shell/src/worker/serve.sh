# Answering requests.

# Ends this shell, but no commands.
op_quit() {
	exit 0
}

printf '\036%s ready %s %s\n' "$1" $$ "${me%:*}"
owner_mark=$2
while IFS= read -r line; do
	eval "set -- $line"
	N=$1 op=$2 E=
	shift 2
	cd / && "op_$op" "$@"
	cd /
	printf '\036%s %s\n' "$N" "${E:-ok}"
done
# The host is gone, so its commands here are ended.
N= E=
op_kill '' "$owner_mark" 10 >/dev/null
