# Creating, deleting, moving and copying.

op_mkdir() {
	go "$1" f "$2" || return
	case $K in
	d) ;;
	n) above && { [ -d "./$M$B" ] || run mkdir -p "./$M$B"; } ;;
	*) no exists ;;
	esac
}

# Fails for a directory that contains the working directory $1.
home() {
	w=$1
	if cd -P "$w" 2>/dev/null; then w=$PWD; fi
	case $w/ in
	"$D/$B"/*) no home ;;
	esac
}

op_delete() {
	go "$1" k "$2" || return
	[ $K != n ] || { no notfound; return; }
	if [ $K = d ]; then
		home "$4" || return
		[ "$3" = r ] || { no isdir; return; }
		above && run rm -rf "./$B"
	else
		above && run rm -f "./$B"
	fi
}

# Resolves the source and destination of a move or a copy, and checks them
# against each other. Sets F to the source, FK to its kind, and D, M and B to the
# destination.
ends() {
	go "$1" k "$3" || return
	[ $K != n ] || { no notfound; return 1; }
	[ $K != d ] || [ "$5" = r ] || { no isdir; return 1; }
	F=$D/$B FK=$K
	go "$2" k "$3" || return
	[ "$F" != "$D/$M$B" ] || { no itself; return 1; }
	case $FK$K in
	?n) ;;
	d? | ?d) no dirs; return 1 ;;
	*) [ "$4" = o ] || { no exists; return 1; } ;;
	esac
	if [ $FK = d ]; then
		case $D/ in
		"$F"/*) no itself; return 1 ;;
		esac
	fi
	return 0
}

# Fails if an entry inside $F would be more than $1 levels or $2 bytes deep.
fits() {
	into "$F" || return
	[ -n "$1" ] || return 0
	deep=$(find . -mindepth "$1" -prune 2>/dev/null | head -c 1)
	# The paths that find prints are two bytes longer than the relative ones.
	long=$(find . 2>/dev/null | cut -b "$2-" | tr -d '\n' | head -c 1)
	[ -z "$deep$long" ] || no inside
}

op_rename() {
	ends "$1" "$2" "$3" "$4" r || return
	d=$D m=$M b=$B k=$K D=${F%/*} B=${F##*/}
	[ $FK != d ] || { home "$5" && fits "$6" "$7"; } || return
	D=$d M=$m B=$b K=$k
	above && parents || return
	P=./$M$B
	if [ $FK = d ]; then
		mkdir "$P" 2>/dev/null || { [ -e "$P" ] && no exists || run mkdir "$P"; return; }
		[ -n "$flat" ] && mv -T "$F" "$P" 2>/dev/null && return
		rmdir "$P" 2>/dev/null
		run mv "$F" "$P"
	elif [ "$4" = o ]; then
		if [ $K != n ] && [ ! -L "$P" ] && [ "$F" -ef "$P" ] && [ ! -L "$F" ]; then
			run rm -f "$F"
		else
			[ ! -d "$P" ] || [ -L "$P" ] || { no exists; return; }
			over "$F" "$P"
		fi
	else
		free "$F" "$P"
	fi
}

op_copy() {
	ends "$1" "$2" "$3" "$4" "$5" || return
	[ $FK != o ] || { no special; return; }
	T=./$tmp$6
	if [ $FK = d ]; then
		fits "$7" "$8" || return
		if [ -n "$(find . ! -type d ! -type f ! -type l 2>/dev/null | head -c 1)" ]; then
			no stranger
			return
		fi
		above && parents || return
		P=./$M$B
		mkdir -m 700 "$P" 2>/dev/null || { [ -e "$P" ] && no exists || run mkdir "$P"; return; }
		umask 0
		run cp -RP "$F/." "$P/"
		umask "$soft"
		[ -z "$E" ] || return
		find "$P" -name "$tmp*" -exec rm -rf {} + 2>/dev/null
		run chmod "$(bits "$F")" "$P"
		return
	fi
	above && parents || return
	P=./$M$B
	# In its final directory: a rename must stay in one file system.
	into "${PWD%/}${M:+/${M%/}}" || return
	P=./$B
	if [ $FK = l ]; then
		t=$(readlink "$F"; echo .)
		run ln -s -- "${t%"$nl".}" "$T" || return
	else
		umask 077
		run cp "$F" "$T"
		umask "$soft"
		[ -n "$E" ] || run chmod "$(bits "$F")" "$T"
	fi
	if [ -z "$E" ]; then
		if [ "$4" = o ]; then
			if [ -d "$P" ] && [ ! -L "$P" ]; then no dirs; else over "$T" "$P"; fi
		else
			free "$T" "$P"
		fi
	fi
	[ -z "$E" ] || rm -f "$T"
}

# Prints the permission bits of a file, without set-ID and sticky bits.
bits() {
	a=$(stat -c %a "$1")
	case $a in ????) a=${a#?} ;; esac
	printf %s "$a"
}
