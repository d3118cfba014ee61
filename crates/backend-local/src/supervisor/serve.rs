//! The supervisor's lifecycle: a greeting, requests, and the end of everything.
//!
//! There are four threads. One, confined like the commands, reads requests and
//! starts commands. One collects exits. One waits for the host's death, because
//! a process that the host forked may hold the socket open. The first, which is
//! never confined, ends processes. [`Views`] have more. The runtime of an async `main`
//! may have started other threads before them, which stay idle.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use backend_core::sync::lock;
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};
use tokio::signal::unix::{SignalKind, signal};

use super::confine::Prepared;
use super::kill::{self, Scope};
use super::protocol::{self, End, Hello, Reply, Request, VERSION};
use super::reap;
use super::shared::Shared;
use super::spawn::{SharedLimits, Spawner};
use super::threads::start;
use super::views::{self, Views};

/// The last of the real-time signals.
const LAST_SIGNAL: i32 = 64;

/// An instruction to the first thread.
enum Control {
    End(End),
    Stop(Duration),
    /// The host is gone.
    Gone,
}

/// Serves on standard input until the host is gone. Returns the exit code.
pub(crate) fn run(version: &[u8]) -> i32 {
    let Ok(socket) = become_supervisor() else {
        return 1;
    };
    if version != VERSION.to_string().as_bytes() {
        let text = format!("it speaks version {VERSION} of the protocol");
        let _ = protocol::send(&socket, &Reply::Refused(text));
        return 1;
    }
    let Ok(Some((Request::Hello(hello), _))) = protocol::receive(&socket) else {
        return 1;
    };
    match serve(&socket, hello) {
        Ok(()) => 0,
        Err(refusal) => {
            let _ = protocol::send(&socket, &refusal.0);
            1
        }
    }
}

/// Prepares this process to own others. Everything here applies to the whole
/// process, except the signal mask, which threads started later inherit.
fn become_supervisor() -> std::io::Result<UnixStream> {
    // No terminal: a command that asks for a password there fails at once, and
    // the host handles its own ^C.
    let _ = rustix::process::setsid();
    close_inherited();
    catch_signals()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::chdir("/")?;
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    Ok(UnixStream::from(socket))
}

/// Makes all signals that can be caught do nothing.
///
/// They are caught, and not blocked or ignored, because a command would inherit
/// that and no longer end when told to. The same goes for signals that the host
/// blocked or ignored. Caught signals are discarded.
fn catch_signals() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let entered = runtime.enter();
    for number in 1..=LAST_SIGNAL {
        // Fails for signals that must not be caught.
        let _ = signal(SignalKind::from_raw(number));
    }
    drop(entered);
    // A thread of another runtime must not wait for this one to end.
    runtime.shutdown_background();
    SigSet::empty().thread_set_mask()?;
    Ok(())
}

/// Closes descriptors that the host leaked to its children, so that commands do
/// not inherit them and keep them open. Close-on-exec descriptors were opened
/// by this process: by the runtime of an async `main`, which needs them.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    for number in numbers {
        // The listing's own descriptor is among them, and already closed.
        let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
        if about.is_ok_and(|about| outlives_programs(&about) == Some(true)) {
            let _ = nix::unistd::close(number);
        }
    }
}

/// Whether a descriptor with this kernel description is inherited by programs.
/// Returns `None` if the description has no flags.
fn outlives_programs(about: &str) -> Option<bool> {
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
    Some(flags & rustix::fs::OFlags::CLOEXEC.bits() == 0)
}

/// The answer to a greeting that cannot be served.
struct Refusal(Reply);

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self(Reply::Refused(text))
    }
}

