# Describing and reading.

# Describes the entry at a path.
op_stat() {
	go "$1" f "$2" || return
	[ $K != n ] || { no notfound; return; }
	above || return
	if [ -L "$1" ]; then printf l; else printf -; fi
	run_stat "./$B"
}

run_stat() {
	stat -c "$look" "$@" 2>/dev/null || no notfound
}

# Resolves a path: prints the kind of the entry, and the path.
op_resolve() {
	go "$1" f "$2" || return
	printf %s "$K$D/$M$B"
}

# Lists a directory.
op_ls() {
	go "$1" f "$2" || return
	case $K in
	n) no notfound ;;
	d)
		into "$D/$B" || return
		[ -r . ] || { no denied; return; }
		printf 'd%s' "${PWD%/}"
		find . ! -name . -prune -exec stat -c "$look" {} + 2>/dev/null
		:
		;;
	*)
		above || return
		if [ -L "$1" ]; then printf l; else printf -; fi
		run_stat "./$B"
		;;
	esac
}

# Describes the targets of the links in a directory.
op_targets() {
	into "$1" || return
	find . ! -name . -prune -type l -exec stat -L -c "$look" {} + 2>/dev/null
	:
}

# Generated directories, which searches seldom enter.
generated='-name .eggs -o -name .mypy_cache -o -name .pytest_cache -o -name .ruff_cache
	-o -name .tox -o -name .venv -o -name __pycache__ -o -name build
	-o -name dist -o -name node_modules -o -name target -o -name venv'

# Describes everything beneath directories in $1, up to $2 levels deep and in at
# most $3 bytes. $4 is the pattern of names not to enter. First prints for each
# directory whether it can be read.
op_tree() {
	depth=$2 most=$3 avoid=$4
	into "$1" || return
	shift 4
	for one; do
		shift
		if [ -d "$one" ] && [ ! -L "$one" ] && [ -r "$one" ] && [ -x "$one" ]; then
			printf r
			set -- "$@" "$one"
		else
			printf u
		fi
	done
	part
	[ $# != 0 ] || return 0
	find "$@" -mindepth 1 -maxdepth "$depth" -exec stat -c "$look" {} + \
		-type d \( -name "$avoid" -o $generated \) -prune \
		2>/dev/null | head -c "$most"
}

# Reads the ignore files near the directory $1 and, if $2 is `a`, other small
# files: at most $3 files of at most 16 KiB. $4 is the pattern of names not to
# enter. Prints the path of each before its content.
op_peek() {
	all=$2 most=$3 avoid=$4
	into "$1" || return
	{
		near -name .gitignore -o -name .ignore
		[ "$all" != a ] || near ! -name .gitignore ! -name .ignore
	} 2>/dev/null | head -n "$most" | while IFS= read -r one; do
		[ -f "$one" ] && [ ! -L "$one" ] && [ -r "$one" ] || continue
		printf '%s\n' "${one#./}"
		dd bs=16384 count=1 2>/dev/null <"$one"
		part
	done
	:
}

# Finds small files near this directory. The second line of a path would be
# another one, anywhere.
near() {
	find . -maxdepth 6 -xdev -type d ! -name . \( -name "$avoid" -o $generated \) -prune \
		-o -type f -size -33 ! -path "*$nl*" \( "$@" \) -print
}

# Ends a part of an answer.
part() {
	printf '\036%s part\n' "$N"
}

# Resolves a path to a file for reading.
file() {
	go "$1" f "$2" || return
	case $K in
	n) no notfound ;;
	d) no isdir ;;
	o) no special ;;
	*) above ;;
	esac
}

# Reads a file from byte $3 up to byte $4, or to its end if that is -1, in whole
# blocks of 64 KiB, after a line with its size, identity and modification time.
# Reads nothing if that is more than $5 bytes.
op_read() {
	file "$1" "$2" || return
	{
		i=$(stat -L -c '%s %d:%i %y %z' /proc/self/fd/0 || stat -L -c '%s %d:%i %y %z' "./$B")
		printf '%s\n' "$i"
		i=${i%% *} e=$4
		[ "$e" -ge 0 ] && [ "$e" -lt "$i" ] || e=$i
		if [ "$e" -gt "$3" ] && [ $((e - $3)) -le "$5" ]; then
			dd bs=65536 skip=$(($3 / 65536)) count=$(((e + 65535) / 65536 - $3 / 65536))
		fi
	} 2>/dev/null <"./$B" || { [ -r "./$B" ] && no unsteady || no denied; }
}

# Reads the start of files, which must not be links: at most $1 blocks of 64 KiB
# of each.
op_cat() {
	most=$1
	shift
	for one; do
		if [ -f "$one" ] && [ ! -L "$one" ] && [ -r "$one" ]; then
			printf +
			dd bs=65536 count="$most" 2>/dev/null <"$one"
		else
			printf -
		fi
		part
	done
}
