//! A program to be started as a command: the leader of a process group or a
//! session, with three streams and default signal handling.
//!
//! The standard library also starts programs, but resets only one signal. A
//! command would inherit signals that the host ignores, and some of those
//! cannot be caught safely here.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;
use rustix::io::Errno;

pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// A program that has not been started yet.
#[derive(Debug)]
pub(crate) struct Program {
    argv: Vec<CString>,
    environment: Vec<CString>,
    streams: [OwnedFd; 3],
    leads: Leads,
}

/// The group of processes that a program leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leads {
    Group,
    /// A session, and the first group in it.
    Session,
}

impl Leads {
    fn flag(self) -> PosixSpawnFlags {
        match self {
            Self::Group => PosixSpawnFlags::POSIX_SPAWN_SETPGROUP,
            // Set by the child before it is visible as this program, so that it is
            // never found in the supervisor's group.
            Self::Session => {
                PosixSpawnFlags::from_bits_retain(nix::libc::POSIX_SPAWN_SETSID.into())
            }
        }
    }
}

impl Program {
    /// Creates a program from its path, the first of `argv`, and its arguments.
    pub(crate) fn new(
        argv: Vec<OsString>,
        environment: Environment,
        streams: [OwnedFd; 3],
        leads: Leads,
    ) -> io::Result<Self> {
        let text = |text: OsString| CString::new(text.into_vec()).map_err(|_| Errno::INVAL);
        let setting = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            text(name)
        };
        Ok(Self {
            argv: argv.into_iter().map(text).collect::<Result<_, _>>()?,
            environment: environment
                .into_iter()
                .map(setting)
                .collect::<Result<_, _>>()?,
            streams,
            leads,
        })
    }

    /// Starts it, and returns its process ID.
    pub(crate) fn start(&self) -> io::Result<i32> {
        let path = self.argv.first().ok_or(Errno::NOENT)?;
        let mut files = PosixSpawnFileActions::init()?;
        for (stream, number) in self.streams.iter().zip(0..) {
            files.add_dup2(stream.as_raw_fd(), number)?;
        }
        let mut attributes = PosixSpawnAttr::init()?;
        attributes.set_flags(
            self.leads.flag()
                | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF
                | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
        )?;
        attributes.set_pgroup(Pid::from_raw(0))?;
        attributes.set_sigdefault(&SigSet::all())?;
        attributes.set_sigmask(&SigSet::empty())?;
        let (argv, environment) = (&self.argv, &self.environment);
        let pid = posix_spawn(&**path, &files, &attributes, argv, environment)?;
        Ok(pid.as_raw())
    }
}
