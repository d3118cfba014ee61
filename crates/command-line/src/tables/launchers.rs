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

pub(crate) const LAUNCHERS: &[Row] = rows! {
    // coreutils
    "env genv", "+i0vu:C%S!a:",
        "ignore-environment null debug unset: chdir% split-string! argv0: block-signal? \
         default-signal? ignore-signal? list-signal-handling help version" => assigns;
    "nice gnice", "+n:#", "adjustment: help version";
    "nohup gnohup", "+", "help version";
    "timeout gtimeout", "+k:s:vfp",
        "kill-after: signal: foreground preserve-status verbose help version" => skip(1);
    "stdbuf gstdbuf", "+i:o:e:", "input: output: error: help version";
    "chroot gchroot", "+", "groups: userspec: skip-chdir help version" => skip(1) counts shell;
    "runcon gruncon", "+cl:r:t:u:", "compute range: role: type: user: help version" => counts;
    // util-linux
    "setsid", "+cfwhV", "ctty fork wait help version";
    "ionice", "+c:n:p^P^tu^hV", "class: classdata: pid^ pgid^ ignore uid^ help version";
    "chrt", "+abdD:efhimop^P:rRT:vV",
        "all-tasks batch deadline ext fifo help idle max other pid^ reset-on-fork rr \
         sched-deadline: sched-period: sched-runtime: verbose version" => skip(1);
    "taskset", "+ap^chV", "all-tasks cpu-list pid^ help version" => skip(1);
    "setarch", "+hVvlBFILRSTXZ3p^s?", SETARCH_LONG => counts shell;
    "linux32 linux64 uname26 i386 i486 i586 i686 x86_64 aarch64 armv7l ppc ppc64 s390 s390x sparc \
     sparc64 mips mips64 alpha riscv64 loongarch64", "+hVvlBFILRSTXZ3p^s?",
        SETARCH_LONG => counts shell;
    "prlimit", "+c?d?e?f?hi?l?m?n?o:p^q?r?s?t?u?v?x?y?V",
        "as? core? cpu? data? fsize? help locks? memlock? msgqueue? nice? nofile? noheadings \
         nproc? output: pid^ raw rss? rtprio? rttime? sigpending? stack? verbose version";
    "choom", "+n:p^hV", "adjust: pid^ help version";
    "uclampset", "+m:M:p^asRvhV",
        "util-min: util-max: pid^ all-tasks system reset-on-fork verbose help version" => counts;
    "coresched", "+s:d:t:vhV", "source: dest: dest-type: verbose help version" => skip(1) counts;
    "unshare", "+mupinCUTrcfl:S:G:R%w%hV",
        "mount? uts? ipc? net? pid? cgroup? user? time? root% wd% setuid: setgid: help version \
         fork kill-child? forward-signals mount-proc? mount-binfmt? map-user: map-group: \
         map-users: map-groups: map-root-user map-current-user map-auto map-subids owner: \
         propagation: setgroups: keep-caps monotonic: boottime: load-interp:" => counts shell;
    "nsenter", "+at:m?u?i?n?p?C?U?T?N:S:G:r?%w?%W%FZechV",
        "all target: mount? uts? ipc? net? pid? cgroup? user? user-parent time? net-socket: root?% \
         wd?% wdns% setuid: setgid: keep-caps env join-cgroup preserve-credentials no-fork \
         follow-context help version" => counts shell;
    "setpriv", "+dhV",
        "ambient-caps: apparmor-profile: bounding-set: clear-groups dump egid: euid: groups: help \
         inh-caps: init-groups keep-groups landlock-access: landlock-rule: list-caps nnp \
         no-new-privs pdeathsig: ptracer: regid: reset-env reuid: rgid: ruid: seccomp-filter: \
         securebits: selinux-label: version" => counts;
    "flock", "+sxeunw:oE:Fc!vhV",
        "shared exclusive unlock nonblock nb timeout: wait: close conflict-exit-code: no-fork \
         command! verbose fcntl help version" => skip(1) counts;
    "script", "aB>c!eE:fI>m:O>o:qT?>t?>FkhV",
        "append command! echo: flush force help log-in> log-io> log-out> log-timing> \
         logging-format: output-limit: quiet return timing?> version" => skip(1) counts shell;
    "scriptlive", "+B:I<T<c!d:m:t<hV",
        "command! divisor: help log-in< log-io< log-timing< maxdelay: timing< version"
        => counts shell;
    "switch_root run-init", "+hVdc:", "help version" => skip(1) counts;
    // sudo and the like
    "sudo", "+ABbEe*HhiKklNnPSsVvC:D%g:p:R%r:T:t:U:u:", SUDO_LONG => assigns counts shell;
    "doas", "+C:Lnsu:", "" => counts shell;
    "pkexec", "+", "user: keep-cwd disable-internal-agent help version" => counts shell;
    "gosu su-exec setuidgid envuidgid", "+", "" => skip(1) counts;
    "sg", "c!", "" => skip(1) counts shell joins;
    // bash and dash
    "command", "+pv^V^", "";
    "builtin", "+", "";
    "exec", "+cla:", "";
    // time, procps, moreutils and others
    "time gtime", "+apqvVf:o>h", "append format: output> portability quiet verbose version help";
    "watch", "+bcCd?efghn:pq:rs:tvwx",
        "beep color no-color differences? equexit: errexit exec follow chgexit interval: precise \
         no-rerun shotsdir: no-title no-wrap help version" => counts joins;
    "unbuffer", "+p", "";
    "chronic", "+ve", "";
    "ifne", "+n", "" => counts;
    "zrun", "+", "" => counts;
    "lckdo", "+wWeEsxqt:", "" => skip(1) counts;
    "caffeinate", "+dimsut:w:", "";
    "fakeroot", "+b:hi<l@s>uv",
        "lib@ faked@ save-file> load-file< unknown-is-real fd-base: help version" => shell;
    "fakechroot", "+hvse:d:c:b:", "" => counts shell;
    "numactl", "+aHshli:I:N:C:c:m:M:p:P:w:",
        "all interleave: weighted-interleave: cpunodebind: physcpubind: membind: preferred: \
         preferred-many: localalloc hardware show balancing";
    "xvfb-run", "+ae>f<hln:p:s:w:",
        "auto-servernum error-file> auth-file< help listen-tcp server-num: xauth-protocol: \
         server-args: wait:";
    "dbus-run-session", "+", "config-file@ dbus-daemon! help version";
    "dbus-launch", "+",
        "auto-syntax binary-syntax close-stderr exit-with-session exit-with-x11 autolaunch: \
         sh-syntax csh-syntax config-file@ help version" => counts;
    "busybox toybox", "+", "list list-full help install*";
    "strace", "+a:Ab:cCdDe:E:fFhiI:kno>Op:P:qrs:S:tTu:U:vVwxX:yYzZN",
        "abbrev: absolute-timestamps? argv0: always-show-pid attach: columns: const-print-style: \
         daemonize? debug decode-fds? decode-pids? detach-on: env: failed-only fault: follow-forks \
         help inject: instruction-pointer interruptible: kvm: no-abbrev namespace: output> \
         output-append-mode output-separately quiet? raw: read: relative-timestamps? seccomp-bpf \
         secontext? signal: stack-traces? status: string-limit: strings-in-hex? successful-only \
         summary summary-columns: summary-only summary-sort-by: summary-syscall-overhead? \
         summary-wall-clock syscall-limit: syscall-number syscall-times? tips? trace: trace-fds: \
         trace-path: user: verbose: version write:";
    "ltrace", "+a:A:bcCD:e:F<fhil:Ln:o>p:rs:StTu:Vw:x:X:",
        "align: config< debug: demangle help indent: library: no-signals output> version where:";
    "entr", "+acdnprszx", "" => joins;
    "logsave", "+asv", "" => skip(1) counts;
    "fstab-decode", "+", "" => counts;
    "ssh-agent", "+csdDka:E:P:t:O:TUu", "" => counts;
    "eatmydata nocache torsocks torify tsocks catchsegv", "+n:", "" => counts;
    "proxychains proxychains4", "+qf:", "" => counts;
    "faketime", "+mpf", "help version exclude-monotonic" => skip(1) counts;
    "cpulimit", "+l:p^e^P^zivhb", "limit: pid^ exe^ path^" => counts;
    "cgexec", "+g:hb", "sticky" => counts;
    "tini", "+svgwp:le:h", "version" => counts;
    "dumb-init", "+cvhVr:", "single-child rewrite: verbose help version" => counts;
    "envdir setlock", "+nNxX", "" => skip(1) counts;
    "softlimit", "+m:d:s:l:a:o:p:f:c:r:t:", "" => counts;
    "chpst", "+u:U:b:e:d:o:p:f:c:r:t:n:l:L:m:vP012", "" => counts;
    "cttyhack openvt", "+c:fuslvwe", "" => counts;
    "systemd-run", "+hqrtPdGSu:p:E:M:H:C:",
        "collect description: gid: uid: help host: machine: nice: no-ask-password no-block \
         expand-environment: on-active: on-boot: on-calendar: on-clock-change on-startup: \
         on-timezone-change on-unit-active: on-unit-inactive: path-property: pipe property: pty \
         quiet remain-after-exit same-dir scope send-sighup service-type: setenv: shell slice: \
         slice-inherit socket-property: system timer-property: unit: user version wait \
         working-directory% capsule: background: ignore-failure job-mode: json:" => counts shell;
    "systemd-inhibit", "+h",
        "help list mode: no-legend no-pager no-ask-password version what: who: why: json:"
        => counts;
    "systemd-cat", "+hp:t:",
        "help identifier: level-prefix: namespace: priority: stderr-priority: version" => counts;
    "systemd-socket-activate", "+hl:adE:",
        "listen: accept datagram inetd seqpacket setenv: fdname: now help version" => counts;
    "start-stop-daemon", "+SKTHa&x&p>n:u:c:g:r%d%k:N:P:I:O>bCmoqtvs:R:V",
        "start stop status help version test oknodo quiet chuid: chroot% chdir% umask: startas& \
         exec& pidfile> pid: ppid: user: group: name: nicelevel: procsched: iosched: background \
         no-close make-pidfile remove-pidfile retry: signal: notify-await notify-timeout: output> \
         verbose" => counts;
};

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
