//! The system set: the system files that confined commands may read or use. The lists
//! are separated by white space.
//!
//! `docs/confinement.md` repeats these lists with reasons; a test compares
//! them.

use std::path::PathBuf;

/// Read and run. Paths that a host does not have are left out.
pub(super) const PROGRAMS: &str =
    "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /run/current-system/sw";

/// Read. Files in `/etc` are listed one by one, because `/etc` also contains
/// password hashes, keys and tokens.
pub(super) const FILES: &str = "
    /etc/alternatives /etc/bash.bashrc /etc/ca-certificates /etc/ca-certificates.conf
    /etc/crypto-policies /etc/debian_version /etc/fonts /etc/gai.conf /etc/gitconfig /etc/group
    /etc/host.conf /etc/hostname /etc/hosts /etc/inputrc /etc/ld-musl-aarch64.path
    /etc/ld-musl-x86_64.path /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d
    /etc/ld.so.preload /etc/locale.alias /etc/locale.conf /etc/localtime /etc/lsb-release
    /etc/magic /etc/magic.mime /etc/mime.types /etc/networks /etc/nsswitch.conf /etc/os-release
    /etc/passwd /etc/perl /etc/pki/ca-trust/extracted /etc/pki/tls/certs
    /etc/pki/tls/openssl.cnf /etc/profile /etc/profile.d /etc/protocols /etc/resolv.conf
    /etc/services /etc/shells /etc/ssl/cert.pem /etc/ssl/certs /etc/ssl/openssl.cnf
    /etc/terminfo /etc/timezone
    /run/resolvconf /run/systemd/resolve /var/lib/ca-certificates
    /proc/cpuinfo /proc/filesystems /proc/loadavg /proc/meminfo /proc/stat
    /proc/sys/fs/pipe-max-size /proc/sys/kernel/cap_last_cap /proc/sys/kernel/osrelease
    /proc/sys/kernel/pid_max /proc/sys/kernel/random /proc/sys/kernel/threads-max
    /proc/sys/net/core/somaxconn /proc/sys/vm /proc/uptime /proc/version
    /sys/devices/system/cpu /sys/devices/system/node /sys/kernel/mm/transparent_hugepage
";

/// Read. Entries of `/etc` whose names contain a version.
pub(super) const ETC_PREFIXES: &[&str] = &["java-", "python3"];

/// Read and write. Terminals are not among them: through the host's terminal a
/// command could type on behalf of its user. `/dev/tty` is the terminal that a command
/// was given, if any: the supervisor has none that a command could inherit.
pub(super) const DEVICES: &str = "/dev/full /dev/null /dev/random /dev/tty /dev/urandom /dev/zero";

/// Returns all paths that may be read but not run.
pub(super) fn files() -> Vec<PathBuf> {
    let versioned = std::fs::read_dir("/etc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            let name = name.to_str()?;
            ETC_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
                .then(|| entry.path())
        });
    let files = FILES.split_ascii_whitespace().map(PathBuf::from);
    files.chain(versioned).collect()
}
