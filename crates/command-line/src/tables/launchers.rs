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
    Row::new(
        "env genv",
        "+i0vu:C%S!a:",
        "ignore-environment null debug unset: chdir% split-string! argv0: block-signal? \
         default-signal? ignore-signal? list-signal-handling help version",
    )
    .assigns(),
    Row::new("nice gnice", "+n:#", "adjustment: help version"),
    Row::new("nohup gnohup", "+", "help version"),
    Row::new(
        "timeout gtimeout",
        "+k:s:vfp",
        "kill-after: signal: foreground preserve-status verbose help version",
    )
    .skip(1),
    Row::new(
        "stdbuf gstdbuf",
        "+i:o:e:",
        "input: output: error: help version",
    ),
    Row::new(
        "chroot gchroot",
        "+",
        "groups: userspec: skip-chdir help version",
    )
    .skip(1)
    .counts()
    .shell(),
    Row::new(
        "runcon gruncon",
        "+cl:r:t:u:",
        "compute range: role: type: user: help version",
    )
    .counts(),
    // util-linux
    Row::new("setsid", "+cfwhV", "ctty fork wait help version"),
    Row::new(
        "ionice",
        "+c:n:p^P^tu^hV",
        "class: classdata: pid^ pgid^ ignore uid^ help version",
    ),
    Row::new(
        "chrt",
        "+abdD:efhimop^P:rRT:vV",
        "all-tasks batch deadline ext fifo help idle max other pid^ reset-on-fork rr \
         sched-deadline: sched-period: sched-runtime: verbose version",
    )
    .skip(1),
    Row::new("taskset", "+ap^chV", "all-tasks cpu-list pid^ help version").skip(1),
    Row::new("setarch", "+hVvlBFILRSTXZ3p^s?", SETARCH_LONG)
        .counts()
        .shell(),
    Row::new(
        "linux32 linux64 uname26 i386 i486 i586 i686 x86_64 aarch64 armv7l ppc ppc64 s390 s390x \
         sparc sparc64 mips mips64 alpha riscv64 loongarch64",
        "+hVvlBFILRSTXZ3p^s?",
        SETARCH_LONG,
    )
    .counts()
    .shell(),
    Row::new(
        "prlimit",
        "+c?d?e?f?hi?l?m?n?o:p^q?r?s?t?u?v?x?y?V",
        "as? core? cpu? data? fsize? help locks? memlock? msgqueue? nice? nofile? noheadings \
         nproc? output: pid^ raw rss? rtprio? rttime? sigpending? stack? verbose version",
    ),
    Row::new("choom", "+n:p^hV", "adjust: pid^ help version"),
    Row::new(
        "uclampset",
        "+m:M:p^asRvhV",
        "util-min: util-max: pid^ all-tasks system reset-on-fork verbose help version",
    )
    .counts(),
    Row::new("coresched", "+s:d:t:vhV", "source: dest: dest-type: verbose help version")
        .skip(1)
        .counts(),
    Row::new(
        "unshare",
        "+mupinCUTrcfl:S:G:R%w%hV",
        "mount? uts? ipc? net? pid? cgroup? user? time? root% wd% setuid: setgid: help version \
         fork kill-child? forward-signals mount-proc? mount-binfmt? map-user: map-group: \
         map-users: map-groups: map-root-user map-current-user map-auto map-subids owner: \
         propagation: setgroups: keep-caps monotonic: boottime: load-interp:",
    )
    .counts()
    .shell(),
    Row::new(
        "nsenter",
        "+at:m?u?i?n?p?C?U?T?N:S:G:r?%w?%W%FZechV",
        "all target: mount? uts? ipc? net? pid? cgroup? user? user-parent time? net-socket: root?% \
         wd?% wdns% setuid: setgid: keep-caps env join-cgroup preserve-credentials no-fork \
         follow-context help version",
    )
    .counts()
    .shell(),
    Row::new(
        "setpriv",
        "+dhV",
        "ambient-caps: apparmor-profile: bounding-set: clear-groups dump egid: euid: groups: \
         help inh-caps: init-groups keep-groups landlock-access: landlock-rule: list-caps nnp \
         no-new-privs pdeathsig: ptracer: regid: reset-env reuid: rgid: ruid: seccomp-filter: \
         securebits: selinux-label: version",
    )
    .counts(),
    Row::new(
        "flock",
        "+sxeunw:oE:Fc!vhV",
        "shared exclusive unlock nonblock nb timeout: wait: close conflict-exit-code: no-fork \
         command! verbose fcntl help version",
    )
    .skip(1)
    .counts(),
    Row::new(
        "script",
        "aB>c!eE:fI>m:O>o:qT?>t?>FkhV",
        "append command! echo: flush force help log-in> log-io> log-out> log-timing> \
         logging-format: output-limit: quiet return timing?> version",
    )
    .skip(1)
    .counts()
    .shell(),
    Row::new(
        "scriptlive",
        "+B:I<T<c!d:m:t<hV",
        "command! divisor: help log-in< log-io< log-timing< maxdelay: timing< version",
    )
    .counts()
    .shell(),
    Row::new("switch_root run-init", "+hVdc:", "help version").skip(1).counts(),
    // sudo and the like
    Row::new(
        "sudo",
        "+ABbEe*HhiKklNnPSsVvC:D%g:p:R%r:T:t:U:u:",
        SUDO_LONG,
    )
    .assigns()
    .counts()
    .shell(),
    Row::new("doas", "+C:Lnsu:", "").counts().shell(),
    Row::new(
        "pkexec",
        "+",
        "user: keep-cwd disable-internal-agent help version",
    )
    .counts()
    .shell(),
    Row::new("gosu su-exec setuidgid envuidgid", "+", "").skip(1).counts(),
    Row::new("sg", "c!", "").skip(1).counts().shell().joins(),
    // bash and dash
    Row::new("command", "+pv^V^", ""),
    Row::new("builtin", "+", ""),
    Row::new("exec", "+cla:", ""),
    // time, procps, moreutils and others
    Row::new(
        "time gtime",
        "+apqvVf:o>h",
        "append format: output> portability quiet verbose version help",
    ),
    Row::new(
        "watch",
        "+bcCd?efghn:pq:rs:tvwx",
        "beep color no-color differences? equexit: errexit exec follow chgexit interval: \
         precise no-rerun shotsdir: no-title no-wrap help version",
    )
    .counts()
    .joins(),
    Row::new("unbuffer", "+p", ""),
    Row::new("chronic", "+ve", ""),
    Row::new("ifne", "+n", "").counts(),
    Row::new("zrun", "+", "").counts(),
    Row::new("lckdo", "+wWeEsxqt:", "").skip(1).counts(),
    Row::new("caffeinate", "+dimsut:w:", ""),
    Row::new(
        "fakeroot",
        "+b:hi<l@s>uv",
        "lib@ faked@ save-file> load-file< unknown-is-real fd-base: help version",
    )
    .shell(),
    Row::new("fakechroot", "+hvse:d:c:b:", "").counts().shell(),
    Row::new(
        "numactl",
        "+aHshli:I:N:C:c:m:M:p:P:w:",
        "all interleave: weighted-interleave: cpunodebind: physcpubind: membind: preferred: \
         preferred-many: localalloc hardware show balancing",
    ),
    Row::new(
        "xvfb-run",
        "+ae>f<hln:p:s:w:",
        "auto-servernum error-file> auth-file< help listen-tcp server-num: xauth-protocol: \
         server-args: wait:",
    ),
    Row::new("dbus-run-session", "+", "config-file@ dbus-daemon! help version"),
    Row::new("dbus-launch", "+", "auto-syntax binary-syntax close-stderr \
         exit-with-session exit-with-x11 autolaunch: sh-syntax csh-syntax config-file@ help version")
    .counts(),
    Row::new("busybox toybox", "+", "list list-full help install*"),
    Row::new(
        "strace",
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
    Row::new(
        "ltrace",
        "+a:A:bcCD:e:F<fhil:Ln:o>p:rs:StTu:Vw:x:X:",
        "align: config< debug: demangle help indent: library: no-signals output> version where:",
    ),
    Row::new("entr", "+acdnprszx", "").joins(),
    Row::new("logsave", "+asv", "").skip(1).counts(),
    Row::new("fstab-decode", "+", "").counts(),
    Row::new("ssh-agent", "+csdDka:E:P:t:O:TUu", "").counts(),
    Row::new("eatmydata nocache torsocks torify tsocks catchsegv", "+n:", "").counts(),
    Row::new("proxychains proxychains4", "+qf:", "").counts(),
    Row::new("faketime", "+mpf", "help version exclude-monotonic").skip(1).counts(),
    Row::new("cpulimit", "+l:p^e^P^zivhb", "limit: pid^ exe^ path^").counts(),
    Row::new("cgexec", "+g:hb", "sticky").counts(),
    Row::new("tini", "+svgwp:le:h", "version").counts(),
    Row::new("dumb-init", "+cvhVr:", "single-child rewrite: verbose help version").counts(),
    Row::new("envdir setlock", "+nNxX", "").skip(1).counts(),
    Row::new("softlimit", "+m:d:s:l:a:o:p:f:c:r:t:", "").counts(),
    Row::new("chpst", "+u:U:b:e:d:o:p:f:c:r:t:n:l:L:m:vP012", "").counts(),
    Row::new("cttyhack openvt", "+c:fuslvwe", "").counts(),
    Row::new(
        "systemd-run",
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
    Row::new(
        "systemd-inhibit",
        "+h",
        "help list mode: no-legend no-pager no-ask-password version what: who: why: json:",
    )
    .counts(),
    Row::new(
        "systemd-cat",
        "+hp:t:",
        "help identifier: level-prefix: namespace: priority: stderr-priority: version",
    )
    .counts(),
    Row::new(
        "systemd-socket-activate",
        "+hl:adE:",
        "listen: accept datagram inetd seqpacket setenv: fdname: now help version",
    )
    .counts(),
    Row::new(
        "start-stop-daemon",
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