fn serve(socket: &UnixStream, hello: Hello) -> Result<(), Refusal> {
    let text = |error: std::io::Error| error.to_string();
    // Without /proc, descendants cannot be found.
    super::process::all().map_err(|error| format!("it needs /proc: {error}"))?;
    let host = open_host(hello.host)?;
    let unviewed = |text| Refusal(Reply::Unviewed(text));
    let masks = hello
        .views
        .map(|path| PathBuf::from(OsString::from_vec(path)));
    if let Some(masks) = &masks {
        // While there is one thread.
        views::enter_namespace(masks).map_err(unviewed)?;
    }
    let more = masks.as_ref().map_or(0, |_| views::MOST_THREADS);
    let launch = hello.launch.as_ref();
    let limits = launch.map(|launch| launch.prepare(more)).transpose()?;
    let limits = Arc::new(Mutex::new(limits));
    let writer = socket.try_clone().map_err(text)?;
    let reader = socket.try_clone().map_err(text)?;
    let shared = Arc::new(Shared::new(writer, hello.marker));
    let limits_kept = Arc::clone(&limits);
    let spawner = Spawner::new(hello.shell, hello.environment, limits).map_err(text)?;
    let spawner = Arc::new(spawner);
    let policy = hello.policy.map(Prepared::new).transpose()?.map(Arc::new);
    let views = match (masks, &policy) {
        (Some(masks), Some(policy)) => {
            let place = views::Place {
                masks,
                policy: Arc::clone(policy),
                shared: Arc::clone(&shared),
                spawner: Arc::clone(&spawner),
            };
            Views::start(place).map_err(unviewed)?
        }
        _ => Views::none(),
    };

    let (control, orders) = channel();
    let (confined, is_confined) = channel();
    let serving = (Arc::clone(&shared), control.clone());
    start("commands", move || {
        let (shared, control) = serving;
        let policy = policy.as_ref();
        let restricted = policy.map_or(Ok(()), |policy| policy.restrict_and_probe());
        let usable = restricted.is_ok();
        let _ = confined.send(restricted);
        let _gone = WhenDone(control.clone());
        if usable {
            let shared = &shared;
            let reader = &reader;
            Requests {
                reader,
                shared,
                spawner: &spawner,
                views,
            }
            .read(&control);
        }
    })?;
    is_confined
        .recv()
        .unwrap_or_else(|_| Err("its confinement panicked".into()))?;
    let reaping = Arc::clone(&shared);
    start("exits", move || reap::run(&reaping))?;
    if let Some(host) = host {
        start("host", move || {
            let mut polled = [PollFd::new(&host, PollFlags::IN)];
            let _ = retry_on_intr(|| rustix::event::poll(&mut polled, None));
            let _ = control.send(Control::Gone);
        })?;
    }
    shared.tell(&Reply::Ready);
    handle_control(&shared, &orders);
    end_everything(&shared, &limits_kept);
    Ok(())
}

/// Returns a handle to the host, which must be this process's parent, or `None`
/// if the kernel has no such handles.
fn open_host(host: i32) -> Result<Option<OwnedFd>, String> {
    let handle = Pid::from_raw(host.max(0))
        .ok_or(Errno::SRCH)
        .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()));
    // It is still the parent after the handle was opened, so the handle refers
    // to it.
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(host) {
        return Err("it was not started by the process that speaks to it".into());
    }
    Ok(handle.ok())
}

/// Reads the host's requests.
struct Requests<'a> {
    reader: &'a UnixStream,
    shared: &'a Shared,
    spawner: &'a Spawner,
    views: Views,
}

impl Requests<'_> {
    fn read(mut self, control: &Sender<Control>) {
        while let Ok(Some((request, descriptors))) = protocol::receive(self.reader) {
            let order = match request {
                Request::Spawn(spawn) if spawn.place.is_some() => {
                    self.views.spawn(self.shared, spawn, descriptors);
                    continue;
                }
                Request::Spawn(spawn) => {
                    self.spawner.spawn(self.shared, spawn, descriptors);
                    continue;
                }
                Request::Mask(mask) => {
                    self.views.mask(self.shared, mask);
                    continue;
                }
                Request::Forget { view } => {
                    self.views.forget(view);
                    continue;
                }
                Request::End(end) => Control::End(end),
                Request::Stop { grace } => Control::Stop(Duration::from_millis(grace)),
                Request::Hello(_) => break,
            };
            if control.send(order).is_err() {
                return;
            }
        }
    }
}

/// Ends everything when no more requests will be read, for whatever reason.
struct WhenDone(Sender<Control>);

impl Drop for WhenDone {
    fn drop(&mut self) {
        let _ = self.0.send(Control::Gone);
    }
}

/// Handles instructions until everything must end.
fn handle_control(shared: &Arc<Shared>, orders: &Receiver<Control>) {
    loop {
        match orders.recv() {
            Ok(Control::End(end)) => {
                // Ending takes as long as the grace period. Other instructions
                // must not wait.
                let ending = Arc::clone(shared);
                if start("end", move || ending.end(end)).is_err() {
                    shared.end(end);
                }
            }
            Ok(Control::Stop(grace)) => {
                shared.begin_ending();
                kill::end(&shared.everything(), Scope::All, Some(grace));
                return;
            }
            Ok(Control::Gone) | Err(mpsc::RecvError) => return,
        }
    }
}

/// Kills until no child, and so no descendant, is left.
fn end_everything(shared: &Shared, limits: &SharedLimits) {
    shared.begin_ending();
    loop {
        kill::end(&shared.everything(), Scope::All, Some(Duration::ZERO));
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match rustix::process::waitid(WaitId::All, options) {
            Err(Errno::CHILD) => break,
            // The other thread is about to reap it.
            Ok(_) | Err(_) => std::thread::yield_now(),
        }
    }
    lock(limits).take();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_this_program_are_told_from_inherited_ones() {
        let about = |file: &std::fs::File| {
            let number = std::os::fd::AsRawFd::as_raw_fd(file);
            std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap()
        };
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(outlives_programs(&about(&file)), Some(false));
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        assert_eq!(outlives_programs(&about(&file)), Some(true));
        assert_eq!(outlives_programs("pos:\t0\n"), None);
    }

    #[test]
    fn only_its_parent_is_a_host() {
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        assert!(open_host(parent).is_ok());
        assert!(open_host(1).is_err() || parent == 1);
        assert!(open_host(-1).is_err());
    }
}
