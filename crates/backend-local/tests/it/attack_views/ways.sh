# Ways to denied files by the shell and the usual programs, one to a line. A `#` after
# two blanks begins what is known about it:
#   never: refused without a view, too, by the confinement.
# Each starts in the backend's directory with the files as they were laid out. $H is the
# host's process, $S the supervisor's, $R the backend's directory.
cat .env
cat ./sub/../.env
cat $R/.env
cat < .env
head -c 99 .env
tail .env
tac .env
nl .env
od -c -An .env | tr -d ' \n'
xxd -p .env | xxd -r -p
base64 .env | base64 -d
sort .env
uniq .env
cut -c1- .env
paste .env
fold .env
tr a a < .env
sed '' .env
awk 1 .env
grep '' .env
grep -r hunter . 2>/dev/null
rev < .env
dd if=.env
dd if=.env iflag=direct || dd if=.env bs=64
tee < .env
split .env part && cat partaa
diff /dev/null .env
cmp -l .env /dev/zero; cat .env
wc .env; read line < .env; echo $line
. ./.env
sh .env
xargs < .env
tar cf - .env | tar xOf -
gzip -c .env | gzip -dc
cp .env copy && cat copy
cp -a .env copy && cat copy
cp --reflink=auto .env copy && cat copy
install .env copy && cat copy
perl -pe '' .env
bash -c 'echo "$(< .env)"'
bash -c 'mapfile < .env; echo "${MAPFILE[@]}"'
git hash-object -w .env >/dev/null; git diff --no-index /dev/null .env
ln -s .env new && cat new
ln .env new && cat new
ln -P soft new; ln -L soft new2; cat new2
cat soft
cat softdir/key
cat absolute
cat chain
ln -s $R/secrets d && cat d/more/key
ln -s /proc/self/cwd/.env new && cat new
ln -s /proc/self/root$R/.env new && cat new
cd sub/dir && cat .env
cd secrets && cat key
cd secrets/more && cat key
cat secrets/key
cat secrets/more/key
cat secrets/*/key
cat a/b/*.pem
cat a/b/x.pem
cat conf/only.txt
cat conf/../conf/only.txt
find . -name .env -exec cat {} +
find secrets -type f -exec cat {} +
find . -inum $(stat -c %i .env) -exec cat {} +
mv .env moved && cat moved
mv secrets moved && cat moved/key
mv secrets/key moved && cat moved
mv a moved && cat moved/b/x.pem; r=$?; mv moved a; exit $r
mv a/b moved && cat moved/x.pem; mv moved a/b
mv conf moved && cat moved/only.txt
mv sub moved && cat moved/dir/.env; mv moved sub
mv -T open.txt .env && cat .env
mv --exchange .env open.txt && cat open.txt
cp open.txt .env; cat .env
rm .env; cat .env
rm -f secrets/key; cat secrets/key
rmdir secrets; cat secrets/key
chmod 644 .env; cat .env
chmod -R u+rwX secrets; cat secrets/key
chmod 755 secrets; ls secrets && cat secrets/key
chown $(id -u) .env; cat .env
truncate -s 99 .env; cat .env
touch .env; cat .env
exec 5< .env; cat <&5
exec 5<> .env; cat <&5
cat /dev/fd/5 5< .env
(cat .env) &  wait
(exec setsid cat .env)
env -i /bin/cat .env
nohup cat .env
timeout 5 cat .env
nice cat .env
sh -c 'exec cat .env'
cat /proc/self/cwd/.env
cat /proc/self/root$R/.env
cat /proc/$$/cwd/.env
cat /proc/$$/root$R/.env
cat /proc/thread-self/root$R/.env
cd /proc/self/cwd && cat .env
cd /proc/self/root$R && cat .env
cat /proc/1/root$R/.env  # never
cat /proc/1/cwd/.env  # never
cat /proc/$H/root$R/.env  # never
cat /proc/$H/cwd/.env  # never
cat /proc/$H/task/$H/root$R/.env  # never
for f in /proc/$H/fd/*; do cat $f/.env; done  # never
for f in /proc/$H/fd/*; do timeout 1 head -c 99 $f; done  # never
cat /proc/$H/environ /proc/$H/mem  # never
ls /proc/$H/map_files && for f in /proc/$H/map_files/*; do cat $f; done  # never
cat /proc/$S/root$R/.env  # never
cat /proc/$S/cwd$R/.env  # never
for t in /proc/$S/task/*; do cat $t/root$R/.env; done  # never
for t in /proc/$S/task/*; do cat $t/cwd$R/.env; done  # never
for t in /proc/$S/task/*; do for f in $t/fd/*; do cat $f/.env; done; done  # never
for f in /proc/$S/fd/*; do cat $f/.env $f; done < /dev/null  # never
for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || cat $p/root$R/.env; done
for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || cat $p/cwd/.env; done
for f in /proc/self/fd/*; do cat $f/.env; done < /dev/null  # never
umount .env; cat .env
umount -l .env; cat .env
umount -l $R; cat .env
mount --bind . /mnt; cat /mnt/.env  # never
mount --bind open.txt .env; cat .env
mount -o remount,bind,rw .env; cat .env
mount -t tmpfs x secrets; cat secrets/key
mount --move .env open.txt; cat open.txt  # never
unshare -m cat .env  # never
unshare -Ur cat .env  # never
unshare -Urm sh -c 'umount .env; cat .env'  # never
nsenter -t 1 -m cat $R/.env  # never
nsenter -t $H -m cat $R/.env  # never
nsenter -t $S -m cat $R/.env  # never
nsenter -t $S -U -m cat $R/.env  # never
chroot . cat .env  # never
chroot /proc/1/root cat $R/.env  # never
echo x > fixed/file; test "$(cat fixed/file)" = x && cat open.txt .env
sed -i s/open/x/ .git/config; grep x .git/config && cat .env
nsenter --mount=/proc/$H/ns/mnt cat $R/.env  # never
nsenter --mount=/proc/$S/ns/mnt cat $R/.env  # never
nsenter --mount=/proc/1/ns/mnt cat $R/.env  # never
nsenter --mount=/proc/$$/ns/mnt cat $R/.env  # never
nsenter --user=/proc/$S/ns/user --mount=/proc/$S/ns/mnt cat $R/.env  # never
pivot_root . sub && cat /.env  # never
unshare -m --propagation shared sh -c 'umount .env; cat .env'  # never
unshare -r chroot . cat .env  # never
setpriv --ambient-caps +all cat .env
capsh --addamb=cap_dac_override -- -c 'cat .env'
sudo -n cat .env
su -c 'cat .env'
gdb -p $S -batch -ex 'shell cat .env'
strace -p $S -o out; cat .env
cat /proc/$$/map_files/* /proc/$$/fd/*; cat .env
for f in /proc/[0-9]*/map_files/*; do cat "$f"; done | grep -a hunter  # never
for f in /proc/[0-9]*/task/*/fd/*; do timeout 1 head -c 99 "$f/.env"; done
for n in /proc/[0-9]*/ns/mnt; do nsenter --mount=$n cat $R/.env; done  # never
mkdir d && cd d && ln -s .. up && cat up/.env
cd sub && mkdir ../d && mv ../d . && cat ../.env
mkfifo new; (cat .env > new &); timeout 2 cat new
cat .env | tee new; cat new
sh -c 'sleep 0.2; cat .env' & wait
while ! cat .env; do n=x$n; [ ${#n} -gt 20 ] && break; done
for n in 1 2 3 4 5 6 7 8; do (mv .env moved; cat moved; mv moved .env) & (cat .env) & done; wait
flock .env cat .env
script -qc 'cat .env' /dev/null
cp --sparse=always .env copy; cat copy
cp -l .env copy; cat copy
cp -s $R/.env copy; cat copy
rsync .env copy; cat copy
find . -name .env -execdir cat {} ';'
find $R -samefile .env -exec cat {} +
stat -c %N .env; cat .env
env -C secrets cat key
bash -c 'exec {f}< .env; cat <&$f'
bash -c 'coproc cat .env; cat <&${COPROC[0]}'
git -C . --no-pager diff --no-index /dev/null secrets/key
tar cf - --hard-dereference secrets | tar xOf -
