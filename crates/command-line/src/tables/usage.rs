//! Tables of how programs use their arguments.

use super::WordTable;
use crate::word_list::words;

/// Programs that read all of their operands, except those of [`SECOND_WRITTEN`].
pub(crate) const READERS: &[&str] = words!(
    "cat bat batcat head tail less more wc sort uniq nl tac diff cmp comm file stat md5sum sha1sum
     sha256sum sha512sum shasum cksum od xxd hexdump strings ls du tree cut paste join fold fmt rev
     column jq yq source . base64 zcat lsattr getfacl readlink realpath expand pr csplit split"
);

/// Programs that write their second operand.
pub(crate) const SECOND_WRITTEN: &[&str] = &["uniq", "guniq", "xxd", "split", "gsplit"];

/// Options, also abbreviated, that name a file to write, of programs without a row.
pub(crate) const WRITES: &WordTable = &[
    (&["base64"], &["-o", "--output"]),
    (&["bat", "batcat"], &["--target"]),
    (&["less"], &["-o", "-O", "--log-file", "--LOG-FILE"]),
    (&["tree"], &["-o"]),
    (&["yq"], &["-s", "--split-exp"]),
];

/// Programs that compress or decompress a file into one with another suffix.
pub(crate) const PACKERS: &[&str] = words!(
    "gzip gunzip pigz unpigz xz unxz lzma unlzma bzip2 bunzip2 zstd unzstd lz4 unlz4 compress
     uncompress brotli unbrotli"
);

/// Programs that change all of their operands.
pub(crate) const WRITERS: &[&str] =
    words!("rm rmdir unlink shred touch mkdir mkfifo mknod truncate tee mv srm chattr wipefs");

/// Programs that read their operands and write the last.
pub(crate) const COPIERS: &[&str] = &["cp", "ln", "install", "rsync", "scp", "ditto", "link"];

/// Options whose value is a file to write, of programs in no other table.
pub(crate) const OUTPUTS: &WordTable = &[
    (
        &["gcc", "g++", "cc", "c++", "cpp", "clang", "clang++", "tcc"],
        &["-o", "-MF", "-aux-info"],
    ),
    (
        &[
            "as", "ld", "gold", "lld", "ld.lld", "ld.gold", "strip", "nasm", "yasm", "zstd", "age",
            "dot", "pandoc", "rustc", "go", "tsc", "lz4", "brotli", "objdump",
        ],
        &["-o"],
    ),
    (&["openssl"], &["-out", "-keyout", "-writerand"]),
    (&["ssh-keygen"], &["-f"]),
    (&["gpg", "gpg2", "gpgv"], &["-o", "--output"]),
    (&["mktemp", "gmktemp"], &["-p", "--tmpdir"]),
    (&["tcpdump"], &["-w"]),
    (
        &["xmllint", "rustc", "esbuild"],
        &["--output", "--out-dir", "--outfile"],
    ),
];

/// Programs whose first operand is not a path, and that change the others.
pub(crate) const MODE_CHANGERS: &[&str] = &["chmod", "chown", "chgrp", "setfacl"];

/// Programs whose first operand is a pattern, and that read the others.
pub(crate) const SEARCHERS: &[&str] =
    words!("grep egrep fgrep ggrep rg ag ack zgrep zegrep zfgrep");

