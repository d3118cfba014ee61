//! The self-test: a confined thread tries to escape before it starts anything.
//!
//! The targets it tries to reach are created just before, outside the allowed
//! directories. An attempt that succeeds, or that fails for another reason than
//! a refusal, is an error: a confinement that is not known to hold does not
//! count.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Pid;
use rustix::thread::{CapabilitySet, CapabilitySets, SecureComputingMode};

use super::policy::{AllowedPath, Policy};
use crate::random::random;

/// Directories for canaries, besides the parent of the temporary directory.
const CANARY_PARENTS: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// Targets outside the policy, and an unconfined thread that removes them
/// again.
pub(super) struct Canaries {
    directory: PathBuf,
    /// Whether the policy allows reading here, so that reading proves nothing.
    readable: bool,
    host: Option<Pid>,
    /// A listener, and a socket created before the confinement that could
    /// connect to it.
    network: (TcpListener, OwnedFd),
    _unix: UnixListener,
    done: mpsc::Sender<()>,
    keeper: JoinHandle<()>,
}

impl Canaries {
    pub(super) fn place(policy: &Policy) -> Result<Self, String> {
        let failed = |error: io::Error| {
            format!("cannot prepare the confinement's self-test: {error}; no command is started")
        };
        let (directory, readable) = make_directory(policy)?;
        // From here on the thread removes the directory, even after an error.
        let (done, end) = mpsc::channel::<()>();
        let doomed = directory.clone();
        let keeper = std::thread::Builder::new()
            .name("canaries".into())
            .spawn(move || {
                let _ = end.recv();
                let _ = fs::remove_dir_all(&doomed);
            })
            .map_err(|error| {
                let _ = fs::remove_dir_all(&directory);
                failed(error)
            })?;
        fs::write(directory.join("file"), "canary").map_err(failed)?;
        fs::create_dir(directory.join("dir")).map_err(failed)?;
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)
            .map_err(|error| failed(error.into()))?;
        let unix = UnixListener::bind(directory.join("socket")).map_err(failed)?;
        Ok(Self {
            readable,
            host: rustix::process::getppid(),
            network: (listener, socket),
            _unix: unix,
            directory,
            done,
            keeper,
        })
    }

    pub(super) fn remove(self) {
        drop(self.done);
        let _ = self.keeper.join();
    }

    /// Tries every escape, and checks that allowed access works.
    pub(super) fn probe(&self, policy: &Policy) -> Result<(), String> {
        self.files(policy.temporary.path())?;
        self.sockets(policy.network)?;
        self.processes()?;
        privileges()?;
        inside(policy.temporary.path()).map_err(|error| {
            format!("confined commands could not write temporary files: {error}; check its owner")
        })
    }

    fn files(&self, temporary: &Path) -> Result<(), String> {
        let file = self.directory.join("file");
        let dir = self.directory.join("dir");
        let new = self.directory.join("new");
        if !self.readable {
            refused("read a file", fs::read(&file))?;
            refused("list a directory", fs::read_dir(&dir))?;
        }
        let open = |write: &mut OpenOptions| write.open(&file);
        refused("write a file", open(OpenOptions::new().write(true)))?;
        refused("append to a file", open(OpenOptions::new().append(true)))?;
        refused(
            "empty a file",
            open(OpenOptions::new().write(true).truncate(true)),
        )?;
        refused("create a file", File::create_new(&new))?;
        refused("create a directory", fs::create_dir(&new))?;
        refused("create a link", symlink("file", &new))?;
        refused("create a hard link", fs::hard_link(&file, &new))?;
        refused("rename a file", fs::rename(&file, &new))?;
        let name = format!("stolen-{:016x}", random());
        refused(
            "move a file inside",
            fs::rename(&file, temporary.join(&name)),
        )?;
        refused(
            "link a file inside",
            fs::hard_link(&file, temporary.join(&name)),
        )?;
        refused("remove a file", fs::remove_file(&file))?;
        refused("remove a directory", fs::remove_dir(&dir))
    }

    fn sockets(&self, network: bool) -> Result<(), String> {
        refused(
            "reach a unix socket",
            UnixStream::connect(self.directory.join("socket")),
        )?;
        if network {
            return Ok(());
        }
        let (listener, socket) = &self.network;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        refused(
            "connect a TCP socket",
            rustix::net::connect(socket, &address),
        )?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        refused("make a TCP socket", TcpListener::bind(any))?;
        refused("make a UDP socket", UdpSocket::bind(any))
    }

    fn processes(&self) -> Result<(), String> {
        // Without a visible parent there is no host to reach.
        let Some(host) = self.host else {
            return Ok(());
        };
        refused("signal the host", rustix::process::test_kill_process(host))?;
        let environment = format!("/proc/{}/environ", host.as_raw_nonzero());
        match File::open(environment).and_then(|mut file| io::copy(&mut file, &mut io::sink())) {
            // `/proc` is not mounted.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // The file of a process that has just ended is empty.
            Ok(0) => Ok(()),
            read => refused("read the host's environment", read),
        }
    }
}

