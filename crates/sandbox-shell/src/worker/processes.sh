# Ending processes.

# Finds the processes of the group or session $1, those whose environment
# contains $2, and their descendants. Sets L.
tree() {
	L=' ' all=
	if [ -n "$2" ]; then
		# Some greps find nothing after a NUL byte unless it ends their lines.
		[ -n "$z" ] || { z=s; printf 'a\0b\0' | grep -qzF b 2>/dev/null && z=z; }
		for f in $(grep "-lsF$z" -- "$2" /proc/[0-9]*/environ 2>/dev/null); do
			f=${f#/proc/}
			L="$L${f%/*} "
		done
	fi
	for f in /proc/[0-9]*/stat; do
		{ read -r s <"$f"; } 2>/dev/null || continue
		i=${f#/proc/} i=${i%/*}
		s=${s##*) }
		set -- "$1" "$2" $s
		case $3 in Z | X) continue ;; esac
		if [ -n "$1" ] && { [ "$i" = "$1" ] || [ "$5" = "$1" ] || [ "$6" = "$1" ]; }; then
			case $L in *" $i "*) ;; *) L="$L$i " ;; esac
		fi
		all="$all$i:$4 "
	done
	more=1
	while [ $more = 1 ]; do
		more=0
		for s in $all; do
			case $L in *" ${s%:*} "*) continue ;; esac
			case $L in *" ${s#*:} "*) L="$L${s%:*} " more=1 ;; esac
		done
	done
	# Zombies do not count.
	alive=
	for i in $L; do
		case " $all" in *" $i:"*) [ "$i" = $$ ] || alive="$alive $i" ;; esac
	done
	L=$alive
}

# Ends the processes of a group, and those with a marker: first with TERM, then
# with KILL. Prints how many there were.
op_kill() {
	group=$1 mark=$2 tries=$3 round=0
	tree "$group" "$mark"
	set -- $L
	count=$#
	while [ -n "$L" ]; do
		if [ $round -lt "$tries" ]; then
			[ $round != 0 ] || kill -TERM $L 2>/dev/null
		elif [ $round -gt $((tries + 60)) ]; then
			no unkilled
			break
		else
			kill -KILL $L 2>/dev/null
		fi
		round=$((round + 1))
		sleep 0.03 2>/dev/null || sleep 1
		tree "$group" "$mark"
	done
	printf '%s' "$count"
}
