//! Compressed agents that `cargo xtask dist` embeds; they are unpacked when needed.

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use sandbox_wire::agent::AgentBinary;

use super::storage::{check_parents, file_name, is_own, own_directory, write_program};
use crate::system;

/// The embedded agents by processor.
const AGENTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// Returns the agents that could be unpacked.
pub(super) fn agents() -> Vec<AgentBinary> {
    let unpacked = |(arch, packed): &(&str, &[u8])| {
        let Some(cache) = own_directory("XDG_CACHE_HOME", ".cache") else {
            tracing::warn!("no home to unpack the agent in; set HOME or XDG_CACHE_HOME");
            return None;
        };
        let agent = || {
            let path = unpack(arch, packed, &cache.join("agents"))?;
            anyhow::Ok(AgentBinary::new(path)?)
        };
        agent()
            .inspect_err(|error| {
                let cache = cache.display();
                tracing::warn!("the agent cannot be unpacked to {cache}: {error}; set XDG_CACHE_HOME to a directory of yours");
            })
            .ok()
    };
    AGENTS.iter().filter_map(unpacked).collect()
}

/// Unpacks an agent, unless it is unpacked already.
fn unpack(arch: &str, packed: &[u8], directory: &Path) -> io::Result<PathBuf> {
    let (checksum, length) = trailer(packed)?;
    // Two builds of the same version are different agents.
    let name = format!("{}-{checksum:08x}", file_name(arch));
    make_private(directory)?;
    let path = directory.join(&name);
    let is_whole =
        |found: Metadata| found.is_file() && is_own(&found) && found.len() == u64::from(length);
    if fs::symlink_metadata(&path).is_ok_and(is_whole) {
        return Ok(path);
    }
    // The decoder compares the checksum at the end.
    let mut content = GzDecoder::new(packed).take(u64::from(length) + 1);
    write_program(directory, &name, &mut content)
}

/// Creates a directory that other users can neither write to nor replace.
fn make_private(directory: &Path) -> io::Result<()> {
    system::make_directories(directory, 0o700)?;
    let found = fs::symlink_metadata(directory)?;
    if found.is_dir() && is_own(&found) {
        return check_parents(directory);
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "others can write there",
    ))
}

/// Returns the checksum and the length of the content, the last bytes of gzip.
fn trailer(packed: &[u8]) -> io::Result<(u32, u32)> {
    let end = packed.last_chunk::<8>();
    let [a, b, c, d, length @ ..] = *end.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn packed(content: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(content).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn an_agent_is_unpacked_once_and_again_if_it_was_damaged() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("new/agents");
        let packed = packed(b"a program");
        let path = unpack("amd64", &packed, &directory).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("sandbox-agent-amd64-"), "{name}");
        assert_eq!(fs::read(&path).unwrap(), b"a program");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o755);
        assert_eq!(directory.metadata().unwrap().mode() & 0o777, 0o700);
        let inode = path.metadata().unwrap().ino();
        assert_eq!(unpack("amd64", &packed, &directory).unwrap(), path);
        assert_eq!(path.metadata().unwrap().ino(), inode);
        fs::write(&path, "a prog").unwrap();
        assert_eq!(unpack("amd64", &packed, &directory).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"a program");
        // A symbolic link is not followed.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/bin/sh", &path).unwrap();
        unpack("amd64", &packed, &directory).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"a program");
    }

    #[test]
    fn another_build_is_another_file() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("agents");
        let one = unpack("amd64", &packed(b"one"), &directory).unwrap();
        let two = unpack("amd64", &packed(b"two"), &directory).unwrap();
        assert_ne!(one, two);
    }

    #[test]
    fn what_is_damaged_leaves_nothing() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("agents");
        let mut damaged = packed(&[7; 10_000]);
        // The first byte of the checksum.
        let middle = damaged.len() - 8;
        damaged[middle] ^= 1;
        assert!(unpack("amd64", &damaged, &directory).is_err());
        assert!(unpack("amd64", b"short", &directory).is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_of_everybody_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("agents");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let error = unpack("amd64", &packed(b"one"), &directory).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_directory_that_others_could_replace_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let shared = temporary.path().join("shared");
        let directory = shared.join("agentbox/agents");
        unpack("amd64", &packed(b"one"), &directory).unwrap();
        for (mode, refused) in [
            (0o777, true),
            (0o770, true),
            (0o1777, false),
            (0o755, false),
        ] {
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            let unpacked = unpack("amd64", &packed(b"one"), &directory);
            assert_eq!(unpacked.is_err(), refused, "{mode:o}");
            if let Err(error) = unpacked {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                assert!(error.to_string().contains("shared"), "{error}");
            }
        }
    }
}
