//! Tar archives that are uploaded into containers.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use backend_core::{Error, Result};
use bytes::Bytes;
use tar::{Builder, EntryType, Header};

use crate::spec::OwnedDir;

/// The mode of a program that every user can run.
pub(crate) const PROGRAM: u32 = 0o755;
/// The mode of a file that only its owner can read.
pub(crate) const PRIVATE: u32 = 0o600;

/// An archive to be unpacked at `/`.
pub(crate) struct Archive(Builder<Vec<u8>>);

impl Archive {
    pub(crate) fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    /// Adds a directory with the given owner. An existing one gets this owner and these
    /// mode bits.
    pub(crate) fn directory(&mut self, directory: &OwnedDir, (uid, gid): (u32, u32)) -> Result<()> {
        let mut header = header(EntryType::Directory, directory.mode, (uid, gid));
        let path = format!("{}/", directory.path.trim_start_matches('/'));
        let added = self.0.append_data(&mut header, path, io::empty());
        added.map_err(pack_error)
    }

    /// Adds a file that is owned by root.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        let mut header = header(EntryType::Regular, mode, (0, 0));
        header.set_size(content.len() as u64);
        let path = Path::new(path.trim_start_matches('/'));
        let added = self.0.append_data(&mut header, path, content);
        added.map_err(pack_error)
    }

    pub(crate) fn finish(self) -> Result<Bytes> {
        self.0.into_inner().map(Bytes::from).map_err(pack_error)
    }
}

fn header(kind: EntryType, mode: u32, (uid, gid): (u32, u32)) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(uid.into());
    header.set_gid(gid.into());
    header.set_size(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    header.set_mtime(now.map(|since| since.as_secs()).unwrap_or_default());
    header
}

fn pack_error(error: io::Error) -> Error {
    Error::internal("an archive could not be packed").with_source(error)
}

/// Looks up a user's uid and gid in the text of `/etc/passwd`. `name` may be
/// `user:group`, with the group given by its number.
pub(crate) fn ids_in_passwd(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let (user, group) = match name.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (name, None),
    };
    let mut lines = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let number: Option<u32> = user.parse().ok();
    let found = lines.find_map(|line| match line.as_slice() {
        [known, _, uid, gid, ..]
            if *known == user || number == uid.parse().ok() && number.is_some() =>
        {
            Some((uid.parse().ok()?, gid.parse().ok()?))
        }
        _ => None,
    });
    let (uid, gid) = found.or_else(|| Some((number?, number?)))?;
    Some((
        uid,
        group.and_then(|group| group.parse().ok()).unwrap_or(gid),
    ))
}

/// Returns the content of the only file in an archive, if it is small.
pub(crate) fn only_file(archive: &[u8]) -> Option<String> {
    let mut archive = tar::Archive::new(archive);
    let mut entry = archive.entries().ok()?.next()?.ok()?;
    let mut text = String::new();
    io::Read::read_to_string(&mut entry, &mut text).ok()?;
    Some(text)
}

/// Returns the regular files of an archive by the last part of their paths.
pub(crate) fn files(archive: &[u8]) -> io::Result<BTreeMap<String, Bytes>> {
    let mut found = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type() != EntryType::Regular {
            continue;
        }
        let path = entry.path()?.into_owned();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let mut content = Vec::new();
        io::Read::read_to_end(&mut entry, &mut content)?;
        found.insert(name.to_owned(), Bytes::from(content));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_directory_are_named_without_it() {
        let mut archive = Archive::new();
        let directory = OwnedDir {
            path: "/notes".into(),
            mode: 0o755,
        };
        archive.directory(&directory, (0, 0)).unwrap();
        archive.file("/notes/a", PRIVATE, b"1").unwrap();
        archive.file("/notes/b", PRIVATE, b"").unwrap();
        let found = files(&archive.finish().unwrap()).unwrap();
        let expected = [("a", &b"1"[..]), ("b", &b""[..])];
        let expected = expected.map(|(name, content)| (name.to_owned(), Bytes::from(content)));
        assert_eq!(found, BTreeMap::from(expected));
        assert!(files(b"").unwrap().is_empty());
    }

    #[test]
    fn archives_name_owners_and_bits() {
        let mut archive = Archive::new();
        let work = OwnedDir {
            path: "/workspace".into(),
            mode: 0o755,
        };
        archive.directory(&work, (1000, 1001)).unwrap();
        archive.file("/.agentbox/x", PROGRAM, b"abc").unwrap();
        let bytes = archive.finish().unwrap();
        let mut read = tar::Archive::new(&bytes[..]);
        let mut seen = Vec::new();
        for entry in read.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            seen.push((
                entry.path().unwrap().to_str().unwrap().to_owned(),
                header.uid().unwrap(),
                header.gid().unwrap(),
                header.mode().unwrap(),
                header.size().unwrap(),
            ));
        }
        let expected = [
            ("workspace/".to_owned(), 1000, 1001, 0o755, 0),
            (".agentbox/x".to_owned(), 0, 0, 0o755, 3),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn users_are_found_by_name_and_by_number() {
        let passwd = "root:x:0:0::/root:/bin/sh\nbroken\nnode:x:1000:1002::/home/node:/bin/sh\n";
        assert_eq!(ids_in_passwd(passwd, "node"), Some((1000, 1002)));
        assert_eq!(ids_in_passwd(passwd, "node:7"), Some((1000, 7)));
        assert_eq!(ids_in_passwd(passwd, "1000"), Some((1000, 1002)));
        assert_eq!(ids_in_passwd(passwd, "55"), Some((55, 55)));
        assert_eq!(ids_in_passwd(passwd, "nobody"), None);
        assert_eq!(ids_in_passwd("x:x:y:z", "x"), None);
    }

    #[test]
    fn the_only_file_of_garbage_is_none() {
        assert_eq!(only_file(b"garbage"), None);
        let mut archive = Archive::new();
        archive.file("/etc/passwd", PROGRAM, b"a:b").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(only_file(&bytes).as_deref(), Some("a:b"));
    }
}
