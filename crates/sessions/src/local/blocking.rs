//! Work that may block, and the errors of the host's file system.

use std::io;

use backend_core::{Error, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Runs `work` where it may block. It is finished even if the caller goes away.
///
/// A sandbox needs no runtime of its caller. Where there is one, its threads are used.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    // Of one type for all: runtimes and threads have code of their own for every type.
    let work: Box<dyn FnOnce() + Send> = Box::new(move || {
        let _ = reply.send(work());
    });
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn_blocking(work));
    } else {
        let thread = std::thread::Builder::new().name("sessions".to_owned());
        thread.spawn(work).map_err(from_io)?;
    }
    answer.await.unwrap_or_else(|_| Err(cut_off()))
}

fn cut_off() -> Error {
    Error::internal("work on stored files was cut off")
}

/// Converts an error of the directories that hold sessions. Paths of the host stay out of
/// its message: it can reach a user.
pub(super) fn from_io(error: io::Error) -> Error {
    use io::ErrorKind as Io;
    let own = match error.kind() {
        Io::NotFound => Error::not_found(),
        Io::NotADirectory => Error::not_a_directory(),
        Io::PermissionDenied => Error::not_permitted(),
        Io::ReadOnlyFilesystem => Error::read_only_file_system(),
        Io::StorageFull | Io::QuotaExceeded => Error::disk_full(),
        Io::InvalidFilename => Error::name_too_long(),
        _ => Error::unavailable("the directory of sessions cannot be used; see the cause"),
    };
    own.with_source(error)
}