fn privileges() -> Result<(), String> {
    let lost = |error: Errno| format!("cannot tell which privileges are left: {error}");
    let all = CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE | CapabilitySet::SYS_ADMIN;
    let sets = CapabilitySets {
        effective: all,
        permitted: all,
        inheritable: all,
    };
    refused(
        "regain capabilities",
        rustix::thread::set_capabilities(None, sets),
    )?;
    let left = rustix::thread::capabilities(None).map_err(lost)?;
    if !(left.effective | left.permitted | left.inheritable).is_empty() {
        return Err(escape("keep capabilities"));
    }
    if !rustix::thread::no_new_privs().map_err(lost)? {
        return Err(escape("gain privileges by running a program"));
    }
    match rustix::thread::secure_computing_mode().map_err(lost)? {
        SecureComputingMode::Filter => Ok(()),
        _ => Err(escape("make any system call")),
    }
}

/// Creates, reads, renames and removes a file in `temporary`.
fn inside(temporary: &Path) -> io::Result<()> {
    let first = temporary.join(format!(".probe-{:016x}", random()));
    let second = first.with_extension("2");
    File::create_new(&first)?.write_all(b"inside")?;
    fs::rename(&first, &second)?;
    let content = fs::read(&second)?;
    fs::remove_file(&second)?;
    if content == b"inside" {
        Ok(())
    } else {
        Err(io::Error::other("what was written is not what was read"))
    }
}

fn refused<T>(what: &str, tried: Result<T, impl Into<io::Error>>) -> Result<(), String> {
    let Err(error) = tried else {
        return Err(escape(what));
    };
    let error: io::Error = error.into();
    match Errno::from_io_error(&error) {
        Some(Errno::ACCESS | Errno::PERM | Errno::XDEV) => Ok(()),
        _ => Err(format!(
            "the confinement's self-test could not {what}, but not because it was refused: \
             {error}; no command is started"
        )),
    }
}

fn escape(what: &str) -> String {
    format!("a confined command could {what}; no command is started, please report this")
}

/// Creates a private directory that `policy` does not let commands write and,
/// if possible, does not let them read. Returns whether they can read it.
fn make_directory(policy: &Policy) -> Result<(PathBuf, bool), String> {
    let beside = policy.temporary.path().parent().into_iter();
    let candidates: Vec<PathBuf> = beside
        .chain(CANARY_PARENTS.iter().map(Path::new))
        .filter_map(|place| place.canonicalize().ok())
        .collect();
    for readable in [false, true] {
        for place in &candidates {
            if within(place, &policy.write) || within(place, &policy.read) != readable {
                continue;
            }
            let directory = place.join(format!("agentbox-canary-{:016x}", random()));
            let made = fs::DirBuilder::new().mode(0o700).create(&directory);
            if made.is_ok() {
                return Ok((directory, readable));
            }
        }
    }
    Err(
        "no directory is left in which the confinement could be tested: all of /tmp, /var/tmp and \
         /dev/shm may be written by commands, or are not writable at all; choose smaller directories"
            .into(),
    )
}

fn within(path: &Path, places: &[AllowedPath]) -> bool {
    places.iter().any(|place| path.starts_with(place.path()))
}
