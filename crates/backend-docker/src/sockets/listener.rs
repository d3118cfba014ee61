//! [`Listener`]: a socket for one agent, which shows that it is the one that was started.

use std::collections::VecDeque;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener as StdListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sandbox_wire::Token;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Connections that have not shown the token yet. A new one ends the oldest, so that silent
/// ones do not keep the agent out.
const STRANGERS: usize = 32;

/// Connections until the agent has to come through the daemon: a command that makes more
/// only wants to keep this process busy.
const CONNECTIONS: usize = 1_000;

/// The time in which a connection must show the token. The agent needs none.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a connection could not be taken, such as for want of a file descriptor.
const PAUSE: Duration = Duration::from_millis(100);

/// Digits of the name of a socket.
const NAME_DIGITS: usize = 32;

/// The age of a socket whose process ended without removing it. An agent is awaited for a
/// few seconds.
const LEFT_OVER: Duration = Duration::from_secs(10 * 60);

/// A socket and the token that opens it. The file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: UnixListener,
    file: SocketFile,
    token: Arc<Token>,
}

/// The file of a socket, which exists as long as this does.
#[derive(Debug)]
struct SocketFile {
    directory: File,
    name: String,
}

impl SocketFile {
    /// Returns a path that is short enough for a socket, wherever the directory is, and
    /// that leads to the directory that was checked.
    fn path(&self) -> PathBuf {
        let (directory, name) = (self.directory.as_raw_fd(), &self.name);
        format!("/proc/self/fd/{directory}/{name}").into()
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path());
    }
}

impl Listener {
    /// Makes a socket in the directory, under a name that others do not know.
    pub(crate) fn bind(directory: File) -> io::Result<Self> {
        let token = || Token::generate().map_err(io::Error::other);
        remove_leftovers(&directory);
        let mut name = token()?.as_str().to_owned();
        name.truncate(NAME_DIGITS);
        let file = SocketFile { directory, name };
        let path = file.path();
        let socket = StdListener::bind(&path)?;
        // The user in the container is another one.
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixListener::from_std(socket)?,
            file,
            token: Arc::new(token()?),
        })
    }

    /// Returns the name of the socket in the directory.
    pub(crate) fn name(&self) -> &str {
        &self.file.name
    }

    /// Returns the token that the agent must show.
    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Waits for the agent. Returns `None` after too many others. They are not reported,
    /// because they could fill a log.
    pub(crate) async fn agent(&self) -> Option<UnixStream> {
        let mut callers = JoinSet::new();
        let mut strangers: VecDeque<AbortHandle> = VecDeque::new();
        for _ in 0..CONNECTIONS {
            let stream = loop {
                tokio::select! {
                    biased;
                    Some(caller) = callers.join_next() => {
                        if let Ok(Some(agent)) = caller {
                            return Some(agent);
                        }
                    }
                    accepted = self.socket.accept() => match accepted {
                        Ok((stream, _)) => break stream,
                        Err(_) => sleep(PAUSE).await,
                    },
                }
            };
            strangers.retain(|stranger| !stranger.is_finished());
            if strangers.len() >= STRANGERS
                && let Some(oldest) = strangers.pop_front()
            {
                oldest.abort();
            }
            let token = Arc::clone(&self.token);
            strangers.push_back(callers.spawn(admit(stream, token)));
        }
        None
    }
}

/// Removes the sockets of processes that were killed. What fails is tried again next time.
fn remove_leftovers(directory: &File) {
    let Ok(entries) = fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd())) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let age = metadata
            .modified()
            .ok()
            .and_then(|time| time.elapsed().ok());
        if metadata.file_type().is_socket() && age.is_some_and(|age| age > LEFT_OVER) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

async fn admit(mut stream: UnixStream, token: Arc<Token>) -> Option<UnixStream> {
    let admitted = timeout(TOKEN_TIMEOUT, token.admit(&mut stream)).await;
    admitted.ok()?.ok()?;
    Some(stream)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn listener(directory: &Path) -> Listener {
        Listener::bind(crate::sockets::open(directory).unwrap()).unwrap()
    }

    async fn connect(directory: &Path, listener: &Listener) -> UnixStream {
        let path = directory.join(listener.name());
        UnixStream::connect(path).await.unwrap()
    }

    #[tokio::test]
    async fn the_agent_comes_in_among_many_others() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("sockets");
        let listener = listener(&directory);
        let come = async {
            let mut wrong = connect(&directory, &listener).await;
            let other = Token::generate().unwrap();
            other.present(&mut wrong).await.unwrap_err();
            let mut silent = Vec::new();
            for _ in 0..3 * STRANGERS {
                silent.push(connect(&directory, &listener).await);
            }
            let mut agent = connect(&directory, &listener).await;
            listener.token().present(&mut agent).await.unwrap();
            assert_eq!(silent[0].read(&mut [0]).await.unwrap(), 0, "it was ended");
            agent
        };
        let (came, _agent) = tokio::join!(listener.agent(), come);
        came.unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        drop(listener);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn sockets_of_killed_processes_are_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("sockets");
        let awaited = listener(&directory);
        let (old, other) = (directory.join("old"), directory.join("other"));
        drop(StdListener::bind(&old).unwrap());
        fs::write(&other, "").unwrap();
        for path in [&old, &other] {
            let long_ago = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            let times = Timestamps {
                last_access: long_ago,
                last_modification: long_ago,
            };
            utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
        }
        drop(listener(&directory));
        assert!(!old.exists());
        assert!(other.exists(), "it is no socket");
        assert!(directory.join(awaited.name()).exists());
    }

    #[tokio::test]
    async fn a_flood_ends_the_wait() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("sockets");
        let listener = listener(&directory);
        let flood = async {
            for _ in 0..CONNECTIONS {
                connect(&directory, &listener).await;
            }
        };
        let (came, ()) = tokio::join!(listener.agent(), flood);
        assert!(came.is_none());
    }

    #[tokio::test]
    async fn a_long_path_is_no_obstacle() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("d".repeat(200)).join("sockets");
        let listener = listener(&directory);
        let path = directory.join(listener.name());
        assert!(path.as_os_str().len() > 200);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        drop(listener);
        assert!(!path.exists());
    }
}
