//! Process information from `/proc`, and signals that reach the right process.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

/// The variable that every command's processes inherit. Its value identifies
/// the command.
pub(crate) const MARKER: &str = "AGENTBOX_COMMAND";

/// The most of a process's environment that is searched, in bytes. The kernel
/// lets no program start with more.
const ENVIRONMENT_BYTES: u64 = 8 * 1024 * 1024;

/// More than the length of a `/proc/PID/stat` line: about fifty numbers and a
/// name.
const STAT_BYTES: usize = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// The start time, in clock ticks since boot. Together with the process ID
    /// it identifies a process uniquely.
    pub(crate) start: u64,
    /// Whether it can still run.
    pub(crate) alive: bool,
}

impl Process {
    pub(crate) fn read(pid: i32) -> Option<Self> {
        let mut line = [0; STAT_BYTES];
        // The kernel writes the whole line at once.
        let length = fs::File::open(format!("/proc/{pid}/stat"))
            .and_then(|mut file| file.read(&mut line))
            .ok()?;
        Self::parse(pid, line.get(..length)?)
    }

    /// Parses a line of `/proc/PID/stat`. The process chooses the name in
    /// parentheses, which may contain anything.
    pub(crate) fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        let close = stat.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let mut number = |skip: usize| fields.nth(skip)?.parse::<i32>().ok();
        let (parent, group, session) = (number(0)?, number(0)?, number(0)?);
        let threads = number(13)?;
        Some(Self {
            pid,
            parent,
            group,
            session,
            start: fields.nth(1)?.parse().ok()?,
            // A process whose first thread has ended looks dead while other
            // threads run.
            alive: !matches!(state, "Z" | "X" | "x") || threads > 1,
        })
    }

    /// Whether the same process still exists and is alive.
    pub(crate) fn still_alive(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.start == self.start && now.alive)
    }

    /// Returns the value of the marker in its initial environment.
    pub(crate) fn marker(&self) -> Option<Vec<u8>> {
        let file = fs::File::open(format!("/proc/{}/environ", self.pid)).ok()?;
        let mut environment = Vec::new();
        file.take(ENVIRONMENT_BYTES)
            .read_to_end(&mut environment)
            .ok()?;
        marker_in(&environment)
    }

    /// Returns a handle to it, if it is still the same process.
    ///
    /// The handle is opened first and the start time checked afterwards. If it
    /// matches, the handle refers to this process.
    pub(crate) fn handle(&self) -> Result<OwnedFd, Errno> {
        let pid = Pid::from_raw(self.pid).ok_or(Errno::SRCH)?;
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        self.still_alive().then_some(handle).ok_or(Errno::SRCH)
    }

    /// Sends a signal to it, and never to another process that reuses its ID.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        match self.handle() {
            Ok(handle) => rustix::process::pidfd_send_signal(handle, signal),
            // If no handle can be opened, the check right before the signal
            // must do.
            Err(Errno::NOSYS | Errno::MFILE | Errno::NFILE | Errno::PERM) if self.still_alive() => {
                let pid = Pid::from_raw(self.pid).ok_or(Errno::SRCH)?;
                rustix::process::kill_process(pid, signal)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns all visible processes, and whether a listed one was gone when it was
/// examined. In that case a process it started just before may be missing.
pub(crate) fn all() -> std::io::Result<(Vec<Process>, bool)> {
    let mut numbers: Vec<i32> = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    let found: Vec<Process> = numbers.iter().copied().filter_map(Process::read).collect();
    let vanished = found.len() < numbers.len();
    Ok((found, vanished))
}

/// Whether a process group has members.
pub(crate) fn group_exists(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group) != Err(Errno::SRCH)
}

/// Returns the current time in the unit of [`Process::start`].
pub(crate) fn ticks() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let second = rustix::param::clock_ticks_per_second();
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let part = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * second + part * second / 1_000_000_000
}

fn marker_in(environment: &[u8]) -> Option<Vec<u8>> {
    environment
        .split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))
        .map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_fake_the_fields() {
        let line = b"7 (a) Z 1 2 3 (b)) S 4 5 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0";
        let process = Process::parse(7, line).unwrap();
        assert_eq!((process.parent, process.group, process.session), (4, 5, 6));
        assert_eq!((process.start, process.alive), (99, true));
        assert_eq!(Process::parse(7, b"7 (a"), None);
        assert_eq!(Process::parse(7, b"7 (a) S 1"), None);
    }

    #[test]
    fn a_dead_first_thread_is_not_a_dead_process() {
        let line = |threads| format!("7 (a) Z 4 5 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 0");
        assert!(Process::parse(7, line(2).as_bytes()).unwrap().alive);
        assert!(!Process::parse(7, line(1).as_bytes()).unwrap().alive);
    }

    #[test]
    fn sees_itself() {
        let me = i32::try_from(std::process::id()).unwrap();
        let process = Process::read(me).unwrap();
        assert!(process.still_alive() && process.start <= ticks());
        assert!(all().unwrap().0.iter().any(|other| other.pid == me));
        let other = Process {
            start: process.start + 1,
            ..process
        };
        assert_eq!(other.handle().unwrap_err(), Errno::SRCH);
        assert_eq!(other.signal(Signal::KILL).unwrap_err(), Errno::SRCH);
    }

    #[test]
    fn finds_the_marker_as_a_whole_name() {
        assert_eq!(
            marker_in(b"A=b\0AGENTBOX_COMMAND=x-1\0"),
            Some(b"x-1".to_vec())
        );
        assert_eq!(marker_in(b"XAGENTBOX_COMMAND=x\0AGENTBOX_COMMANDS=y"), None);
    }
}
