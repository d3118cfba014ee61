//! A minimal ELF parser: the architecture of a program, and whether it needs
//! anything else to run.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of the file's header, and of an entry of the table that it points to.
const HEADER: usize = 64;
const ENTRY: usize = 56;

/// The number of entries that a table may have. Programs have a dozen.
const MAX_ENTRIES: u16 = 256;

/// The entry that names a loader of shared libraries.
const INTERPRETER: u32 = 3;

/// Architectures by number, with the names that images use.
const ARCHITECTURES: &[(u16, &str)] = &[
    (62, "amd64"),
    (183, "arm64"),
    (21, "ppc64le"),
    (243, "riscv64"),
    (258, "loong64"),
];

/// The reason why a file cannot be the agent.
#[derive(Debug)]
pub(super) enum Problem {
    NoProgram,
    Damaged,
    Processor(u16),
    Dynamic,
    Io(io::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram => f.write_str("it is not a 64-bit Linux program"),
            Self::Damaged => f.write_str("it is damaged"),
            Self::Processor(number) => write!(f, "processor {number} is unknown"),
            Self::Dynamic => f.write_str("it needs shared libraries, which a sandbox may not have"),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

/// Returns the architecture of a program.
pub(super) fn examine(file: &mut (impl Read + Seek)) -> Result<&'static str, Problem> {
    let mut header = [0; HEADER];
    fill(file, &mut header).map_err(|problem| match problem {
        Problem::Damaged => Problem::NoProgram,
        other => other,
    })?;
    // 64 bit, little-endian. Numbers in other files have a different layout.
    if !header.starts_with(b"\x7fELF\x02\x01") || !matches!(number::<2>(&header, 16), 2 | 3) {
        return Err(Problem::NoProgram);
    }
    let machine = short(&header, 18);
    let known = ARCHITECTURES.iter().find(|(number, _)| *number == machine);
    let (_, arch) = known.ok_or(Problem::Processor(machine))?;
    let (table, entry, entries) = (
        number::<8>(&header, 32),
        short(&header, 54),
        short(&header, 56),
    );
    if usize::from(entry) != ENTRY || entries == 0 || entries > MAX_ENTRIES {
        return Err(Problem::Damaged);
    }
    file.seek(SeekFrom::Start(table))
        .map_err(|_| Problem::Damaged)?;
    for _ in 0..entries {
        let mut entry = [0; ENTRY];
        fill(file, &mut entry)?;
        if number::<4>(&entry, 0) == u64::from(INTERPRETER) {
            return Err(Problem::Dynamic);
        }
    }
    Ok(arch)
}

fn fill(file: &mut impl Read, buffer: &mut [u8]) -> Result<(), Problem> {
    file.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Problem::Damaged,
        _ => Problem::Io(error),
    })
}

/// Returns the little-endian number of `N` bytes at `at`, or zero if it is out
/// of range.
fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + N).unwrap_or_default();
    bytes
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::try_from(number::<2>(bytes, at)).unwrap_or_default()
}
