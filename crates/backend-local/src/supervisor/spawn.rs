//! Starts commands, on the one thread that is confined like the commands.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex};

use backend_core::sync::lock;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;

use super::limits::{self, Prepared};
use super::process::{MARKER, ticks};
use super::program::{Environment, Leads, Program};
use super::protocol::{Exit, InView, Reply, Spawn, Trouble};
use super::shared::Shared;
use super::table::Record;

/// Limits of all commands. Taken out at the end, which undoes their setup while
/// another thread may still wait for requests.
pub(crate) type SharedLimits = Arc<Mutex<Option<Prepared>>>;

/// State that all commands share.
#[derive(Debug)]
pub(crate) struct Spawner {
    pub(crate) shell: OsString,
    pub(crate) environment: Environment,
    pub(crate) limits: SharedLimits,
    /// Opened before the confinement, which may not allow it.
    pub(crate) null: File,
    /// Opened before the confinement, too.
    pub(crate) oom_score: Option<OomScore>,
}

impl Spawner {
    pub(crate) fn new(
        shell: Vec<u8>,
        environment: Vec<(Vec<u8>, Vec<u8>)>,
        limits: SharedLimits,
    ) -> io::Result<Self> {
        let text = OsString::from_vec;
        let pairs = environment.into_iter();
        Ok(Self {
            shell: text(shell),
            environment: pairs
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            limits,
            null: File::open("/dev/null")?,
            oom_score: OomScore::read(),
        })
    }

    /// Starts a command and reports the result.
    pub(crate) fn spawn(&self, shared: &Shared, spawn: Spawn, descriptors: Vec<OwnedFd>) {
        let (id, announce) = (spawn.id, spawn.announce);
        match self.try_spawn(shared, spawn, descriptors) {
            Ok(_) if !announce => {}
            Ok(pid) => shared.tell(&Reply::Spawned { id, pid }),
            Err(trouble) => Self::fail(shared, id, announce, trouble),
        }
    }

    /// Reports a command that did not start.
    pub(crate) fn fail(shared: &Shared, id: u64, announce: bool, trouble: Trouble) {
        let cancelled = Errno::CANCELED.raw_os_error();
        let is_cancelled = shared.table().begin(id)
            || matches!(trouble, Trouble::Shell(error) if error == cancelled);
        shared.tell(&if is_cancelled && !announce {
            // As if it was killed at once.
            let exit = Exit::Signal(Signal::KILL.as_raw());
            let group = false;
            Reply::Exited { id, exit, group }
        } else {
            Reply::Failed { id, trouble }
        });
    }

    fn try_spawn(
        &self,
        shared: &Shared,
        spawn: Spawn,
        descriptors: Vec<OwnedFd>,
    ) -> Result<i32, Trouble> {
        let other = |error: io::Error| Trouble::Shell(number(&error));
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(|| other(Errno::BADF.into()));
        let directory = next()?;
        let stdin = if spawn.stdin {
            next()?
        } else {
            self.null.try_clone().map_err(other)?.into()
        };
        let stdout = next()?;
        let stderr = if spawn.merged {
            stdout.try_clone().map_err(other)?
        } else {
            next()?
        };
        let streams = [stdin, stdout, stderr];
        let mut environment = self.environment.clone();
        let own = spawn.environment.into_iter();
        environment.extend(own.map(|(name, value)| (name.into(), value.into())));
        environment.insert(MARKER.into(), shared.marker_of(spawn.id).into());
        let program = self.program(spawn.line, environment, streams, spawn.terminal);
        let program = program.map_err(other)?;
        // An open directory is the one that was meant. Its path may lead to
        // another by now. Only this thread uses the current directory, or its view's.
        let directory = match &spawn.place {
            Some(place) => reopen(place, &directory),
            None => Ok(directory),
        };
        let entered = directory.and_then(rustix::process::fchdir);
        entered.map_err(|error| Trouble::Directory(error.raw_os_error()))?;
        let start = || Self::start(shared, spawn.id, &program);
        let started = match &self.oom_score {
            Some(score) => score.with_raised(start),
            None => start(),
        };
        let _ = rustix::process::chdir("/");
        started.map_err(other)
    }

    fn program(
        &self,
        line: String,
        mut environment: Environment,
        streams: [OwnedFd; 3],
        terminal: bool,
    ) -> io::Result<Program> {
        // `--`: a line that begins with a dash is not an option.
        let argv = vec![self.shell.clone(), "-c".into(), "--".into(), line.into()];
        let prepared = lock(&self.limits);
        let argv = limits::wrap(prepared.as_ref(), terminal, argv, &mut environment);
        drop(prepared);
        let leads = if terminal {
            Leads::Session
        } else {
            Leads::Group
        };
        Program::new(argv, environment, streams, leads)
    }

    /// Starts the process and adds it to the table in one step.
    fn start(shared: &Shared, id: u64, program: &Program) -> io::Result<i32> {
        let mut table = shared.table();
        if table.begin(id) || shared.is_ending() {
            return Err(Errno::CANCELED.into());
        }
        let since = ticks();
        // The exit is collected by process ID, so no child handle is kept.
        let pid = program.start()?;
        table.leaders.insert(pid, id);
        table.commands.insert(
            id,
            Record {
                pid,
                since,
                exited: false,
                ending: false,
            },
        );
        table.started += 1;
        shared.started.notify_all();
        Ok(pid)
    }
}

/// Opens a command's directory by its path in this view. The descriptor from outside
/// would lead past its masks. A link on the path, which the filter of this thread cannot
/// refuse, may lead to no other directory.
fn reopen(place: &InView, outside: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let inside = rustix::fs::open(place.directory.as_slice(), flags, Mode::empty())?;
    let [found, meant] = [rustix::fs::fstat(&inside)?, rustix::fs::fstat(outside)?];
    if (found.st_dev, found.st_ino) == (meant.st_dev, meant.st_ino) {
        Ok(inside)
    } else if found.st_mode & 0o777 == 0 {
        // A mask.
        Err(Errno::ACCESS)
    } else {
        Err(Errno::STALE)
    }
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())
}

/// The memory use that is added to a command's score, in thousandths of all
/// memory.
const COMMAND_EXTRA: i32 = 500;

const MAX_SCORE: i32 = 1_000;

/// This process's OOM score adjustment, which children inherit.
#[derive(Debug)]
pub(crate) struct OomScore {
    /// Held while it is raised: several threads may start commands.
    file: Mutex<File>,
    own: i32,
}

impl OomScore {
    /// Returns `None` if the kernel does not let us choose.
    pub(crate) fn read() -> Option<Self> {
        let path = "/proc/self/oom_score_adj";
        let mut file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let own = text.trim().parse().ok()?;
        Some(Self {
            file: Mutex::new(file),
            own,
        })
    }

    /// Runs `work` so that processes it starts are killed before this one.
    /// Raising one's own score needs no privilege, and neither does restoring
    /// it.
    pub(crate) fn with_raised<T>(&self, work: impl FnOnce() -> T) -> T {
        let file = lock(&self.file);
        set(&file, (self.own + COMMAND_EXTRA).min(MAX_SCORE));
        let done = work();
        set(&file, self.own);
        done
    }
}

fn set(file: &File, score: i32) {
    // If it is refused, all processes are equally likely to be killed.
    let _ = file.write_at(score.to_string().as_bytes(), 0);
}
