//! The self-test of views: one is made, and a confined thread tries to get past its masks.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;

use super::super::confine::Prepared;
use super::super::protocol::{Entry, Masked, With};
use super::super::threads::start;
use super::mounts::Mounts;
use super::{Place, namespace};
use crate::random::random;

/// Makes a view of files in the directory for temporary ones, and looks from inside.
pub(super) fn run(place: &Place) -> Result<(), String> {
    let failed = |error: io::Error| format!("the self-test of views cannot be prepared: {error}");
    let name = format!(".views-{:016x}", random());
    let directory = place.policy.temporary().join(name);
    fs::create_dir(&directory).map_err(failed)?;
    let tried = lay_out(&directory)
        .map_err(failed)
        .and_then(|()| look(place, &directory));
    let _ = fs::remove_dir_all(&directory);
    tried
}

fn lay_out(directory: &Path) -> io::Result<()> {
    fs::write(directory.join("secret"), "secret")?;
    fs::create_dir(directory.join("secrets"))?;
    fs::write(directory.join("secrets/file"), "secret")?;
    fs::create_dir(directory.join("fixed"))?;
    fs::write(directory.join("fixed/file"), "fixed")
}

/// Runs the keeper's part, and beside it the spawner's.
fn look(place: &Place, directory: &Path) -> Result<(), String> {
    let (masks, directory) = (place.masks.clone(), directory.to_owned());
    let policy = Arc::clone(&place.policy);
    let (tell, told) = channel();
    start("probe", move || {
        let _ = tell.send(keep(&masks, directory, policy));
    })?;
    told.recv()
        .unwrap_or_else(|_| Err("the self-test of views panicked".into()))
}

fn keep(masks: &Path, directory: PathBuf, policy: Arc<Prepared>) -> Result<(), String> {
    namespace::copy()?;
    let places = [
        ("", With::Itself),
        ("fixed", With::ReadOnly),
        ("secret", With::Nothing),
        ("secrets", With::Nothing),
    ];
    let place = |(name, with)| {
        let path = match name {
            "" => directory.clone(),
            name => directory.join(name),
        };
        let found = rustix::fs::statx(CWD, &path, AtFlags::empty(), StatxFlags::INO);
        found.map(|found| Masked {
            path: path.into_os_string().into_vec(),
            with,
            entry: Entry::new(&found),
        })
    };
    let places: Result<Vec<_>, _> = places.into_iter().map(place).collect();
    let places = places.map_err(|error| format!("the self-test of views is gone: {error}"))?;
    if let Some(problem) = Mounts::open(masks)?.apply(&places, true).problem {
        return Err(problem);
    }
    let (tell, told) = channel();
    start("probe", move || {
        let looked = policy.restrict().and_then(|()| try_all(&directory));
        let _ = tell.send(looked);
    })?;
    told.recv()
        .unwrap_or_else(|_| Err("the self-test of views panicked".into()))
}

/// Tries to get at what is denied, on a confined thread.
fn try_all(directory: &Path) -> Result<(), String> {
    let secret = directory.join("secret");
    let write = |name: &str| OpenOptions::new().write(true).open(directory.join(name));
    refused("read a denied file", File::open(&secret))?;
    refused("change a denied file", write("secret"))?;
    refused("remove a denied file", fs::remove_file(&secret))?;
    refused(
        "list a denied directory",
        fs::read_dir(directory.join("secrets")),
    )?;
    refused(
        "read in a denied directory",
        File::open(directory.join("secrets/file")),
    )?;
    refused("change a read-only file", write("fixed/file"))?;
    refused(
        "create a file in a read-only directory",
        File::create(directory.join("fixed/new")),
    )?;
    refused(
        "move the directory of a denied file",
        fs::rename(directory, directory.with_extension("2")),
    )?;
    refused(
        "take a mask away",
        rustix::mount::unmount(&secret, rustix::mount::UnmountFlags::DETACH)
            .map_err(io::Error::from),
    )?;
    match fs::read(directory.join("fixed/file")) {
        Ok(content) if content == b"fixed" => Ok(()),
        _ => Err("a read-only file could not be read in a view".into()),
    }
}

fn refused<T>(what: &str, tried: io::Result<T>) -> Result<(), String> {
    match tried.map_err(|error| Errno::from_io_error(&error)) {
        Ok(_) => Err(format!("a command in a view could {what}, so none is made")),
        Err(Some(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY | Errno::XDEV)) => Ok(()),
        Err(error) => Err(format!(
            "the self-test of views could not {what}, but not because it was refused: {error:?}"
        )),
    }
}
