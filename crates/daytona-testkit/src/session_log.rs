//! The log of a session's command: its output, each line with a mark of its stream.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

/// The mark of a line of standard output.
pub(crate) const STDOUT: [u8; 3] = [1; 3];

/// The mark of a line of standard error.
pub(crate) const STDERR: [u8; 3] = [2; 3];

/// A log in a file.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    length: watch::Sender<u64>,
}

impl Log {
    pub(crate) fn new(path: PathBuf) -> io::Result<Self> {
        File::create(&path)?;
        Ok(Self {
            path,
            length: watch::Sender::new(0),
        })
    }

    /// Returns its length, which grows while the command runs.
    pub(crate) fn length(&self) -> watch::Receiver<u64> {
        self.length.subscribe()
    }

    /// Returns its content after a position.
    pub(crate) fn read_from(&self, position: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(position))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends the lines of a stream until all programs have closed it.
    pub(crate) async fn copy(&self, stream: Receiver, mark: [u8; 3]) -> io::Result<()> {
        let mut file = File::options().append(true).open(&self.path)?;
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).await? > 0 {
            self.append(&mut file, &line, mark)?;
            line.clear();
        }
        Ok(())
    }

    /// Appends input of the command, as if it had printed it.
    pub(crate) fn echo(&self, line: &str) -> io::Result<()> {
        let mut file = File::options().append(true).open(&self.path)?;
        self.append(&mut file, line.as_bytes(), STDOUT)
    }

    /// Appends a line with its mark. As in a shell, which reads it into a variable, it
    /// loses its NUL bytes and gets an end.
    fn append(&self, file: &mut File, line: &[u8], mark: [u8; 3]) -> io::Result<()> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let mut marked = mark.to_vec();
        marked.extend(text.iter().filter(|byte| **byte != 0));
        marked.push(b'\n');
        file.write_all(&marked)?;
        let n_written = u64::try_from(marked.len()).unwrap_or(u64::MAX);
        self.length.send_modify(|length| *length += n_written);
        Ok(())
    }
}

/// Separates standard output and standard error. Marks in the output of a program count
/// too.
pub(crate) fn split(log: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (mut rest, mut is_error) = (log, false);
    while let Some((first, others)) = rest.split_first() {
        if rest.starts_with(&STDOUT) || rest.starts_with(&STDERR) {
            is_error = rest.starts_with(&STDERR);
            rest = &rest[STDOUT.len()..];
            continue;
        }
        let stream = if is_error { &mut stderr } else { &mut stdout };
        stream.push(*first);
        rest = others;
    }
    (stdout, stderr)
}

/// Returns all output in its order, without marks.
pub(crate) fn merged(log: &[u8]) -> Vec<u8> {
    let mut merged = Vec::new();
    let mut rest = log;
    while let Some((first, others)) = rest.split_first() {
        if rest.starts_with(&STDOUT) || rest.starts_with(&STDERR) {
            rest = &rest[STDOUT.len()..];
        } else {
            merged.push(*first);
            rest = others;
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_split_at_its_marks() {
        let log = b"\x01\x01\x01one\n\x02\x02\x02two\n\x01\x01\x01three\n";
        let (stdout, stderr) = split(log);
        assert_eq!(stdout, b"one\nthree\n");
        assert_eq!(stderr, b"two\n");
        assert_eq!(merged(log), b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_line_loses_its_zeros_and_gets_an_end() {
        let directory = tempfile::tempdir().unwrap();
        let log = Log::new(directory.path().join("log")).unwrap();
        log.echo("a\0b").unwrap();
        assert_eq!(log.read_from(0).unwrap(), b"\x01\x01\x01ab\n");
        assert_eq!(*log.length().borrow(), 6);
        assert_eq!(log.read_from(5).unwrap(), b"\n");
        assert!(log.read_from(9).unwrap().is_empty());
    }
}
