//! The files beside a port: the token that comes in, and the port that goes out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use backend_core::{Error, ErrorKind, Result};
use rustix::fs::{Mode, OFlags};
use sandbox_wire::websocket::{PORT_SUFFIX, Token};

use crate::suffixed::suffixed;

/// The permissions of the group and of others.
const OTHERS: u32 = 0o077;

/// Bytes that a token file can have: a token and the end of its line.
const FILE_BYTES: u64 = Token::MAX_LENGTH as u64 + 2;

/// Reads the token, and deletes its file.
pub(super) fn take_token(path: &Path) -> Result<Token> {
    let text = read(path).map_err(|error| {
        let text = format!("the token file {} cannot be used", path.display());
        Error::new(ErrorKind::Config, text).with_source(error)
    })?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Token::new(line.strip_suffix('\r').unwrap_or(line))
}

fn read(path: &Path) -> io::Result<String> {
    // Something else in its place is not followed, and not waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file; write the token to one"));
    }
    if metadata.permissions().mode() & OTHERS != 0 {
        let text = "others may read or write it; give it mode 0600 before the token is in it";
        return Err(io::Error::other(text));
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES).read_to_string(&mut text);
    // A token that stays could be read by any command later.
    fs::remove_file(path)?;
    read?;
    Ok(text)
}

/// The file with the port, which exists as long as this does.
#[derive(Debug)]
pub(super) struct PortFile(PathBuf);

impl PortFile {
    /// Writes the file, completely or not at all.
    pub(super) fn write(token_file: &Path, port: u16) -> Result<Self> {
        let path = suffixed(token_file, PORT_SUFFIX);
        write(&path, port).map_err(|error| {
            let text = format!("the port cannot be written to {}", path.display());
            Error::new(ErrorKind::Config, text).with_source(error)
        })?;
        Ok(Self(path))
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn write(path: &Path, port: u16) -> io::Result<()> {
    let partial = suffixed(path, ".part");
    let mut options = OpenOptions::new();
    // Nothing that is there already is written to.
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(&partial)?;
    let written = writeln!(file, "{port}").and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}
