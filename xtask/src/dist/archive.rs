//! The release archive: the same files give the same bytes, independent of the time and
//! the user.

use std::collections::BTreeMap;
use std::io;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use crate::images::hex;

/// Lists every other file with its checksum, in the format of `sha256sum --check`.
const SUMS: &str = "SHA256SUMS";

/// A file of the archive. Its path is relative to the archive's top directory.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
    pub(crate) is_program: bool,
}

impl Member {
    pub(crate) fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
            is_program: false,
        }
    }

    pub(crate) fn program(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self {
            is_program: true,
            ..Self::file(path, content)
        }
    }
}

/// Packs the files below the directory `top`, all with the same `time`.
pub(crate) fn pack(
    top: &str,
    mut members: Vec<Member>,
    time: u64,
    level: Compression,
) -> io::Result<Vec<u8>> {
    members.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    members.push(Member::file(SUMS, sums(&members)));
    // Directories come before their entries.
    let mut entries = BTreeMap::new();
    for member in &members {
        let path = format!("{top}/{}", member.path);
        for (end, _) in path.match_indices('/') {
            entries.insert(path[..end].to_owned(), None);
        }
        entries.insert(path, Some(member));
    }
    // The gzip header contains neither a name nor a time.
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), level));
    for (path, member) in entries {
        let (mut header, content) = match member {
            Some(member) => (header(time, member.is_program), &member.content[..]),
            None => (header(time, true), &[][..]),
        };
        if member.is_none() {
            header.set_entry_type(EntryType::Directory);
        }
        header.set_size(u64::try_from(content.len()).unwrap_or(u64::MAX));
        tar.append_data(&mut header, path, content)?;
    }
    tar.into_inner()?.finish()
}

/// Returns the common header of all entries. Owner and group are root, by number only.
pub(super) fn header(time: u64, can_enter: bool) -> Header {
    let mut header = Header::new_gnu();
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(time);
    header.set_mode(if can_enter { 0o755 } else { 0o644 });
    header
}

fn sums(members: &[Member]) -> String {
    let lines = members
        .iter()
        .map(|member| sum(&member.content, &member.path));
    lines.collect()
}

/// Returns the line of `sha256sum` for a file.
pub(crate) fn sum(content: &[u8], name: &str) -> String {
    format!("{}  {name}\n", hex(&Sha256::digest(content)))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use tar::Archive;

    use super::*;

    fn members() -> Vec<Member> {
        vec![
            Member::file("man/man1/a.1", "page"),
            Member::program("agentbox", "abc"),
            Member::file("README.md", ""),
        ]
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let pack = |members, time| pack("a-1", members, time, Compression::best()).unwrap();
        let packed = pack(members(), 7);
        let reversed = members().into_iter().rev().collect();
        assert_eq!(packed, pack(reversed, 7));
        assert_ne!(packed, pack(members(), 8));
        // Magic, method, no name; no time; best compression, no system.
        assert_eq!(packed[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn entries_are_sorted_and_tell_nothing_of_the_user() {
        let packed = pack("a-1", members(), 7, Compression::fast()).unwrap();
        let mut archive = Archive::new(GzDecoder::new(&packed[..]));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 7);
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.username(), Ok(Some("")));
            let path = entry.path().unwrap().display().to_string();
            found.push((path, header.mode().unwrap(), content));
        }
        let found: Vec<_> = found
            .iter()
            .map(|(path, mode, content)| (path.as_str(), *mode, content.as_str()))
            .collect();
        let sums = "\
            e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  README.md\n\
            ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  agentbox\n\
            3660315a9af3df255d8f19ab077e4797822b41488a0e2a04bc6af71213c23274  man/man1/a.1\n";
        let expected = [
            ("a-1", 0o755, ""),
            ("a-1/README.md", 0o644, ""),
            ("a-1/SHA256SUMS", 0o644, sums),
            ("a-1/agentbox", 0o755, "abc"),
            ("a-1/man", 0o755, ""),
            ("a-1/man/man1", 0o755, ""),
            ("a-1/man/man1/a.1", 0o644, "page"),
        ];
        assert_eq!(found, expected);
    }
}
