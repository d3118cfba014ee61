# Runs one program after the other, whose input and output are lines: base64, because a
# session carries neither other bytes nor the end of an input. $1 is a directory of its
# own, $2 the working directory, which is created.
#
# It reads lines of a number, a letter and a text. The numbers grow: a line that arrives
# again is left out.
#   p TEXT  a piece of a program
#   r i     run the program, with its input
#   r n     run the program without input
#   i TEXT  a piece of its input
#   e       the end of its input
#   q       the end
# It prints the program's output, and as its last line on both streams "!end CODE".
d=$1
for t in base64 cat dd mkdir rm; do
	command -v $t >/dev/null 2>&1 || {
		echo "!missing $t"
		exit 1
	}
done
umask 022
mkdir -p "$2" 2>/dev/null
umask 077
mkdir -p "$d" || exit 1
trap 'rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM

# Passes the input on, until its end.
feed() {
	while read -r n op data; do
		[ "$n" -gt "$last" ] 2>/dev/null || continue
		last=$n
		case $op in
		i) printf %s "$data" | base64 -d ;;
		e) return ;;
		esac
	done
}

# Prints its input as lines. Of a program that was let go, nothing is printed any more.
pump() {
	while c=$(dd bs=32768 count=1 2>/dev/null | base64) && [ -n "$c" ]; do
		[ ! -e "$d/detached" ] || exec cat >/dev/null
		printf '%s\n' "$c"
	done
}

run() {
	{
		{
			{
				(
					umask 022
					trap - EXIT HUP INT TERM
					eval "$text"
				) 2>&3 3>&- 4>&-
				echo "$?" >"$d/code"
			} 2>/dev/null | pump 3>&- >&4 4>&-
		} 3>&1 | pump 4>&- >&2
	} 4>&1
	read -r code <"$d/code"
	printf '!end %s\n' "$code" >&2
	printf '!end %s\n' "$code"
}

last=0 text=
while read -r n op data; do
	[ "$n" -gt "$last" ] 2>/dev/null || continue
	last=$n
	case $op in
	p) text=$text$data ;;
	r)
		text=$(printf %s "$text" | base64 -d)
		case $data in
		i) feed | run ;;
		*) run </dev/null ;;
		esac
		text=
		;;
	q) break ;;
	esac
done
