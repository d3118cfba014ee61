//! The tokens of an HTTP server: none, a new one, or those stored in a file.

mod lines;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use console_mcp::Token;

use crate::config::{Mcp, config_directory};
use crate::exit::{Failure, environment, usage};
use crate::system;

/// Number of random bytes in a new token.
const RANDOM_BYTES: usize = 32;

/// Maximum size of the file.
const FILE_BYTES: u64 = 64 * 1024;

/// The source of a server's tokens.
#[derive(Debug)]
pub(crate) enum TokenSource {
    /// No token.
    None,
    /// A file, which is created if it is missing.
    File(PathBuf),
    /// A new token at each start.
    Random,
}

impl TokenSource {
    /// Chooses the token from the flags, else from the configuration.
    pub(crate) fn new(config: &Mcp, file: Option<PathBuf>, none: bool) -> Result<Self, Failure> {
        match (file, none) {
            (Some(file), _) => Ok(Self::File(file)),
            (None, true) => Ok(Self::None),
            (None, false) => match (&config.token_file, config.no_token) {
                (Some(_), true) => Err(Failure::usage(
                    "mcp.token_file and mcp.no_token exclude each other; remove one of them",
                )),
                (Some(file), false) => Ok(Self::File(file.clone())),
                (None, true) => Ok(Self::None),
                (None, false) => Ok(Self::Random),
            },
        }
    }
}

/// Returns the error for a token that lies among the files that the tools show.
pub(crate) fn readable(token: &Path) -> Failure {
    usage!(
        "the tools could read the token in {}; put it outside of the files that they show",
        token.display()
    )
}

/// Generates a token that cannot be guessed.
pub(crate) fn random() -> Result<String, Failure> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        environment!("this machine gives no random numbers: {error}; give --token-file FILE")
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the tokens from a file. Returns `true` with them if the file was created, with one.
pub(crate) fn from_file(file: &Path) -> Result<(Vec<Token>, bool), Failure> {
    if !system::REPORTS_FILE_OWNERS {
        return Err(Failure::usage(
            "this system does not tell who can read a file; leave out --token-file, and take the token \
             that is printed",
        ));
    }
    match open(file) {
        Ok(open) => read(file, open).map(|tokens| (tokens, false)),
        Err(error) if error.kind() == ErrorKind::NotFound => match create(file)? {
            Some(token) => Ok((vec![Token::new(token)], true)),
            // Another process was faster.
            None => {
                let open = open(file).map_err(|error| unable(file, &error))?;
                read(file, open).map(|tokens| (tokens, false))
            }
        },
        Err(error) => Err(unable(file, &error)),
    }
}

/// Returns `true` if a file holds tokens with names. One that cannot be read, or would be
/// refused, holds none.
pub(crate) fn has_names(file: &Path) -> bool {
    let mut text = String::new();
    let read = open(file).and_then(|open| open.take(FILE_BYTES).read_to_string(&mut text));
    let tokens = read.ok().and_then(|_| lines::parse(&text).ok());
    let mut tokens = tokens.iter().flatten();
    tokens.any(|token| token.name().is_some())
}

/// Opens the file. Does not wait for a writer if it is a FIFO.
fn open(file: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options.read(true).open(file)
}

fn unable(file: &Path, error: &std::io::Error) -> Failure {
    let shown = file.display();
    usage!("the token file {shown} cannot be used: {error}; give another")
}

fn read(file: &Path, open: File) -> Result<Vec<Token>, Failure> {
    let shown = file.display();
    let about = open.metadata().map_err(|error| unable(file, &error))?;
    if !about.is_file() {
        return Err(usage!(
            "the token file {shown} is not a regular file; give another"
        ));
    }
    let owner = system::file_owner(&about);
    if !owner.is_own {
        return Err(usage!(
            "the token file {shown} belongs to another user, who knows the token; give another"
        ));
    }
    let mode = owner.mode & 0o777;
    if mode & 0o077 != 0 {
        // A file with names is written by hand, and is not made anew.
        let fix = if has_names(file) {
            "run chmod 600, and write new tokens if these may be known"
        } else {
            "run chmod 600, or remove it to get a new token, as this one may be known"
        };
        return Err(usage!(
            "other users may use the token file {shown} (mode {mode:03o}); {fix}"
        ));
    }
    if about.len() > FILE_BYTES {
        return Err(usage!(
            "{shown} has more than {FILE_BYTES} bytes, so it holds no token; give another file"
        ));
    }
    let mut text = String::new();
    open.take(FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| unable(file, &error))?;
    lines::parse(&text).map_err(|problem| usage!("the token file {shown}: {problem}"))
}

/// Creates the file, readable by its owner only. Returns `None` if it exists by now.
fn create(file: &Path) -> Result<Option<String>, Failure> {
    if let Some(directory) = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir())
    {
        // Only the directory that `mcp-config` uses is created: any other may be a
        // typo.
        if config_directory().as_deref() != Some(directory) {
            return Err(environment!(
                "there is no directory {} for the token file; create it, or name another",
                directory.display()
            ));
        }
        system::make_directories(directory, 0o700).map_err(|error| unable(file, &error))?;
    }
    let token = random()?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let open = system::make_private(&mut options).open(file);
    let mut open = match open {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        open => open.map_err(|error| unable(file, &error))?,
    };
    writeln!(open, "{token}").map_err(|error| unable(file, &error))?;
    Ok(Some(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_no_token_file_is_told_from_what_others_may_read() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let fifo = place("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let long = place("long");
        let (tokens, is_new) = from_file(&long).unwrap();
        assert_eq!((tokens.len(), is_new), (1, true));
        let made = std::fs::read_to_string(&long).unwrap();
        std::fs::write(&long, made + &" ".repeat(64 * 1024)).unwrap();
        let of_other = if rustix::process::geteuid().is_root() {
            let file = place("other");
            from_file(&file).unwrap();
            std::os::unix::fs::chown(&file, Some(1), None).unwrap();
            file
        } else {
            PathBuf::from("/etc/passwd")
        };
        for (file, expected) in [
            (fifo.as_path(), "not a regular file"),
            (directory.path(), "not a regular file"),
            (&long, "more than 65536 bytes"),
            (&of_other, "belongs to another user"),
        ] {
            let error = from_file(file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
