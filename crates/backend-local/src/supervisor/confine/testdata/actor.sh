# One file operation by the shell and coreutils: `actor.sh OPERATION A [B]`.
a=$2 b=$3
case $1 in
    read) cat "$a" ;;
    write) printf x 1<> "$a" ;;
    append) printf x >> "$a" ;;
    create) printf x > "$a" ;;
    truncate) truncate -s 0 "$a" ;;
    remove) rm -f "$a" && ! test -e "$a" ;;
    mkdir) mkdir "$a" ;;
    rmdir) rmdir "$a" ;;
    list) ls "$a" ;;
    rename) mv -f "$a" "$b" ;;
    link) ln "$a" "$b" ;;
    symlink) ln -s "$a" "$b" ;;
    exec) "$a" ;;
    connect) exec bash -c "exec 3<> /dev/tcp/127.0.0.1/$a" ;;
    *) exit 22 ;;
esac
