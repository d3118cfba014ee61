# Runs a command and reports its exit status. $1 is a secret that starts each
# status line, to tell it from output; $2 is the directory; $3 is `k` to keep
# leftover processes running; $4 is `m` for one stream; $5 is the marker of its
# processes; $6 is the command; variables follow.
n=$1 keep=$3
nl='
'
cd -P "$2" 2>/dev/null || {
	printf '\036%s nodir\n' "$n"
	exit 0
}
shell=/bin/sh
rest=$PATH:
while [ -n "$rest" ]; do
	if [ -n "${rest%%:*}" ] && [ -x "${rest%%:*}/sh" ]; then
		shell=${rest%%:*}/sh
		break
	fi
	rest=${rest#*:}
done
# The innermost of three shells becomes the command. The shell around it has the
# command as a child and a separate standard error, where it reports a child that
# was ended by a signal. The exit code alone does not show that.
inner='
printf "\036%s start %s\n" "$1" "$$" >&3
echo "$$"
shell=$2 line=$5
[ "$3" = m ] && exec 2>&3 || exec 2>&4
exec >&3 3>&- 4>&-
mark=$4
shift 5
command -v setsid >/dev/null 2>&1 && exec setsid env "$mark" "$@" "$shell" -c -- "$line"
exec env "$mark" "$@" "$shell" -c -- "$line"'
outer='
exec 2>&1
trap : HUP INT TERM
inner=$1
shift
sh -c "$inner" sh "$@"
echo "$?"'
mode=$4 mark=$5 line=$6
shift 6
exec 3>&1 4>&2
said=$(sh -c "$outer" sh "$inner" "$n" "$shell" "$mode" "$mark" "$line" "$@")
exec 3>&- 4>&-
pid=${said%%"$nl"*}
said=${said#*"$nl"}
code=${said##*"$nl"}
how=exit
case $code in
# Shells do not report these two.
130 | 141) how=signal ;;
esac
[ "$said" = "$code" ] || how=signal

# Counts the processes of the command's group that are still alive.
count() {
	left=0
	for f in /proc/[0-9]*/stat; do
		{ read -r s <"$f"; } 2>/dev/null || continue
		s=${s##*) }
		set -- $s
		case $1 in Z | X) continue ;; esac
		[ "$3" != "$pid" ] || left=$((left + 1))
	done
}

pause() {
	sleep 0.03 2>/dev/null || sleep 1
}

left=0
if [ -n "$pid" ] && kill -0 "-$pid" 2>/dev/null; then
	count
	if [ $left != 0 ]; then
		# The last filter of a pipeline may still print.
		pause
		count
	fi
	if [ $left != 0 ] && [ "$keep" != k ]; then
		found=$left round=0
		kill -TERM "-$pid" 2>/dev/null
		while [ $round -lt 40 ]; do
			pause
			count
			[ $left != 0 ] || break
			round=$((round + 1))
			[ $round -lt 8 ] || kill -KILL "-$pid" 2>/dev/null
		done
		left=$found
	fi
fi
printf '\036%s end %s %s %s\n' "$n" "$how" "$code" "$left" >&2
printf '\036%s end %s %s %s\n' "$n" "$how" "$code" "$left"
