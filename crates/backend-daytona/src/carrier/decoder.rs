//! [`Decoder`]: the output of programs, from the log of the session that carries them.

use backend_core::{Error, Quoted, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};

/// The longest line. Those of `base64` have 76 characters.
const LINE_BYTES: usize = 64 * 1024;
/// Bytes of other lines that are kept, to be shown.
const NOISE_BYTES: usize = 400;
/// The length of the marks in a log that say which stream follows.
const MARK_BYTES: u8 = 3;

/// One of the two streams of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// A piece of what is carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Output(Stream, Bytes),
    /// Output up to a size of a file.
    Spooled {
        stream: Stream,
        /// The number of the file.
        file: u64,
        size: u64,
    },
    /// The program has ended with this code, and all of its output has arrived.
    End(i32),
    /// The carrier needs a tool that the image does not have.
    Missing(String),
}

/// Reads a log that may be sent again from its start.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    stdout: Lines,
    stderr: Lines,
    marks: Marks,
    /// Lines that are not of a carrier, such as complaints of the shell.
    noise: String,
}

/// The lines of one stream.
#[derive(Debug, Default)]
struct Lines {
    /// Bytes of the log that were taken.
    taken: u64,
    /// Bytes of the log that will come again.
    again: u64,
    /// A line that is not complete yet.
    rest: Vec<u8>,
    /// The exit code, once the program has ended.
    end: Option<i32>,
}

/// The place in a log with marks.
#[derive(Debug, Default)]
struct Marks {
    /// The stream that follows the last mark.
    stream: Option<Stream>,
    /// The last byte of a mark that is not complete, and how often it was there.
    begun: (u8, u8),
}

impl Decoder {
    /// Notes that the log will come again from its start.
    pub(super) fn restart(&mut self) {
        self.marks = Marks::default();
        for lines in [&mut self.stdout, &mut self.stderr] {
            lines.again = lines.taken;
        }
    }

    /// Bytes of the log that were taken.
    pub(super) fn taken(&self) -> u64 {
        self.stdout.taken + self.stderr.taken
    }

    /// Returns the last lines that are not of a carrier, to be shown.
    pub(super) fn noise(&self) -> Option<String> {
        let noise = self.noise.trim();
        (!noise.is_empty()).then(|| Quoted::new(noise).to_string())
    }

