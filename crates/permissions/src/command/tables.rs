//! What is known about programs. Data only.

mod danger;
mod settings;
mod usage;

pub(crate) use danger::*;
pub(crate) use settings::*;
pub(crate) use usage::*;

/// A program that runs another one.
pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    /// Short options that take a value.
    pub(crate) values: &'static str,
    /// Short options that take none.
    pub(crate) plain: &'static str,
    /// Long options that take a value as a word of its own.
    pub(crate) longs: &'static [&'static str],
    /// How many operands stand before the command.
    pub(crate) skip: usize,
    /// Whether `NAME=value` may stand before the command.
    pub(crate) assigns: bool,
    /// Whether it changes who or where the command is: then it needs a rule of
    /// its own.
    pub(crate) counts: bool,
}

const fn wrapper(
    name: &'static str,
    values: &'static str,
    plain: &'static str,
    longs: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        name,
        values,
        plain,
        longs,
        skip: 0,
        assigns: false,
        counts: false,
    }
}

const fn skip(skip: usize, wrapper: Wrapper) -> Wrapper {
    Wrapper { skip, ..wrapper }
}

const fn counts(wrapper: Wrapper) -> Wrapper {
    Wrapper {
        counts: true,
        ..wrapper
    }
}

const fn assigns(wrapper: Wrapper) -> Wrapper {
    Wrapper {
        assigns: true,
        ..wrapper
    }
}

const SUDO_LONGS: &[&str] = &[
    "--user",
    "--group",
    "--prompt",
    "--chdir",
    "--host",
    "--role",
    "--type",
    "--chroot",
    "--close-from",
    "--command-timeout",
    "--other-user",
];

pub(crate) const WRAPPERS: &[Wrapper] = &[
    assigns(wrapper(
        "env",
        "uCSa",
        "i0v",
        &["--unset", "--chdir", "--split-string", "--argv0"],
    )),
    assigns(counts(wrapper(
        "sudo",
        "ugpChrtTRDU",
        "EnHSisbkKAlvVPB",
        SUDO_LONGS,
    ))),
    assigns(counts(wrapper(
        "sudoedit",
        "ugpChrtTRDU",
        "EnHSisbkKAlvVPB",
        SUDO_LONGS,
    ))),
    counts(wrapper("doas", "uC", "nLs", &[])),
    counts(wrapper("pkexec", "", "", &["--user"])),
    wrapper("nice", "n", "", &["--adjustment"]),
    wrapper("nohup", "", "", &[]),
    skip(
        1,
        wrapper("timeout", "ks", "vfp", &["--kill-after", "--signal"]),
    ),
    skip(
        1,
        wrapper("gtimeout", "ks", "vfp", &["--kill-after", "--signal"]),
    ),
    wrapper("stdbuf", "ioe", "", &["--input", "--output", "--error"]),
    wrapper("unbuffer", "", "p", &[]),
    wrapper("setsid", "", "cfw", &[]),
    wrapper("ionice", "cnpPu", "t", &["--class", "--classdata", "--pid"]),
    skip(1, wrapper("chrt", "TPD", "abdfiomprRv", &[])),
    skip(1, wrapper("taskset", "", "acp", &[])),
    wrapper("time", "fo", "apqvV", &["--format", "--output"]),
    wrapper("command", "", "pvV", &[]),
    wrapper("builtin", "", "", &[]),
    wrapper("exec", "a", "cl", &[]),
    wrapper("caffeinate", "tw", "dimsu", &[]),
    wrapper("fakeroot", "bilsu", "", &["--lib", "--faked"]),
    wrapper("numactl", "NCmip", "sHl", &[]),
    wrapper("prlimit", "po", "", &[]),
    wrapper("setarch", "", "BFILRSTXZ3v", &[]),
    wrapper("linux64", "", "BFILRSTXZ3v", &[]),
    wrapper("linux32", "", "BFILRSTXZ3v", &[]),
    wrapper("chronic", "", "ev", &[]),
    wrapper(
        "xvfb-run",
        "efnpsw",
        "a",
        &["--server-args", "--server-num"],
    ),
    wrapper("dbus-run-session", "", "", &[]),
    wrapper("busybox", "", "", &[]),
    wrapper("toybox", "", "", &[]),
    counts(wrapper(
        "unshare",
        "SGRw",
        "mUupinCcfrT",
        &["--setuid", "--setgid", "--root", "--wd"],
    )),
    counts(wrapper(
        "nsenter",
        "tSGrwW",
        "amuinpUCTFZe",
        &["--target", "--setuid", "--setgid"],
    )),
    counts(wrapper(
        "setpriv",
        "",
        "",
        &["--reuid", "--regid", "--groups"],
    )),
    counts(wrapper(
        "systemd-run",
        "pHMuE",
        "trPqdSGC",
        &["--unit", "--property", "--uid", "--gid"],
    )),
    skip(
        1,
        counts(wrapper("chroot", "", "", &["--userspec", "--groups"])),
    ),
    wrapper("strace", "aeEIoOpPsSuUbX", "cCdfFhiknqrtTvVwxyYzZ", &[]),
    wrapper("ltrace", "aeDFlnopsuwxX", "bcCfhiLrStTV", &[]),
    counts(wrapper(
        "runuser",
        "ugGcsw",
        "lmpfP",
        &["--user", "--group", "--supp-group", "--shell"],
    )),
    skip(
        1,
        wrapper(
            "flock",
            "wEc",
            "sxueFnov",
            &["--timeout", "--wait", "--conflict-exit-code"],
        ),
    ),
    skip(
        1,
        wrapper(
            "script",
            "IOTBEmotc",
            "aefqk",
            &["--log-out", "--log-in", "--log-io", "--timing"],
        ),
    ),
    wrapper("entr", "", "acdnprszx", &[]),
];

