//! The protocol between the host and a supervisor over their socket.
//!
//! A frame is a length and a message. Descriptors are sent with the first byte
//! of a frame. The host sends nothing that depends on the timing of an answer:
//! requests are handled in the order in which they were sent.

use std::io::{self, IoSlice, IoSliceMut, Read, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::fs::Statx;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::confine::Policy;
use super::kill::Scope;
use super::limits::Launch;

/// The version that both sides must share.
pub(crate) const VERSION: u32 = 4;

/// The size of the largest message, in bytes. More than the kernel accepts as
/// arguments and environment of one program.
pub(crate) const FRAME_BYTES: usize = 8 * 1024 * 1024;

/// Descriptors with one frame: directory, standard input, output and error.
pub(crate) const FRAME_DESCRIPTORS: usize = 4;

/// The size of a frame's length field, in bytes.
pub(crate) const HEADER_BYTES: usize = 4;

/// A request from the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The first message.
    Hello(Hello),
    /// Starts a command.
    Spawn(Spawn),
    /// Masks paths in a view, which the first such request makes.
    Mask(Mask),
    /// Forgets a view, in which no command runs.
    Forget { view: u64 },
    /// Ends processes of a command, or counts them.
    End(End),
    /// Ends everything, gently first, and then the supervisor.
    Stop {
        /// Milliseconds between TERM and KILL.
        grace: u64,
    },
}

/// Settings for all commands of a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The host's process ID.
    pub(crate) host: i32,
    pub(crate) shell: Vec<u8>,
    /// The base environment, without a command's own variables.
    pub(crate) environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// The marker's value up to the command's number.
    pub(crate) marker: String,
    pub(crate) policy: Option<Policy>,
    pub(crate) launch: Option<Launch>,
    /// The directory to mount masks in, if views are asked for. Needs a policy.
    pub(crate) views: Option<Vec<u8>>,
}

/// One command. It is sent with the descriptors of its directory, its standard
/// input if it has one, its standard output, and its standard error unless
/// merged.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spawn {
    pub(crate) id: u64,
    pub(crate) line: String,
    /// Variables on top of the environment of [`Hello`].
    pub(crate) environment: Vec<(String, String)>,
    /// Whether a descriptor for standard input is included.
    pub(crate) stdin: bool,
    /// Whether one descriptor is both standard output and error.
    pub(crate) merged: bool,
    /// Whether to report its start, and not only its end.
    pub(crate) announce: bool,
    /// Whether its standard input is a terminal that it is to control, as the first
    /// process of a session.
    pub(crate) terminal: bool,
    /// The view that it starts in.
    pub(crate) place: Option<InView>,
}

/// The place of a command in a view.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InView {
    pub(crate) view: u64,
    /// The host path of its directory. The descriptor of it, which comes from
    /// outside the view, is only compared.
    pub(crate) directory: Vec<u8>,
}

/// Paths to mask in a view.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mask {
    /// The number of this request, for its answer.
    pub(crate) id: u64,
    pub(crate) view: u64,
    /// In the order in which they are masked.
    pub(crate) places: Vec<Masked>,
    /// Whether it is an error if something else is at a path than what is meant.
    pub(crate) strict: bool,
}

/// A path, and its mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Masked {
    /// A host path, absolute and without links.
    pub(crate) path: Vec<u8>,
    pub(crate) with: With,
    /// The entry that is meant. Something else there, such as what a command has moved to
    /// that path, would take the mask in its place.
    pub(crate) entry: Entry,
}

/// A file or directory, for as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The major and the minor number.
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

impl Entry {
    pub(crate) fn new(found: &Statx) -> Self {
        Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
        }
    }
}

/// A mask of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum With {
    /// The directory itself, so that it cannot be renamed.
    Itself,
    /// The file or directory itself, read-only.
    ReadOnly,
    /// A file or directory that can be neither read nor changed.
    Nothing,
}

/// The processes of a command to end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct End {
    /// The number that the answer goes to.
    pub(crate) id: u64,
    pub(crate) command: u64,
    pub(crate) scope: Scope,
    /// Milliseconds between TERM and KILL. `None` only counts them.
    pub(crate) grace: Option<u64>,
}

/// A message from the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It cannot serve, for this reason. Stays the first variant in every
    /// version.
    Refused(String),
    Ready,
    Spawned {
        id: u64,
        pid: i32,
    },
    Failed {
        id: u64,
        trouble: Trouble,
    },
    /// A command's first process ended.
    Exited {
        id: u64,
        exit: Exit,
        /// Whether its process group still has members.
        group: bool,
    },
    /// An [`End`] request is done.
    Ended {
        id: u64,
        count: u32,
    },
    /// A [`Mask`] request is done.
    Masked {
        id: u64,
        /// The places, by their number in the request, where something else was found
        /// than what was meant, or nothing.
        missed: Vec<u32>,
        /// The reason why no command starts in the view any more.
        problem: Option<String>,
    },
    /// It cannot make views, for this reason, and serves only if it is not asked to.
    Unviewed(String),
}

/// The reason why a command did not start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Trouble {
    /// Its directory, with the kernel's error.
    Directory(i32),
    /// Its shell, with the kernel's error.
    Shell(i32),
    /// Its view.
    View(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let frame = postcard::to_extend(message, vec![0; HEADER_BYTES]);
    let mut frame = frame.map_err(io::Error::other)?;
    let length = frame.len() - HEADER_BYTES;
    if length > FRAME_BYTES {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let length = u32::try_from(length).map_err(io::Error::other)?;
    if let Some(header) = frame.first_chunk_mut::<HEADER_BYTES>() {
        *header = length.to_le_bytes();
    }
    Ok(frame)
}

/// Returns the length in a header, or an error if it is too large.
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

pub(crate) fn decode<T: DeserializeOwned>(content: &[u8]) -> io::Result<T> {
    postcard::from_bytes(content).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Sends a part of `bytes`, with the descriptors.
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

/// Sends a message, blocking until it is sent. Used by the supervisor, which
/// sends no descriptors.
pub(crate) fn send(mut socket: &UnixStream, message: &Reply) -> io::Result<()> {
    socket.write_all(&encode(message)?)
}

/// Receives a request with its descriptors. Returns `None` at the end of the
/// stream.
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
                terminal: false,
                place: None,
            })
        };
        let null = std::fs::File::open("/dev/null").unwrap();
        let with = [null.as_fd(), null.as_fd()];
        for (id, descriptors) in [(1, &with[..]), (2, &[]), (3, &with[..1])] {
            let bytes = encode(&spawn(id)).unwrap();
            // A frame in two pieces: the descriptors arrive with the first.
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
