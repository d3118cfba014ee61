//! Tables of known programs. Data only.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::options::Row;
use crate::word_list::words;

/// Writes a table of [`Row`]s: the names, the short and the long options of a program, and
/// for a launcher the methods that say how it differs; or pairs of a row and a value.
macro_rules! rows {
    ($($names:expr, $short:expr, $long:expr $(=> $($mark:ident $(($operands:literal))?)+)?;)+) => {
        &[$(Row::new($names, $short, $long)$($(.$mark($($operands)?))+)?),+]
    };
    ($($names:expr, $short:expr, $long:expr, $value:expr;)+) => {
        &[$((Row::new($names, $short, $long), $value)),+]
    };
}

mod danger;
mod git;
mod launchers;
mod programs;
mod settings;
mod usage;

pub(crate) use danger::*;
pub(crate) use git::*;
pub(crate) use launchers::*;
pub(crate) use programs::*;
pub(crate) use settings::*;
pub(crate) use usage::*;

/// Returns the name of a program without its directory.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Rows by the program names in them.
struct Rows(HashMap<&'static str, &'static Row>);

impl Rows {
    fn new(rows: &'static [Row]) -> Self {
        let names = |row: &'static Row| row.names.split(' ').map(move |name| (name, row));
        Self(rows.iter().flat_map(names).collect())
    }
}

/// Program names, and words that have a meaning for each of them.
pub(crate) type WordTable = [(&'static [&'static str], &'static [&'static str])];

/// Returns the words in the first row that has `name`.
pub(crate) fn words_of(table: &WordTable, name: &str) -> Option<&'static [&'static str]> {
    let row = table.iter().find(|(names, _)| names.contains(&name));
    row.map(|(_, words)| *words)
}

/// Returns the program of that name, if it runs another one.
pub(crate) fn launcher(name: &str) -> Option<&'static Row> {
    static ROWS: LazyLock<Rows> = LazyLock::new(|| Rows::new(LAUNCHERS));
    ROWS.0.get(name).copied()
}

/// Returns the program of that name, if it has options that matter.
pub(crate) fn program(name: &str) -> Option<&'static Row> {
    static ROWS: LazyLock<Rows> = LazyLock::new(|| Rows::new(PROGRAMS));
    ROWS.0.get(name).copied()
}

/// Returns the options of the program of that name, for finding its operands, and the
/// options that replace its first operand. See [`FIRST_OPERANDS`].
pub(crate) fn first_operand(name: &str) -> Option<(&'static Row, Option<&'static [&'static str]>)> {
    match name {
        "rg" => Some((
            program(name)?,
            Some(&["e", "regexp", "f", "file", "files", "type-list"]),
        )),
        "split" | "gsplit" => Some((program(name)?, None)),
        _ => FIRST_OPERANDS
            .iter()
            .find(|(row, _)| row.is(name))
            .map(|(row, options)| (row, *options)),
    }
}

/// Returns the sub-command of git of that name.
pub(crate) fn git_verb(name: &str) -> Option<&'static Row> {
    static ROWS: LazyLock<Rows> = LazyLock::new(|| Rows::new(GIT_VERBS));
    ROWS.0.get(name).copied()
}

/// Returns the long options of git's sub-commands, sorted.
pub(crate) fn git_long() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let mut names: Vec<_> = GIT_LONG.split_ascii_whitespace().collect();
        names.sort_unstable();
        names
    });
    &NAMES
}

/// Programs that run a string as a shell program, given with `-c`.
pub(crate) const SHELLS: &[&str] =
    words!("sh bash dash ash ksh ksh93 mksh pdksh zsh rbash yash posh busybox-sh hush oksh loksh");

/// The [`SHELLS`] that read a program as this crate does.
pub(crate) const READ_SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "rbash", "busybox-sh"];

/// Short options of shells.
pub(crate) const SHELL_SHORT: &str = "abcefhiklmnoprstuvxBCDEHIOPTV";

/// Long options of bash that do not matter.
pub(crate) const SHELL_LONG: &[&str] = words!(
    "debug debugger dump-po-strings dump-strings help login noediting noprofile norc posix
     pretty-print restricted verbose version"
);

/// Options of `shopt` that do not change the meaning of names and globs.
pub(crate) const SHOPT: &[&str] = words!(
    "checkhash checkwinsize failglob histappend inherit_errexit lastpipe nullglob pipefail errexit
     nounset xtrace xpg_echo"
);

/// Programs in other tables that also run the words they are given.
pub(crate) const ALSO_RUN: &[&str] = words!(
    "npm npx yarn pnpm pnpx bun bunx poetry uv uvx pipx rustup parallel tmux screen firejail bwrap
     proot gdb lldb nix fd fdfind cargo expect"
);

