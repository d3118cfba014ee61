//! A minimal ELF parser: the architecture of a program, and whether it needs
//! anything else to run.

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

const NO_PROGRAM: &str = "it is not a 64-bit Linux program";
const DAMAGED: &str = "it is damaged";

/// Returns the architecture of a program, or the reason why it cannot be the
/// agent.
pub(super) fn examine(file: &mut (impl Read + Seek)) -> Result<&'static str, String> {
    let mut header = [0; HEADER];
    fill(file, &mut header, NO_PROGRAM)?;
    // 64 bit, little-endian. Numbers in other files have a different layout.
    if !header.starts_with(b"\x7fELF\x02\x01") || !matches!(number::<2>(&header, 16), 2 | 3) {
        return Err(NO_PROGRAM.into());
    }
    let machine = short(&header, 18);
    let known = ARCHITECTURES.iter().find(|(number, _)| *number == machine);
    let (_, arch) = known.ok_or_else(|| format!("processor {machine} is unknown"))?;
    let (table, entry, entries) = (
        number::<8>(&header, 32),
        short(&header, 54),
        short(&header, 56),
    );
    if usize::from(entry) != ENTRY || entries == 0 || entries > MAX_ENTRIES {
        return Err(DAMAGED.into());
    }
    file.seek(SeekFrom::Start(table)).map_err(|_| DAMAGED)?;
    for _ in 0..entries {
        let mut entry = [0; ENTRY];
        fill(file, &mut entry, DAMAGED)?;
        if number::<4>(&entry, 0) == u64::from(INTERPRETER) {
            return Err("it needs shared libraries, which a sandbox may not have".into());
        }
    }
    Ok(arch)
}

/// Fills the buffer. Fails with `at_end` if the file is too short.
fn fill(file: &mut impl Read, buffer: &mut [u8], at_end: &str) -> Result<(), String> {
    file.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => at_end.into(),
        _ => error.to_string(),
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
