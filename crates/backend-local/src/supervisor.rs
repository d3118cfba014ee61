//! The supervisor: a small process, one per backend, in which commands run.
//!
//! It starts each command with descriptors that the host passes, is the parent
//! of whatever loses its own, and ends every process it ever started when its
//! socket closes or the host dies. It is a program of its own, so none of this
//! touches the host: no signal handlers, no limits, no adopted children.
//!
//! Any program can be its own supervisor:
//!
//! ```no_run
//! // First thing in `main`:
//! backend_local::supervisor::run_if_asked();
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

pub use confine::{Confinement, Landlock};

mod confine;
pub(crate) mod limits;

#[cfg(target_os = "linux")]
pub(crate) mod kill;
#[cfg(target_os = "linux")]
pub(crate) mod process;
#[cfg(target_os = "linux")]
pub(crate) mod protocol;
#[cfg(target_os = "linux")]
mod reap;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod spawn;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod victim;

#[cfg(target_os = "linux")]
pub(crate) use confine::Policy;

/// The variable that every command's processes inherit. Its value names the
/// command.
pub(crate) const MARKER: &str = "AGENTBOX_COMMAND";

/// What the first argument of a supervisor begins with; its version follows.
#[cfg(target_os = "linux")]
pub(crate) const SUPERVISE: &str = "--agentbox-supervise=";

/// Whether this program serves as a supervisor when it is started as one.
static ARMED: AtomicBool = AtomicBool::new(false);

/// Serves as a supervisor if this process was started as one, and does not
/// return then. Call it first thing in `main`, before any thread is started;
/// from then on, local backends of this program use the program itself.
pub fn run_if_asked() {
    ARMED.store(true, Ordering::Relaxed);
    #[cfg(target_os = "linux")]
    {
        let mut arguments = std::env::args_os().skip(1);
        let Some(first) = arguments.next() else {
            return;
        };
        let first = first.as_encoded_bytes();
        if first == limits::LAUNCH.as_bytes() {
            limits::run_launcher(arguments);
        }
        if let Some(version) = first.strip_prefix(SUPERVISE.as_bytes()) {
            std::process::exit(serve::run(version));
        }
    }
}

/// Whether [`run_if_asked`] was called.
pub(crate) fn is_armed() -> bool {
    ARMED.load(Ordering::Relaxed)
}

/// Reads bytes as everything that is read from other processes: for fuzzing.
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(request) = protocol::decode::<protocol::Request>(bytes) {
        assert!(protocol::encode(&request).is_ok());
    }
    if let Ok(reply) = protocol::decode::<protocol::Reply>(bytes) {
        assert!(protocol::encode(&reply).is_ok());
    }
    let _ = process::Process::parse(1, bytes);
    limits::fuzz(&String::from_utf8_lossy(bytes));
}
