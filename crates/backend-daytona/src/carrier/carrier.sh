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
#   f NAME  a piece of its input: a file in its directory
#   e       the end of its input
#   q       the end
# It prints the program's output, and as its last line on both streams "!end CODE". If a
# piece of its input or output is missing, it prints "!lost input" or "!lost output" as an
# error.
# "!file NUMBER SIZE" stands for output: that of a file of its directory up to this size.
d=$1
for t in base64 cat chmod dd mkdir rm sleep wc; do
	command -v $t >/dev/null 2>&1 || {
		echo "!missing $t"
		exit 1
	}
done
umask 022
mkdir -p "$2" 2>/dev/null
umask 077
mkdir -p "$d" && chmod 700 "$d" || exit 1
trap 'rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM

# Passes the input on, until its end. A line that was sent again while the first was still
# being written may be mixed with it.
feed() {
	while read -r n op data; do
		[ "$n" -gt "$last" ] 2>/dev/null || continue
		case $op$data in
		e) return ;;
		*' '*) continue ;;
		i* | f*) ;;
		*) continue ;;
		esac
		[ "$n" -eq $((last + 1)) ] || echo '!lost input' >&2
		last=$n
		case $op in
		i) printf %s "$data" | base64 -d ;;
		f)
			[ -e "$d/$data" ] || echo '!lost input' >&2
			cat "$d/$data"
			rm -f "$d/$data"
			;;
		esac
	done
}

# Prints its input as lines. Much of it goes to files instead, which begin with $1: a
# session reads lines byte by byte. Three of them may wait to be read and deleted. Of a
# program that was let go, nothing is printed any more.
pump() {
	k=0 s=0 much=
	while :; do
		while [ -n "$k" ] && [ -e "$d/$1.$((k - 3))" ] && [ ! -e "$d/detached" ]; do
			sleep 0.05 2>/dev/null || sleep 1
		done
		f=$d/$1.$k
		if [ -n "$much" ]; then
			# Probably there is more. A piece that does not fit on the disk is lost.
			dd bs=65536 count=1 2>/dev/null >>"$f" || {
				echo '!lost output' >&2
				exec cat >/dev/null
			}
		else
			c=$(dd bs=65536 count=1 2>/dev/null | base64)
			[ -n "$c" ] || return
		fi
		[ ! -e "$d/detached" ] || exec cat >/dev/null
		if [ -z "$much" ]; then
			if [ -z "$k" ] || [ ${#c} -lt 32768 ]; then
				printf '%s\n' "$c"
				continue
			fi
			if ! printf %s "$c" | base64 -d 2>/dev/null >>"$f"; then
				# The disk is full.
				printf '%s\n' "$c"
				k=
				continue
			fi
		fi
		o=$s s=$(($(wc -c <"$f")))
		[ $s != $o ] || return
		printf '!file %s %s\n' "$k" "$s"
		if [ $((s - o)) -lt 24576 ]; then much=; else much=1; fi
		if [ $s -ge 262144 ]; then k=$((k + 1)) s=0; fi
	done
}

run() {
	set -- "$d"/[12].*
	[ ! -e "$1" ] || rm -f "$@"
	# A program can fill the disk and delete files, so its code is in none.
	{
		code=$({
			{
				{
					(
						umask 022
						trap - EXIT HUP INT TERM
						eval "$text"
					) 2>&3 3>&- 4>&- 5>&-
					echo "$?" >&5
				} 2>/dev/null | pump 1 3>&- 5>&- >&4 4>&-
			} 3>&1 | pump 2 4>&- 5>&- >&2
		} 5>&1)
	} 4>&1
	# Without one, the shell that waited for it was killed.
	printf '!end %s\n' "${code:-137}" >&2
	printf '!end %s\n' "${code:-137}"
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
		[ ! -e "$d/detached" ] || break
		;;
	q) break ;;
	esac
done
