//! What the host and a supervisor say to each other over their socket.
//!
//! A frame is a length and a message. Descriptors travel with the first byte of
//! a frame. The host sends nothing that depends on an answer's timing: requests
//! are worked on in the order in which they were sent.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::confine::Policy;
use super::kill::Scope;
use super::limits::Launch;

/// The version both sides must share.
pub(crate) const VERSION: u32 = 1;

/// Largest message, in bytes. More than the kernel takes as arguments and
/// environment of one program.
pub(crate) const FRAME_BYTES: usize = 8 * 1024 * 1024;

/// Descriptors with one frame: directory, standard input, output and error.
pub(crate) const FRAME_DESCRIPTORS: usize = 4;

/// Bytes of a frame's length.
pub(crate) const HEADER_BYTES: usize = 4;

/// What the host asks for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The first message.
    Hello(Hello),
    /// Starts a command.
    Spawn(Spawn),
    /// Ends processes of a command, or counts them.
    End(End),
    /// Ends everything, gently first, and then the supervisor.
    Stop {
        /// Milliseconds between TERM and KILL.
        grace: u64,
    },
}

/// What holds for all commands of a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The host's process id.
    pub(crate) host: i32,
    /// The shell's path.
    pub(crate) shell: Vec<u8>,
    /// The environment before a command's own variables.
    pub(crate) environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// The marker's value up to the command's number.
    pub(crate) marker: String,
    /// What commands may reach.
    pub(crate) policy: Option<Policy>,
    /// What commands may use up.
    pub(crate) launch: Option<Launch>,
}

/// One command. With it come its directory, then its standard input if it has
/// one, its standard output, and its standard error unless merged.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spawn {
    /// Its number.
    pub(crate) id: u64,
    /// What the shell runs.
    pub(crate) line: String,
    /// Variables on top of the environment of [`Hello`].
    pub(crate) environment: Vec<(String, String)>,
    /// Whether a descriptor for standard input comes along.
    pub(crate) stdin: bool,
    /// Whether one descriptor is both standard output and error.
    pub(crate) merged: bool,
    /// Whether to tell when it has started, and not only when it has ended.
    pub(crate) announce: bool,
}

/// Which processes of a command to end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct End {
    /// The command.
    pub(crate) id: u64,
    /// Which of its processes.
    pub(crate) scope: Scope,
    /// Milliseconds between TERM and KILL; none to count and end nothing.
    pub(crate) grace: Option<u64>,
}

/// What the supervisor answers and tells.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It cannot serve, for this reason. Stays the first, whatever the version.
    Refused(String),
    /// It serves.
    Ready,
    /// A command started.
    Spawned {
        /// The command.
        id: u64,
        /// Its process.
        pid: i32,
    },
    /// A command did not start.
    Failed {
        /// The command.
        id: u64,
        /// Whether its directory was the trouble, and not the shell.
        directory: bool,
        /// The system's error number.
        errno: i32,
    },
    /// A command's first process ended.
    Exited {
        /// The command.
        id: u64,
        /// How.
        exit: Exit,
        /// Whether something of its process group is still there.
        group: bool,
    },
    /// An [`End`] is done.
    Ended {
        /// The command.
        id: u64,
        /// How many processes there were.
        count: u32,
    },
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A message as a frame.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let frame = postcard::to_extend(message, vec![0; HEADER_BYTES]).map_err(io::Error::other)?;
    let mut frame = frame;
    let length = frame.len() - HEADER_BYTES;
    if length > FRAME_BYTES {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let length = u32::try_from(length).map_err(io::Error::other)?;
    for (place, byte) in frame.iter_mut().zip(length.to_le_bytes()) {
        *place = byte;
    }
    Ok(frame)
}

/// The length a header gives, if it may be.
pub(crate) fn length(header: [u8; HEADER_BYTES]) -> io::Result<usize> {
    let length = u32::from_le_bytes(header) as usize;
    if length > FRAME_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "oversized frame",
        ));
    }
    Ok(length)
}

/// A message out of a frame's content.
pub(crate) fn decode<T: DeserializeOwned>(content: &[u8]) -> io::Result<T> {
    postcard::from_bytes(content).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Sends some of `bytes`, with descriptors if there are any.
pub(crate) fn send_some(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FRAME_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = rustix::net::sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(sent)
}

/// Sends a message, waiting until it has gone. For the supervisor, which
/// answers without descriptors.
pub(crate) fn send(socket: &UnixStream, message: &Reply) -> io::Result<()> {
    let frame = encode(message)?;
    let mut rest = frame.as_slice();
    while !rest.is_empty() {
        match send_some(std::os::fd::AsFd::as_fd(socket), rest, &[]) {
            Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives a request with its descriptors; `None` at the end.
pub(crate) fn receive(mut socket: &UnixStream) -> io::Result<Option<(Request, Vec<OwnedFd>)>> {
    let mut header = [0; HEADER_BYTES];
    let mut descriptors = Vec::new();
    let mut filled = 0;
    while let Some(rest) = header.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FRAME_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            socket,
            &mut [IoSliceMut::new(rest)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        );
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                descriptors.extend(fds);
            }
        }
        match received {
            Ok(received) if received.bytes == 0 => return Ok(None),
            Ok(received) => filled += received.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut content = vec![0; length(header)?];
    socket.read_exact(&mut content)?;
    Ok(Some((decode(&content)?, descriptors)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn frame(request: &Request) -> Vec<u8> {
        encode(request).unwrap()
    }

    #[test]
    fn descriptors_arrive_with_their_frame() {
        let (host, supervisor) = UnixStream::pair().unwrap();
        let spawn = |id| {
            Request::Spawn(Spawn {
                id,
                line: "x".repeat(1000),
                environment: vec![("A".into(), "b".into())],
                stdin: false,
                merged: true,
                announce: true,
            })
        };
        let null = std::fs::File::open("/dev/null").unwrap();
        let with = [null.as_fd(), null.as_fd()];
        for (id, descriptors) in [(1, &with[..]), (2, &[]), (3, &with[..1])] {
            let bytes = frame(&spawn(id));
            // A frame in two pieces: the descriptors come with the first.
            let sent = send_some(host.as_fd(), &bytes[..2], descriptors).unwrap();
            assert_eq!(sent, 2);
            send_some(host.as_fd(), &bytes[2..], &[]).unwrap();
        }
        drop(host);
        for (id, count) in [(1, 2), (2, 0), (3, 1)] {
            let (request, descriptors) = receive(&supervisor).unwrap().unwrap();
            assert!(matches!(request, Request::Spawn(Spawn { id: got, .. }) if got == id));
            assert_eq!(descriptors.len(), count);
        }
        assert!(receive(&supervisor).unwrap().is_none());
    }

    #[test]
    fn nonsense_is_an_error() {
        let (host, supervisor) = UnixStream::pair().unwrap();
        send_some(host.as_fd(), &[0xff; 16], &[]).unwrap();
        let error = receive(&supervisor).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        send_some(host.as_fd(), &[0; 64], &[]).unwrap();
        assert!(decode::<Request>(&[250, 250]).is_err());
    }

    #[test]
    fn an_oversized_message_is_not_sent() {
        let request = Reply::Refused("x".repeat(FRAME_BYTES + 1));
        let error = encode(&request).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ArgumentListTooLong);
        assert!(length([0xff; HEADER_BYTES]).is_err());
    }

    #[test]
    fn refused_is_the_first_reply_in_every_version() {
        let frame = encode(&Reply::Refused(String::new())).unwrap();
        assert_eq!(frame[HEADER_BYTES], 0);
    }
}
