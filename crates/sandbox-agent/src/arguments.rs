//! The command line, parsed by hand: every kilobyte is copied into each
//! sandbox.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use backend_core::{Quoted, VPath};

pub(crate) const USAGE: &str = "\
Serves the files and commands of a sandbox over standard input and output.
Programs that drive a sandbox start it; it ends, with all it started, when they go.

Usage: sandbox-agent [OPTIONS]

  --directory PATH  where relative paths and commands start [default: /workspace];
                    created if missing
  --root PATH       serve this directory as / instead of the whole file system
  --read-only       refuse changes by file operations
  --listen FILE     serve on a port of 127.0.0.1 instead, to clients that send the
                    token in FILE, which must have mode 0600 and is deleted;
                    the port is written to FILE.port
  --wait SECONDS    with --listen: exit if no client comes, or comes again, for
                    so long [default: 60]
  --socket PATH     read a token from standard input, and serve on the socket at PATH
                    if the program there knows it, else on the standard streams
  --hold            serve nothing and wait for a signal: keeps a container alive
  --install PATH    serve nothing and copy this program to PATH
  --version         print the version
  --help            print this";

/// The default working directory in a sandbox.
const DIRECTORY: &str = "/workspace";

/// The default wait for a client, and the longest one.
const WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: u64 = 24 * 60 * 60;

/// A request to the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Serve(Arguments),
    /// Does nothing until a signal asks it to end.
    Hold,
    /// Copies the program.
    Install(PathBuf),
    Version,
    Help,
}

/// The directory to serve, and how.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) root: PathBuf,
    pub(crate) directory: VPath,
    pub(crate) read_only: bool,
    /// Serves on a port instead of standard input and output.
    pub(crate) listen: Option<Listen>,
    /// Serves on a connection to this socket if there is one.
    pub(crate) socket: Option<PathBuf>,
}

/// How to serve on a port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) token_file: PathBuf,
    /// The wait for a client, and for the next one after it.
    pub(crate) wait: Duration,
}

/// Parses the arguments. The error says what is wrong with them.
pub(crate) fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Request, String> {
    let (mut root, mut directory) = (OsString::from("/"), OsString::from(DIRECTORY));
    let (mut listen, mut wait, mut socket) = (None, None, None);
    let mut read_only = false;
    while let Some(word) = words.next() {
        let place = match word.to_str() {
            Some("--version") => return Ok(Request::Version),
            Some("--help") => return Ok(Request::Help),
            Some("--hold") => return Ok(Request::Hold),
            Some("--install") => return Ok(Request::Install(path(&word, words.next())?.into())),
            Some("--read-only") => {
                read_only = true;
                continue;
            }
            Some("--listen") => listen.insert(OsString::new()),
            Some("--socket") => socket.insert(OsString::new()),
            Some("--wait") => {
                wait = Some(seconds(words.next())?);
                continue;
            }
            Some("--root") => &mut root,
            Some("--directory") => &mut directory,
            _ => {
                let word = word.to_string_lossy();
                let word = Quoted::new(&word);
                return Err(format!("unknown argument {word}; see --help"));
            }
        };
        *place = path(&word, words.next())?;
    }
    let directory = directory
        .to_str()
        .ok_or("the directory is not UTF-8; name another")?;
    if !directory.starts_with('/') {
        return Err("the directory must begin with /".to_owned());
    }
    let directory = VPath::parse(directory).map_err(|error| error.to_string())?;
    if listen.is_none() && wait.is_some() {
        return Err("--wait is for --listen; add that".to_owned());
    }
    if listen.is_some() && socket.is_some() {
        return Err("--listen and --socket are given; choose one".to_owned());
    }
    let listen = listen.map(|token_file| Listen {
        token_file: token_file.into(),
        wait: wait.unwrap_or(WAIT),
    });
    Ok(Request::Serve(Arguments {
        root: root.into(),
        directory,
        read_only,
        listen,
        socket: socket.map(PathBuf::from),
    }))
}

/// Returns the time after `--wait`.
fn seconds(value: Option<OsString>) -> Result<Duration, String> {
    let seconds: Option<u64> = value.and_then(|value| value.to_str()?.parse().ok());
    seconds
        .filter(|seconds| (1..=LONGEST_WAIT).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| format!("--wait needs a number from 1 to {LONGEST_WAIT} after it"))
}

/// Returns the path after an option.
fn path(option: &OsStr, value: Option<OsString>) -> Result<OsString, String> {
    let value = value.filter(|value| !value.is_empty());
    value.ok_or_else(|| format!("{} needs a path after it", option.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Request, String> {
        parse(words.iter().map(OsString::from))
    }

    fn serve(root: &str, directory: &str, read_only: bool) -> Result<Request, String> {
        Ok(Request::Serve(Arguments {
            root: root.into(),
            directory: VPath::parse(directory).unwrap(),
            read_only,
            listen: None,
            socket: None,
        }))
    }

    fn listen(words: &[&str]) -> Option<Listen> {
        match read(words) {
            Ok(Request::Serve(arguments)) => arguments.listen,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_has_a_default() {
        assert_eq!(read(&[]), serve("/", "/workspace", false));
        assert_eq!(read(&["--directory", "/a/../b"]), serve("/", "/b", false));
        let all = ["--read-only", "--root", "/r", "--directory", "/"];
        assert_eq!(read(&all), serve("/r", "/", true));
    }

    #[test]
    fn a_port_instead_of_the_streams() {
        let listening = |seconds| {
            Some(Listen {
                token_file: "/t/token".into(),
                wait: Duration::from_secs(seconds),
            })
        };
        assert_eq!(listen(&["--read-only"]), None);
        assert_eq!(listen(&["--listen", "/t/token"]), listening(60));
        let all = ["--wait", "5", "--listen", "/t/token", "--root", "/r"];
        assert_eq!(listen(&all), listening(5));
    }

    #[test]
    fn a_socket_before_the_streams() {
        let Ok(Request::Serve(arguments)) = read(&["--socket", "/s", "--directory", "/d"]) else {
            panic!("the arguments are right");
        };
        assert_eq!(arguments.socket, Some("/s".into()));
        assert_eq!(arguments.listen, None);
    }

    #[test]
    fn questions_are_answered_wherever_they_stand() {
        assert_eq!(read(&["--root", "/r", "--version"]), Ok(Request::Version));
        assert_eq!(read(&["--hold"]), Ok(Request::Hold));
        let install = Request::Install("/a/agent".into());
        assert_eq!(read(&["--install", "/a/agent"]), Ok(install));
        assert_eq!(read(&["--help", "--nonsense"]), Ok(Request::Help));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, expected) in [
            (&["--nonsense"][..], "--nonsense"),
            (&["--directory"][..], "--directory needs a path"),
            (&["--root", ""][..], "--root needs a path"),
            (&["--install"][..], "--install needs a path"),
            (&["--listen"][..], "--listen needs a path"),
            (&["--socket"][..], "--socket needs a path"),
            (&["--socket", "/s", "--listen", "/t"][..], "choose one"),
            (&["--wait", "5"][..], "--listen"),
            (&["--listen", "/t", "--wait"][..], "--wait needs a number"),
            (&["--listen", "/t", "--wait", "0"][..], "--wait needs"),
            (&["--listen", "/t", "--wait", "86401"][..], "--wait needs"),
            (&["--listen", "/t", "--wait", "soon"][..], "--wait needs"),
            (&["--directory", "relative"][..], "must begin with /"),
            (&["--directory", "/.."][..], "root"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