    /// Takes bytes of a log in which marks say which stream follows.
    pub(super) fn marked(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<()> {
        let mut plain = Vec::with_capacity(bytes.len());
        for byte in bytes {
            let stream = match byte {
                1 => Stream::Stdout,
                2 => Stream::Stderr,
                byte => {
                    self.marks.begun = (0, 0);
                    plain.push(*byte);
                    continue;
                }
            };
            let (before, times) = self.marks.begun;
            let times = if before == *byte { times + 1 } else { 1 };
            self.marks.begun = (*byte, times);
            if times == MARK_BYTES {
                self.marks.begun = (0, 0);
                self.of_current(&plain, pieces)?;
                plain.clear();
                self.marks.stream = Some(stream);
            }
        }
        self.of_current(&plain, pieces)
    }

    fn of_current(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<()> {
        match self.marks.stream {
            Some(stream) => self.plain(stream, bytes, pieces),
            None => Ok(()),
        }
    }

    /// Takes bytes of the log of one stream.
    pub(super) fn plain(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        pieces: &mut Vec<Piece>,
    ) -> Result<()> {
        let lines = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let known = usize::try_from(lines.again).unwrap_or(usize::MAX);
        let known = known.min(bytes.len());
        lines.again -= known as u64;
        let bytes = bytes.get(known..).unwrap_or_default();
        lines.taken += bytes.len() as u64;
        let mut output = BytesMut::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            lines.rest.extend_from_slice(part);
            if lines.rest.last() != Some(&b'\n') {
                break;
            }
            let line = std::mem::take(&mut lines.rest);
            let line = line.trim_ascii();
            match line.split_first() {
                None => {}
                Some((b'!', words)) => {
                    let words = String::from_utf8_lossy(words);
                    match control(&words) {
                        Some(Control::End(code)) => lines.end = Some(code),
                        Some(Control::Missing(tool)) => pieces.push(Piece::Missing(tool)),
                        Some(Control::Lost) => {
                            return Err(Error::unavailable(
                                "a part of a program's input or output was lost in the sandbox; see whether its disk is full, and try again",
                            ));
                        }
                        Some(Control::File(file, size)) => {
                            flush(stream, &mut output, pieces);
                            spool(stream, file, size, pieces);
                        }
                        None => note(&mut self.noise, line),
                    }
                }
                Some(_) => match STANDARD.decode(line) {
                    Ok(decoded) => output.extend_from_slice(&decoded),
                    Err(_) => note(&mut self.noise, line),
                },
            }
        }
        if lines.rest.len() > LINE_BYTES {
            return Err(Error::unavailable(
                "the sandbox printed a line that is too long; something in it may have tampered with its shell",
            ));
        }
        flush(stream, &mut output, pieces);
        if let (Some(code), Some(_)) = (self.stdout.end, self.stderr.end) {
            (self.stdout.end, self.stderr.end) = (None, None);
            pieces.push(Piece::End(code));
        }
        Ok(())
    }
}

fn flush(stream: Stream, output: &mut BytesMut, pieces: &mut Vec<Piece>) {
    if !output.is_empty() {
        pieces.push(Piece::Output(stream, output.split().freeze()));
    }
}

/// Adds a part of a file, or extends the last piece of its stream if that is of the same file.
fn spool(stream: Stream, file: u64, size: u64, pieces: &mut Vec<Piece>) {
    let last = pieces.iter_mut().rev().find(|piece| match piece {
        Piece::Output(its, _) | Piece::Spooled { stream: its, .. } => *its == stream,
        Piece::End(_) | Piece::Missing(_) => true,
    });
    match last {
        Some(Piece::Spooled {
            file: its,
            size: end,
            ..
        }) if *its == file => *end = size,
        _ => pieces.push(Piece::Spooled { stream, file, size }),
    }
}

enum Control {
    End(i32),
    /// The number and the size of a file.
    File(u64, u64),
    Missing(String),
    /// A part of the input or the output was lost.
    Lost,
}

fn control(words: &str) -> Option<Control> {
    match words.split_once(' ')? {
        ("end", code) => code.parse().ok().map(Control::End),
        ("file", numbers) => {
            let (file, size) = numbers.split_once(' ')?;
            Some(Control::File(file.parse().ok()?, size.parse().ok()?))
        }
        ("missing", tool) => Some(Control::Missing(tool.to_owned())),
        ("lost", _) => Some(Control::Lost),
        _ => None,
    }
}

/// Keeps the start of a line that is not of a carrier.
fn note(noise: &mut String, line: &[u8]) {
    if noise.len() < NOISE_BYTES {
        let room = NOISE_BYTES.min(line.len());
        let start = line.get(..room).unwrap_or_default();
        noise.push_str(&String::from_utf8_lossy(start));
        noise.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A log as a session makes it: a mark before every line.
    fn log(lines: &[(Stream, &str)]) -> Vec<u8> {
        let mut log = Vec::new();
        for (stream, line) in lines {
            let mark = if *stream == Stream::Stdout { 1 } else { 2 };
            log.extend([mark; 3]);
            log.extend(line.as_bytes());
            log.push(b'\n');
        }
        log
    }

    fn example() -> Vec<u8> {
        log(&[
            (Stream::Stdout, "aGVsbG8g"),
            (Stream::Stderr, "d2Fybg=="),
            (Stream::Stdout, "d29ybGQ="),
            (Stream::Stderr, "!end 3"),
            (Stream::Stdout, "!end 3"),
        ])
    }

    fn joined(pieces: &[Piece]) -> (String, String, Vec<i32>) {
        let (mut out, mut err, mut ends) = (String::new(), String::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Output(Stream::Stdout, bytes) => out += std::str::from_utf8(bytes).unwrap(),
                Piece::Output(Stream::Stderr, bytes) => err += std::str::from_utf8(bytes).unwrap(),
                Piece::End(code) => ends.push(*code),
                other => panic!("{other:?}"),
            }
        }
        (out, err, ends)
    }

    fn expected() -> (String, String, Vec<i32>) {
        ("hello world".to_owned(), "warn".to_owned(), vec![3])
    }

    #[test]
    fn a_log_is_read_however_it_is_cut_and_sent_again() {
        let log = example();
        for cut in 0..=log.len() {
            let (mut decoder, mut pieces) = (Decoder::default(), Vec::new());
            decoder.marked(&log[..cut], &mut pieces).unwrap();
            decoder.marked(&log[cut..], &mut pieces).unwrap();
            assert_eq!(joined(&pieces), expected(), "cut at {cut}");
            // The connection was lost, and the log comes again from its start.
            let (mut decoder, mut pieces) = (Decoder::default(), Vec::new());
            decoder.marked(&log[..cut], &mut pieces).unwrap();
            decoder.restart();
            decoder.marked(&log, &mut pieces).unwrap();
            assert_eq!(joined(&pieces), expected(), "again at {cut}");
        }
    }

    #[test]
    fn the_same_log_without_marks() {
        let (mut decoder, mut pieces) = (Decoder::default(), Vec::new());
        let stdout = "aGVsbG8g\nd29ybGQ=\n!end 3\n";
        for end in [4, 9, stdout.len()] {
            decoder.restart();
            let sent = &stdout.as_bytes()[..end];
            decoder.plain(Stream::Stdout, sent, &mut pieces).unwrap();
        }
        let stderr = b"d2Fybg==\n!end 3\n";
        decoder.plain(Stream::Stderr, stderr, &mut pieces).unwrap();
        assert_eq!(joined(&pieces), expected());
    }

    #[test]
    fn other_lines_are_shown_and_not_taken_for_output() {
        let (mut decoder, mut pieces) = (Decoder::default(), Vec::new());
        let lines = log(&[
            (Stream::Stderr, "mkdir: no space left"),
            (Stream::Stdout, "!nonsense"),
            (Stream::Stdout, "!end x"),
            (Stream::Stdout, "!missing base64"),
        ]);
        decoder.marked(&lines, &mut pieces).unwrap();
        assert_eq!(pieces, [Piece::Missing("base64".to_owned())]);
        assert!(decoder.noise().unwrap().contains("no space left"));
    }

    #[test]
    fn parts_of_one_file_are_one_piece() {
        let (mut decoder, mut pieces) = (Decoder::default(), Vec::new());
        let spooled = |stream, file, size| Piece::Spooled { stream, file, size };
        let lines = log(&[
            (Stream::Stdout, "aGVsbG8g"),
            (Stream::Stdout, "!file 0 100"),
            (Stream::Stderr, "!file 0 7"),
            (Stream::Stdout, "!file 0 200"),
            (Stream::Stdout, "!file 1 50"),
            (Stream::Stdout, "d29ybGQ="),
            (Stream::Stdout, "!file 1 60"),
            (Stream::Stdout, "!file 1 x"),
        ]);
        decoder.marked(&lines, &mut pieces).unwrap();
        let expected = [
            Piece::Output(Stream::Stdout, "hello ".into()),
            spooled(Stream::Stdout, 0, 200),
            spooled(Stream::Stderr, 0, 7),
            spooled(Stream::Stdout, 1, 50),
            Piece::Output(Stream::Stdout, "world".into()),
            spooled(Stream::Stdout, 1, 60),
        ];
        assert_eq!(pieces, expected);
        assert!(decoder.noise().unwrap().contains("!file 1 x"));
    }

    #[test]
    fn a_line_cannot_grow_forever() {
        let (mut decoder, mut pieces) = (Decoder::default(), Vec::new());
        let mut fed = 0;
        let refused = loop {
            fed += 1000;
            let line = vec![b'A'; 1000];
            match decoder.plain(Stream::Stdout, &line, &mut pieces) {
                Ok(()) => assert!(fed < 10 * LINE_BYTES),
                Err(error) => break error,
            }
        };
        assert!(refused.message().contains("too long"), "{refused}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(prop::sample::select(b"\x01\x02!endfil12A= \n\xff".to_vec()), 0..400)) {
            let (mut decoder, mut pieces) = (Decoder::default(), Vec::new());
            prop_assert!(decoder.marked(&bytes, &mut pieces).is_ok());
        }
    }
}