/// Programs whose operands are not paths, unless they look like one.
pub(crate) const NON_PATH_OPERANDS: &[&str] = words!(
    "echo printf true false : cargo npm yarn pnpm pip pip3 export unset set kill sleep date whoami
     ps pgrep uname seq expr which type rustup rustc go docker podman kubectl systemctl service
     brew apt apt-get gh pytest make just trap exit return declare local readonly hostname id
     groups man help tput yes alias read curl wget test ["
);

/// Options followed by text: a message, code, a pattern, the name of a branch. Git has
/// a row for each sub-command, since the same letter has different meanings.
pub(crate) const TEXTS: &WordTable = &[
    (
        &[
            "git commit",
            "git merge",
            "git notes",
            "git stash",
            "git tag",
        ],
        &["-m", "-am"],
    ),
    (&["git branch"], &["-m", "-M", "-c", "-C"]),
    (&["git checkout", "git worktree"], &["-b", "-B"]),
    (&["git clone", "git submodule"], &["-b"]),
    (&["git switch"], &["-c", "-C"]),
    (&["git grep"], &["-e"]),
    (
        words!("hg svn jj sl bzr fossil cvs alembic flask lerna npm pnpm yarn"),
        &["-m"],
    ),
    (&["gh", "glab", "hub"], &["-b", "-m", "-t"]),
    (&["pytest", "py.test", "nox"], &["-k", "-m"]),
    (&["rspec", "tox"], &["-e"]),
    (&["echo"], &["-e"]),
    (&["docker", "podman", "nerdctl"], &["-c", "-e", "-m"]),
    (&["ansible"], &["-m"]),
    (&["useradd", "usermod", "adduser"], &["-c"]),
    (&["python", "pypy", "ipython"], &["-c", "-m"]),
    (&["perl"], &["-e", "-E"]),
    (
        words!("ruby lua luajit julia rscript r osascript racket groovy scala mysql mariadb gawk"),
        &["-e"],
    ),
    (&["node", "nodejs", "bun"], &["-e", "-p"]),
    (&["php"], &["-r"]),
    (
        words!("psql vim vi nvim fish csh tcsh pwsh powershell nu xonsh elvish expect npx pnpx"),
        &["-c"],
    ),
];

/// Options followed by text, for all programs.
pub(crate) const TEXTS_OF_ALL: &[&str] = &["--message", "--title", "--body"];

/// Directories in which a program is the one that its name says.
pub(crate) const BIN_DIRS: &[&str] =
    words!("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin");

/// Programs whose damage depends on their arguments, with the options that make them
/// destructive. An empty list means that they always are.
pub(crate) const DESTRUCTIVE: &WordTable = &[
    (
        words!(
            "rm rmdir unlink shred srm dd wipefs truncate mv tee install kill pkill killall fdisk
             parted sgdisk blkdiscard userdel crontab mount umount"
        ),
        &[],
    ),
    (
        &["chmod", "chown", "chgrp", "setfacl"],
        &["-R", "--recursive"],
    ),
    (&["chattr"], &["-R"]),
    (&["ln"], &["-f", "--force"]),
    (&["rsync"], &["--del", "--delete"]),
    (&["find"], &["-delete"]),
];

/// Tests and actions of `find` that take a value.
pub(crate) const FIND_VALUED: &[&str] = words!(
    "-anewer -cnewer -context -fstype -gid -group -ilname -inum -links -lname -maxdepth -mindepth
     -perm -printf -regextype -type -uid -used -user -xtype"
);

/// Tests and actions of `find` that take no value and do no harm.
pub(crate) const FIND_PLAIN: &[&str] = words!(
    "-d -daystart -depth -executable -false -follow -help --help -ignore_readdir_race -ls -mount
     -nogroup -noignore_readdir_race -noleaf -nouser -nowarn -print -print0 -prune -quit -readable
     -true -version --version -warn -writable -xdev"
);

/// Programs that only read devices, or that have a check of their own for them.
pub(crate) const DEVICE_READERS: &[&str] = words!(
    "lsblk blkid findmnt df mount umount smartctl udevadm grep egrep fgrep rg find dd hdparm
     partprobe swapon swapoff fsck git"
);

/// Options that name a directory to change to first.
pub(crate) const DIRECTORY_OPTIONS: &[&str] = words!(
    "-C --directory --chdir --cwd --working-directory --base-directory --prefix --work-tree --dir"
);

/// Programs that only print or compare their arguments.
pub(crate) const PRINTERS: &[&str] =
    words!("echo printf test [ true false : expr seq sleep kill exit return");