/// Words with which a program runs something, in any case.
pub(crate) const HOOKS: &WordTable = &[
    (
        &["apt", "apt-get", "apt-cache", "aptitude"],
        words!(
            "invoke dir::bin pre-install-pkgs proxy-auto-detect --config-file -c= dir= dir::etc=
             dir::etc::main dir::etc::parts gpgvcommand rootdir"
        ),
    ),
    (
        &["ssh", "scp", "sftp", "mosh"],
        words!(
            "proxycommand localcommand knownhostscommand include pkcs11provider securitykeyprovider
             xauthlocation"
        ),
    ),
    (&["less"], &["+!", "--lesskey"]),
    (&["more", "man", "view"], &["+!"]),
    (&["make", "gmake"], &["--eval"]),
    (&["sqlite3"], &[".shell", ".system"]),
    (&["psql", "mysql", "mariadb"], &["\\!"]),
    (&["sysctl"], &["core_pattern", "kernel.modprobe"]),
];

/// Names that likely start a command among the arguments of a program in no table.
pub(crate) const LAUNCHED: &[&str] = words!(
    "rm rmdir unlink shred srm dd wipefs mkfs mke2fs tee truncate chmod chown chgrp chattr mv cp ln
     rsync kill sudo doas su env nice nohup timeout setsid xargs find python perl ruby node php lua
     awk gawk mawk curl wget nc ncat socat ssh git tar sed cat busybox eval"
);

/// Interpreters and other programs that run code which is not shell.
pub(crate) const OPAQUE: &[&str] = words!(
    "python python2 python3 pypy pypy3 ipython perl ruby irb node nodejs deno bun tsx ts-node php
     lua luajit awk gawk mawk nawk osascript pwsh powershell rscript r julia ghci runghc scala
     groovy jshell sqlite3 psql mysql mariadb mongosh redis-cli gdb lldb vim vi nvim view ex ed
     emacs emacsclient expect tclsh wish guile racket sbcl clisp m4 dc fish csh tcsh nu elvish
     xonsh rc es ssh mosh telnet ftp sftp lftp screen tmux parallel socat ncat nc netcat gcore qemu
     proot bwrap firejail run-parts sudoedit agetty getty telnetd inetd crond runsv runsvdir tcpsvd
     udpsvd inotifyd sensible-editor sensible-pager sensible-browser debconf invoke-rc.d machinectl
     systemd-nspawn uv poetry pipx uvx npx bunx pnpx"
);

/// The [`OPAQUE`] programs that run code from their input.
pub(crate) const READ_INPUT: &[&str] = words!(
    "python pypy perl ruby node nodejs php lua deno bun fish csh tcsh pwsh tclsh osascript rscript
     r julia guile racket sbcl clisp expect parallel jshell groovy elvish nu xonsh"
);

/// Programs with sub-commands that run code.
pub(crate) const OPAQUE_SUBCOMMANDS: &WordTable = &[
    (
        &["docker"],
        words!("exec run compose build buildx create start"),
    ),
    (
        &["podman"],
        &["exec", "run", "build", "create", "start", "unshare"],
    ),
    (&["nerdctl"], &["exec", "run"]),
    (&["kubectl"], &["exec", "run", "debug", "cp", "plugin"]),
    (&["oc"], &["exec", "run", "debug", "rsh"]),
    (&["lxc"], &["exec"]),
    (&["vagrant"], &["ssh"]),
    (&["adb"], &["shell"]),
    (&["nix"], &["develop", "shell", "run"]),
];

/// Options that name a command. Long ones may be abbreviated.
pub(crate) const RUNS: &WordTable = &[
    (&["ack"], &["--pager", "--ackrc"]),
    (&["ag", "bat", "batcat"], &["--pager"]),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["tcpdump"], &["-z"]),
    (
        &["less"],
        &["-k", "--lesskey-file", "--lesskey-src", "--lesskey-content"],
    ),
    (&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
    (&["ctags"], &["--options"]),
    (
        &["gcc", "g++", "cc", "c++", "cpp"],
        &["-wrapper", "-fplugin", "-specs"],
    ),
    (
        &["clang", "clang++"],
        &["-fplugin", "-load", "-fpass-plugin"],
    ),
    (&["cargo"], &["--config"]),
    (&["ld"], &["-plugin", "--plugin"]),
    (&["logrotate"], &["-m", "--mail"]),
    (
        &["dpkg"],
        &["--pre-invoke", "--post-invoke", "--status-logger"],
    ),
];

/// Programs that download content which the line does not show.
pub(crate) const DOWNLOADERS: &[&str] = words!(
    "curl wget wget2 fetch aria2c http https httpie xh lynx links w3m curlie axel nc ncat netcat
     socat ftp tftp scp gsutil aws"
);

/// Programs that decode text to content which the line does not show.
pub(crate) const DECODERS: &[&str] = words!(
    "base64 base32 basenc gbase64 xxd uudecode openssl gpg rev tr gunzip zcat bzcat xzcat unxz
     zstdcat gzip bzip2 xz zstd hexdump"
);

/// Built-ins that set the variables they are given.
pub(crate) const SETTERS: &[&str] = words!(
    "export declare typeset local readonly read mapfile readarray unset getopts printf let setenv"
);

/// Built-ins that load code or change the meaning of a name.
pub(crate) const REBINDERS: &[&str] =
    words!("alias enable hash bind complete compgen fc shopt compopt zmodload autoload");

/// Programs that run something later.
pub(crate) const SCHEDULERS: &[&str] =
    words!("at batch crontab launchctl schtasks anacron incrontab");
