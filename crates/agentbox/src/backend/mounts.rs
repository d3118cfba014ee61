//! `mounts:FILE`: named directories of this machine, each with its own permissions.

use std::sync::Arc;

use backend_core::ops::StopMode;
use backend_mounts::Opener;

use super::open_backend::{HostDir, OpenBackend};
use super::spec::BackendSpec;
use crate::exit::Failure;

pub(super) fn check(spec: &BackendSpec) -> Result<(), Failure> {
    drop(Opener::from_file(spec.file()?)?);
    Ok(())
}

pub(super) fn open(spec: &BackendSpec) -> Result<OpenBackend, Failure> {
    let tree = Opener::from_file(spec.file()?)?.open()?;
    let config = tree.config();
    let host_dirs = config.mounts.iter().filter_map(|mount| {
        Some(HostDir {
            host: mount.host_path.canonicalize().ok()?,
            at: mount.mount_point.clone(),
            commands: false,
        })
    });
    let files = Arc::new(tree.unguarded().clone());
    let mut open = OpenBackend::new(files, Some(StopMode::Keep));
    open.host_dirs = host_dirs.collect();
    open.guarded = Some(Arc::new(tree.guard().build()));
    open.mounts = Some(config);
    Ok(open)
}
