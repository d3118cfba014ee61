# Writing whole files.

# Reads $1 bytes that follow the request.
body() {
	[ "$1" = 0 ] || dd bs="$1" count=1 iflag=fullblock 2>/dev/null
}

# Resolves the path of a write. Fails if the entry there cannot be replaced.
target() {
	go "$1" f "$2" || return
	case $K$3 in
	dc | fc | oc) no exists ;;
	d?) no isdir ;;
	o?) no special ;;
	nu) no conflict ;;
	esac
	[ -z "$E" ] || return 1
	above
}

# Creates the temporary file $1 in the current directory.
begin() {
	if [ $K = f ]; then umask 077; fi
	# Not `:`, whose failed redirection ends the shell.
	{ true >"./$1"; } 2>/dev/null
	made=$?
	umask "$soft"
	[ $made = 0 ] || run sh -c ': >"$1"' sh "./$1"
}

# Fails unless the file at $1 has the hash $2.
same() {
	h=$(sha256sum 2>/dev/null <"$1") || { no conflict; return 1; }
	[ "${h%% *}" = "$2" ] || no conflict
}

# Creates the missing directories.
parents() {
	[ -z "$M" ] || run mkdir -p "./$M"
}

# Gives the file $1 its final name, $M$B. $2 is the mode of the write, $3 a hash,
# $4 is `d` if it must be on the disk. Prints whether the file is new.
place() {
	P=./$M$B
	if [ $K = f ]; then
		old=$(stat -c '%a %u:%g' "$P" 2>/dev/null)
		owner=${old#* } bits=${old%% *}
		case $bits in ????) bits=${bits#?} ;; esac
		[ "$owner" = "$me" ] || chown "$owner" "$1" 2>/dev/null || chgrp "${owner#*:}" "$1" 2>/dev/null
		[ -z "$bits" ] || run chmod "$bits" "$1" || return
	fi
	if [ "$4" = d ]; then sync "$1" 2>/dev/null || sync; fi
	parents || return
	new=0
	case $2 in
	u) same "$P" "$3" || return ;;
	esac
	if [ -d "$P" ]; then
		[ "$2" = c ] && no exists || no isdir
		return
	fi
	if [ $K = n ] && free "$1" "$P"; then
		new=1
	elif [ "$2" = c ]; then
		[ -n "$E" ] || no exists
		return
	else
		E=
		run mv "-f$flat" "$1" "$P" || return
	fi
	if [ "$4" = d ]; then sync "./$M." 2>/dev/null || sync; fi
	printf $new
}

# Renames $1 to $2, and replaces a file or link of that name.
over() {
	# Some versions of mv follow the link, and fail if it is circular.
	if [ -L "$2" ] && [ ! -e "$2" ]; then
		mv "-f$flat" "$1" "$2" 2>/dev/null && return
		rm -f "$2"
	fi
	run mv "-f$flat" "$1" "$2"
}

# Renames $1 to $2, if that name is free.
free() {
	if link "$1" "$2" 2>/dev/null; then
		rm -f "$1"
		return 0
	fi
	if [ -e "$2" ] || [ -L "$2" ]; then
		no exists
		return 1
	fi
	# No hard links here: an empty file reserves the name.
	if [ ! -L "$1" ]; then
		(set -C; : >"$2") 2>/dev/null || { [ -e "$2" ] && no exists || run sh -C -c ': >"$1"' sh "$2"; return 1; }
	fi
	run mv "-f$flat" "$1" "$2"
}

# Writes the $5 bytes that follow to a path.
op_write() {
	if target "$1" "$2" "$3" && begin "$tmp$7"; then
		T=./$tmp$7
		if body "$5" >"$T" && full "$T" "$5"; then
			place "$T" "$3" "$4" "$6"
		fi
		[ -z "$E" ] || rm -f "$T"
	else
		body "$5" >/dev/null
	fi
}

# Fails unless the file $1 has $2 bytes.
full() {
	[ "$(stat -c %s "$1" 2>/dev/null)" = "$2" ] || no full
}

# Starts a write in pieces. Prints the directory of its file.
op_begin() {
	target "$1" "$2" "$3" && begin "$tmp$4" && printf %s "$PWD"
}

# Appends the $4 bytes that follow to a file of $3 bytes.
op_append() {
	T=./$tmp$2
	if into "$1" && full "$T" "$3"; then
		body "$4" >>"$T" && full "$T" $(($3 + $4))
	else
		body "$4" >/dev/null
		[ -n "$E" ] || no unsteady
	fi
}

# Gives a file that was written in pieces its final name.
op_commit() {
	T=$5/$tmp$6
	target "$1" "$2" "$3" && place "$T" "$3" "$4" "$7"
}

# Removes files that were never finished.
op_discard() {
	into "$1" || return
	shift
	for one; do
		rm -f "./$tmp$one"
	done
}