/// Programs that run a string as a shell program, given with `-c`.
pub(crate) const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "ksh",
    "ksh93",
    "mksh",
    "pdksh",
    "zsh",
    "rbash",
    "yash",
    "posh",
    "busybox-sh",
    "hush",
    "oksh",
    "loksh",
];

/// Shells of another language: opaque.
pub(crate) const OPAQUE: &[&str] = &[
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "ipython",
    "perl",
    "ruby",
    "irb",
    "node",
    "nodejs",
    "deno",
    "bun",
    "tsx",
    "ts-node",
    "php",
    "lua",
    "luajit",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "osascript",
    "pwsh",
    "powershell",
    "rscript",
    "r",
    "julia",
    "ghci",
    "runghc",
    "scala",
    "groovy",
    "jshell",
    "sqlite3",
    "psql",
    "mysql",
    "mariadb",
    "mongosh",
    "redis-cli",
    "gdb",
    "lldb",
    "vim",
    "vi",
    "nvim",
    "view",
    "ex",
    "ed",
    "emacs",
    "emacsclient",
    "expect",
    "tclsh",
    "wish",
    "guile",
    "racket",
    "sbcl",
    "clisp",
    "m4",
    "dc",
    "fish",
    "csh",
    "tcsh",
    "nu",
    "elvish",
    "xonsh",
    "rc",
    "es",
    "ssh",
    "mosh",
    "telnet",
    "ftp",
    "sftp",
    "lftp",
    "screen",
    "tmux",
    "parallel",
    "socat",
    "ncat",
    "nc",
    "netcat",
    "gcore",
    "qemu",
    "proot",
    "bwrap",
    "firejail",
    "uv",
    "poetry",
    "pipx",
    "uvx",
    "npx",
    "bunx",
    "pnpx",
];

/// Of these, some sub-commands hand code over.
pub(crate) const OPAQUE_SUBCOMMANDS: &[(&str, &[&str])] = &[
    (
        "docker",
        &[
            "exec", "run", "compose", "build", "buildx", "create", "start",
        ],
    ),
    (
        "podman",
        &["exec", "run", "build", "create", "start", "unshare"],
    ),
    ("nerdctl", &["exec", "run"]),
    ("kubectl", &["exec", "run", "debug", "cp", "plugin"]),
    ("oc", &["exec", "run", "debug", "rsh"]),
    ("lxc", &["exec"]),
    ("vagrant", &["ssh"]),
    ("adb", &["shell"]),
    ("nix", &["develop", "shell", "run"]),
];

/// Options that name a command. A long one may be cut short.
pub(crate) const RUNS: &[(&str, &[&str])] = &[
    (
        "tar",
        &[
            "-I",
            "-F",
            "--use-compress-program",
            "--to-command",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    ),
    ("bsdtar", &["--use-compress-program"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("ag", &["--pager"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("wget", &["--use-askpass"]),
    ("tcpdump", &["-z"]),
    ("less", &["-k", "--lesskey-file"]),
    ("flock", &["-c", "--command"]),
    ("script", &["-c", "--command"]),
    ("su", &["-c", "--command", "--session-command"]),
    ("runuser", &["-c", "--command", "--session-command"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("ctags", &["--options"]),
    ("gcc", &["-wrapper", "-fplugin"]),
    ("ld", &["-plugin"]),
    ("logrotate", &["-m", "--mail"]),
    ("watch", &[]),
];

/// Programs that load what a line may not show.
pub(crate) const DOWNLOADERS: &[&str] = &[
    "curl", "wget", "wget2", "fetch", "aria2c", "http", "https", "httpie", "xh", "lynx", "links",
    "w3m", "curlie", "axel", "nc", "ncat", "netcat", "socat", "ftp", "tftp", "scp", "gsutil",
    "aws",
];

/// Programs that turn text into other text that a line does not show.
pub(crate) const DECODERS: &[&str] = &[
    "base64", "base32", "basenc", "gbase64", "xxd", "uudecode", "openssl", "gpg", "rev", "tr",
    "gunzip", "zcat", "bzcat", "xzcat", "unxz", "zstdcat", "gzip", "bzip2", "xz", "zstd",
    "hexdump",
];

/// Built-ins that set the variables they are given.
pub(crate) const SETTERS: &[&str] = &[
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "read",
    "mapfile",
    "readarray",
    "unset",
    "getopts",
    "printf",
    "let",
    "setenv",
];

/// Built-ins that load code or change what a name stands for.
pub(crate) const REBINDERS: &[&str] = &[
    "alias", "enable", "hash", "bind", "complete", "compgen", "fc", "shopt", "compopt", "zmodload",
    "autoload",
];

/// Programs that run something later.
pub(crate) const LATER: &[&str] = &[
    "at",
    "batch",
    "crontab",
    "launchctl",
    "schtasks",
    "anacron",
    "incrontab",
];
