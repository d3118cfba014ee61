//! Programs that run another one, with their options.
//!
//! The marks are those of [`Row`]. Facts are from the manual pages of coreutils,
//! util-linux, findutils, procps, bash, dpkg, systemd and of each program.

use crate::options::Row;

const SUDO_LONG: &str = "askpass background bell close-from: chdir% preserve-env? edit* group: \
    set-home help host: login reset-timestamp remove-timestamp no-update non-interactive \
    preserve-groups prompt: chroot% role: stdin shell type: command-timeout: other-user: user: \
    version validate list";

const SETARCH_LONG: &str = "32bit fdpic-funcptrs short-inode addr-compat-layout \
    addr-no-randomize whole-seconds sticky-timeouts read-implies-exec mmap-page-zero 3gb 4gb \
    uname-2.6 verbose list help version show? pid^";

pub(crate) const LAUNCHERS: &[Row] = &[
    // coreutils
    Row::launcher(
        "env genv",
        0,
        "+i0vu:C%S!a:",
        "ignore-environment null debug unset: chdir% split-string! argv0: block-signal? \
         default-signal? ignore-signal? list-signal-handling help version",
    )
    .assigns(),
    Row::launcher("nice gnice", 0, "+n:#", "adjustment: help version"),
    Row::launcher("nohup gnohup", 0, "+", "help version"),
    Row::launcher(
        "timeout gtimeout",
        1,
        "+k:s:vfp",
        "kill-after: signal: foreground preserve-status verbose help version",
    ),
    Row::launcher(
        "stdbuf gstdbuf",
        0,
        "+i:o:e:",
        "input: output: error: help version",
    ),
    Row::launcher(
        "chroot gchroot",
        1,
        "+",
        "groups: userspec: skip-chdir help version",
    )
    .counts()
    .shell(),
    Row::launcher(
        "runcon gruncon",
        0,
        "+cl:r:t:u:",
        "compute range: role: type: user: help version",
    )
    .counts(),
    // util-linux
    Row::launcher("setsid", 0, "+cfwhV", "ctty fork wait help version"),
    Row::launcher(
        "ionice",
        0,
        "+c:n:p^P^tu^hV",
        "class: classdata: pid^ pgid^ ignore uid^ help version",
    ),
    Row::launcher(
        "chrt",
        1,
        "+abdD:efhimop^P:rRT:vV",
        "all-tasks batch deadline ext fifo help idle max other pid^ reset-on-fork rr \
         sched-deadline: sched-period: sched-runtime: verbose version",
    ),
    Row::launcher("taskset", 1, "+ap^chV", "all-tasks cpu-list pid^ help version"),
    Row::launcher("setarch", 0, "+hVvlBFILRSTXZ3p^s?", SETARCH_LONG)
        .counts()
        .shell(),
    Row::launcher(
        "linux32 linux64 uname26 i386 i486 i586 i686 x86_64 aarch64 armv7l ppc ppc64 s390 s390x \
         sparc sparc64 mips mips64 alpha riscv64 loongarch64",
        0,
        "+hVvlBFILRSTXZ3p^s?",
        SETARCH_LONG,
    )
    .counts()
    .shell(),
    Row::launcher(
        "prlimit",
        0,
        "+c?d?e?f?hi?l?m?n?o:p^q?r?s?t?u?v?x?y?V",
        "as? core? cpu? data? fsize? help locks? memlock? msgqueue? nice? nofile? noheadings \
         nproc? output: pid^ raw rss? rtprio? rttime? sigpending? stack? verbose version",
    ),
    Row::launcher("choom", 0, "+n:p^hV", "adjust: pid^ help version"),
    Row::launcher(
        "uclampset",
        0,
        "+m:M:p^asRvhV",
        "util-min: util-max: pid^ all-tasks system reset-on-fork verbose help version",
    )
    .counts(),
    Row::launcher("coresched", 1, "+s:d:t:vhV", "source: dest: dest-type: verbose help version")
        .counts(),
    Row::launcher(
        "unshare",
        0,
        "+mupinCUTrcfl:S:G:R%w%hV",
        "mount? uts? ipc? net? pid? cgroup? user? time? root% wd% setuid: setgid: help version \
         fork kill-child? forward-signals mount-proc? mount-binfmt? map-user: map-group: \
         map-users: map-groups: map-root-user map-current-user map-auto map-subids owner: \
         propagation: setgroups: keep-caps monotonic: boottime: load-interp:",
    )
    .counts()
    .shell(),
    Row::launcher(
        "nsenter",
        0,
        "+at:m?u?i?n?p?C?U?T?N:S:G:r?%w?%W%FZechV",
        "all target: mount? uts? ipc? net? pid? cgroup? user? user-parent time? net-socket: root?% \
         wd?% wdns% setuid: setgid: keep-caps env join-cgroup preserve-credentials no-fork \
         follow-context help version",
    )
    .counts()
    .shell(),
    Row::launcher(
        "setpriv",
        0,
        "+dhV",
        "ambient-caps: apparmor-profile: bounding-set: clear-groups dump egid: euid: groups: \
         help inh-caps: init-groups keep-groups landlock-access: landlock-rule: list-caps nnp \
         no-new-privs pdeathsig: ptracer: regid: reset-env reuid: rgid: ruid: seccomp-filter: \
         securebits: selinux-label: version",
    )
    .counts(),
    Row::launcher(
        "flock",
        1,
        "+sxeunw:oE:Fc!vhV",
        "shared exclusive unlock nonblock nb timeout: wait: close conflict-exit-code: no-fork \
         command! verbose fcntl help version",
    )
    .counts(),
    Row::launcher(
        "script",
        1,
        "aB>c!eE:fI>m:O>o:qT?>t?>FkhV",
        "append command! echo: flush force help log-in> log-io> log-out> log-timing> \
         logging-format: output-limit: quiet return timing?> version",
    )
    .counts()
    .shell(),
    Row::launcher(
        "scriptlive",
        0,
        "+B:I<T<c!d:m:t<hV",
        "command! divisor: help log-in< log-io< log-timing< maxdelay: timing< version",
    )
    .counts()
    .shell(),
    Row::launcher("switch_root run-init", 1, "+hVdc:", "help version").counts(),
    // sudo and the like
    Row::launcher(
        "sudo",
        0,
        "+ABbEe*HhiKklNnPSsVvC:D%g:p:R%r:T:t:U:u:",
        SUDO_LONG,
    )
    .assigns()
    .counts()
    .shell(),
    Row::launcher("doas", 0, "+C:Lnsu:", "").counts().shell(),
    Row::launcher(
        "pkexec",
        0,
        "+",
        "user: keep-cwd disable-internal-agent help version",
    )
    .counts()
    .shell(),
    Row::launcher("gosu su-exec setuidgid envuidgid", 1, "+", "").counts(),
    Row::launcher("sg", 1, "c!", "").counts().shell().joins(),
    // bash and dash
    Row::launcher("command", 0, "+pv^V^", ""),
    Row::launcher("builtin", 0, "+", ""),
    Row::launcher("exec", 0, "+cla:", ""),
    // time, procps, moreutils and others
    Row::launcher(
        "time gtime",
        0,
        "+apqvVf:o>h",
        "append format: output> portability quiet verbose version help",
    ),
    Row::launcher(
        "watch",
        0,
        "+bcCd?efghn:pq:rs:tvwx",
        "beep color no-color differences? equexit: errexit exec follow chgexit interval: \
         precise no-rerun shotsdir: no-title no-wrap help version",
    )
    .counts()
    .joins(),
    Row::launcher("unbuffer", 0, "+p", ""),
    Row::launcher("chronic", 0, "+ve", ""),
    Row::launcher("ifne", 0, "+n", "").counts(),
    Row::launcher("zrun", 0, "+", "").counts(),
    Row::launcher("lckdo", 1, "+wWeEsxqt:", "").counts(),
    Row::launcher("caffeinate", 0, "+dimsut:w:", ""),
    Row::launcher(
        "fakeroot",
        0,
        "+b:hi<l@s>uv",
        "lib@ faked@ save-file> load-file< unknown-is-real fd-base: help version",
    )
    .shell(),
    Row::launcher("fakechroot", 0, "+hvse:d:c:b:", "").counts().shell(),
    Row::launcher(
        "numactl",
        0,
        "+aHshli:I:N:C:c:m:M:p:P:w:",
        "all interleave: weighted-interleave: cpunodebind: physcpubind: membind: preferred: \
         preferred-many: localalloc hardware show balancing",
    ),
    Row::launcher(
        "xvfb-run",
        0,
        "+ae>f<hln:p:s:w:",
        "auto-servernum error-file> auth-file< help listen-tcp server-num: xauth-protocol: \
         server-args: wait:",
    ),
    Row::launcher("dbus-run-session", 0, "+", "config-file@ dbus-daemon! help version"),
    Row::launcher("dbus-launch", 0, "+", "auto-syntax binary-syntax close-stderr \
         exit-with-session exit-with-x11 autolaunch: sh-syntax csh-syntax config-file@ help version")
    .counts(),
    Row::launcher("busybox toybox", 0, "+", "list list-full help install*"),
    Row::launcher(
        "strace",
        0,
        "+a:Ab:cCdDe:E:fFhiI:kno>Op:P:qrs:S:tTu:U:vVwxX:yYzZN",
        "abbrev: absolute-timestamps? argv0: always-show-pid attach: columns: \
         const-print-style: daemonize? debug decode-fds? decode-pids? detach-on: env: failed-only \
         fault: follow-forks help inject: instruction-pointer interruptible: kvm: no-abbrev \
         namespace: output> output-append-mode output-separately quiet? raw: read: \
         relative-timestamps? seccomp-bpf secontext? signal: stack-traces? status: string-limit: \
         strings-in-hex? successful-only summary summary-columns: summary-only summary-sort-by: \
         summary-syscall-overhead? summary-wall-clock syscall-limit: syscall-number syscall-times? \
         tips? trace: trace-fds: trace-path: user: verbose: version write:",
    ),
    Row::launcher(
        "ltrace",
        0,
        "+a:A:bcCD:e:F<fhil:Ln:o>p:rs:StTu:Vw:x:X:",
        "align: config< debug: demangle help indent: library: no-signals output> version where:",
    ),
    Row::launcher("entr", 0, "+acdnprszx", "").joins(),
    Row::launcher("logsave", 1, "+asv", "").counts(),
    Row::launcher("fstab-decode", 0, "+", "").counts(),
    Row::launcher("ssh-agent", 0, "+csdDka:E:P:t:O:TUu", "").counts(),
    Row::launcher("eatmydata nocache torsocks torify tsocks catchsegv", 0, "+n:", "").counts(),
    Row::launcher("proxychains proxychains4", 0, "+qf:", "").counts(),
    Row::launcher("faketime", 1, "+mpf", "help version exclude-monotonic").counts(),
    Row::launcher("cpulimit", 0, "+l:p^e^P^zivhb", "limit: pid^ exe^ path^").counts(),
    Row::launcher("cgexec", 0, "+g:hb", "sticky").counts(),
    Row::launcher("tini", 0, "+svgwp:le:h", "version").counts(),
    Row::launcher("dumb-init", 0, "+cvhVr:", "single-child rewrite: verbose help version").counts(),
    Row::launcher("envdir setlock", 1, "+nNxX", "").counts(),
    Row::launcher("softlimit", 0, "+m:d:s:l:a:o:p:f:c:r:t:", "").counts(),
    Row::launcher("chpst", 0, "+u:U:b:e:d:o:p:f:c:r:t:n:l:L:m:vP012", "").counts(),
    Row::launcher("cttyhack openvt", 0, "+c:fuslvwe", "").counts(),
    Row::launcher(
        "systemd-run",
        0,
        "+hqrtPdGSu:p:E:M:H:C:",
        "collect description: gid: uid: help host: machine: nice: no-ask-password no-block \
         expand-environment: on-active: on-boot: on-calendar: on-clock-change on-startup: \
         on-timezone-change on-unit-active: on-unit-inactive: path-property: pipe property: pty \
         quiet remain-after-exit same-dir scope send-sighup service-type: setenv: shell slice: \
         slice-inherit socket-property: system timer-property: unit: user version wait \
         working-directory% capsule: background: ignore-failure job-mode: json:",
    )
    .counts()
    .shell(),
    Row::launcher(
        "systemd-inhibit",
        0,
        "+h",
        "help list mode: no-legend no-pager no-ask-password version what: who: why: json:",
    )
    .counts(),
    Row::launcher(
        "systemd-cat",
        0,
        "+hp:t:",
        "help identifier: level-prefix: namespace: priority: stderr-priority: version",
    )
    .counts(),
    Row::launcher(
        "systemd-socket-activate",
        0,
        "+hl:adE:",
        "listen: accept datagram inetd seqpacket setenv: fdname: now help version",
    )
    .counts(),
    Row::launcher(
        "start-stop-daemon",
        0,
        "+SKTHa&x&p>n:u:c:g:r%d%k:N:P:I:O>bCmoqtvs:R:V",
        "start stop status help version test oknodo quiet chuid: chroot% chdir% umask: startas& \
         exec& pidfile> pid: ppid: user: group: name: nicelevel: procsched: iosched: background \
         no-close make-pidfile remove-pidfile retry: signal: notify-await notify-timeout: output> \
         verbose",
    )
    .counts(),
];

/// The options of `su` and `runuser`.
pub(crate) const SU: Row = Row::new(
    "su runuser",
    "c!fg:G:lmpPs@T:u:w:hV",
    "command! session-command! fast group: supp-group: login preserve-environment pty no-pty \
     shell@ user: whitelist-environment: help version",
);

/// `xargs`, whose first operand is the program.
pub(crate) const XARGS: Row = Row::new(
    "xargs gxargs",
    "+0a<d:E:e?I:i?J:L:l?n:oP:prR:S:s:tx",
    "arg-file< delimiter: eof? replace? max-lines? max-args: max-procs: max-chars: null \
     interactive no-run-if-empty open-tty process-slot-var: show-limits verbose exit help version",
);
