# The machine's end of a channel: reads requests, one per line, and answers them
# one after the other. A request is a secret, a name and arguments, quoted for
# `eval`. An answer is any bytes, the secret, a status word, and a line end.
# Only features that POSIX, busybox and coreutils have in common are used here.

nl='
'
# The format of a file's description. No name starts with `//`, so none looks
# like it.
look='//%f %s %Y %y %n'
tmp=.agentbox-tmp-
me=$(id -u):$(id -g)
soft=$(umask)
# Whether `mv` has an option that stops it from moving into its destination.
flat= z=
case $(mv --help 2>&1) in *-T*) flat=T ;; esac
# A closed output must not end this shell. It ends with its input.
trap : PIPE

# Sets the reason why a request failed.
no() {
	E=$1
	return 1
}

# Runs a tool. If it fails, its output is the answer.
run() {
	X=$("$@" 2>&1 </dev/null) && return 0
	printf %s "$X"
	no tool
}

# Resolves the path $1. $2 is `k` to keep a link in the last name, $3 is `r` to
# refuse links. Sets D, the last directory that exists; M, the missing ones
# beneath it, each with a slash; B, the last name, or nothing for the root; and
# K, the kind of the entry: d, f, l, o for others, n for nothing.
go() {
	D= M= B= K=d
	q=${1#/} hops=0
	while [ -n "$q" ]; do
		case $q in
		*/*) c=${q%%/*} q=${q#*/} ;;
		*) c=$q q= ;;
		esac
		case $c in
		'' | .) continue ;;
		..)
			[ -z "$M" ] || { no notfound; return 1; }
			D=${D%/*}
			continue
			;;
		esac
		if [ -n "$M" ]; then
			M=$M$c/
			continue
		fi
		p=$D/$c
		if [ -L "$p" ]; then
			if [ -z "$q" ] && [ "$2" = k ]; then
				B=$c K=l
				return 0
			fi
			[ "$3" != r ] || { no link; return 1; }
			hops=$((hops + 1))
			[ $hops -le 40 ] || { no circle; return 1; }
			t=$(readlink "$p"; echo .)
			t=${t%"$nl".}
			case $t in
			.) no notfound; return 1 ;;
			/*) D= ;;
			esac
			# A trailing slash means a directory.
			case $t in */) t=$t. ;; esac
			q=$t${q:+/$q}
		elif [ -d "$p" ]; then
			if [ -z "$q" ]; then
				B=$c
				return 0
			fi
			D=$p
		elif [ -e "$p" ]; then
			[ -z "$q" ] || { no notdir; return 1; }
			B=$c K=o
			[ ! -f "$p" ] || K=f
			return 0
		else
			[ -x "${D:-/}" ] || { no denied; return 1; }
			M=$c/
		fi
	done
	if [ -n "$M" ]; then
		K=n M=${M%/}
		B=${M##*/}
		M=${M%"$B"}
	elif [ -n "$D" ]; then
		B=${D##*/} D=${D%/*}
	fi
	return 0
}

# Enters the directory $1. Fails if it has become a link meanwhile.
into() {
	cd -P "$1" 2>/dev/null || {
		[ -d "$1" ] && no denied || no unsteady
		return 1
	}
	[ "$PWD" = "$1" ] || no unsteady
}

# Enters the last directory that exists.
above() {
	into "${D:-/}"
}
