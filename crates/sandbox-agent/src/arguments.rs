//! The command line, parsed by hand: every kilobyte is copied into each
//! sandbox.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use backend_core::{Quoted, VPath};

pub(crate) const USAGE: &str = "\
Serves the files and commands of a sandbox over standard input and output.
Programs that drive a sandbox start it; it ends, with all it started, when they go.

Usage: sandbox-agent [OPTIONS]

  --directory PATH  where relative paths and commands start [default: /workspace];
                    created if missing
  --root PATH       serve this directory as / instead of the whole file system
  --read-only       refuse changes by file operations
  --hold            serve nothing and wait for a signal: keeps a container alive
  --install PATH    serve nothing and copy this program to PATH
  --version         print the version
  --help            print this";

/// The default working directory in a sandbox.
const DIRECTORY: &str = "/workspace";

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
}

/// Parses the arguments. The error says what is wrong with them.
pub(crate) fn parse(mut words: impl Iterator<Item = OsString>) -> Result<Request, String> {
    let (mut root, mut directory) = (OsString::from("/"), OsString::from(DIRECTORY));
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
    Ok(Request::Serve(Arguments {
        root: root.into(),
        directory,
        read_only,
    }))
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
        }))
    }

    #[test]
    fn everything_has_a_default() {
        assert_eq!(read(&[]), serve("/", "/workspace", false));
        assert_eq!(read(&["--directory", "/a/../b"]), serve("/", "/b", false));
        let all = ["--read-only", "--root", "/r", "--directory", "/"];
        assert_eq!(read(&all), serve("/r", "/", true));
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
            (&["--directory", "relative"][..], "must begin with /"),
            (&["--directory", "/.."][..], "root"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
