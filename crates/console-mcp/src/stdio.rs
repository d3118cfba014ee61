//! Standard input and output without a blocking thread, where possible.
//!
//! Most clients start a server on pipes, which rmcp handles. Node starts it on sockets.

use tokio::io::{AsyncRead, AsyncWrite};

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens standard input and output.
pub(crate) fn streams() -> (Input, Output) {
    #[cfg(unix)]
    if let (Some(input), Some(output)) = (socket(std::io::stdin()), socket(std::io::stdout())) {
        return (Box::new(input), Box::new(output));
    }
    let (input, output) = rmcp::transport::stdio_pipes();
    (Box::new(input), Box::new(output))
}

/// Returns a standard stream as a socket, if it is one.
#[cfg(unix)]
fn socket(stream: impl std::os::fd::AsFd) -> Option<tokio::net::UnixStream> {
    use std::os::unix::fs::FileTypeExt as _;

    let owned = stream.as_fd().try_clone_to_owned().ok()?;
    let file = std::fs::File::from(owned);
    if !file.metadata().ok()?.file_type().is_socket() {
        return None;
    }
    let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(file));
    // Fails unless it is a Unix socket, before anything is changed.
    socket.local_addr().ok()?;
    socket.set_nonblocking(true).ok()?;
    tokio::net::UnixStream::from_std(socket).ok()
}
