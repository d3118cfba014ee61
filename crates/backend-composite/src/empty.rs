//! [`Empty`]: the backend for paths outside every route if there is no default.

use backend_core::ops::{
    Content, CreateDirOptions, DeleteOptions, Entry, FileBytes, Listing, LsOptions, ReadOptions,
    Skipped, StatOptions, WriteOptions, WriteOutcome,
};
use backend_core::{BackendInfo, Capabilities, Error, ErrorKind, Result, VPath, derived_backend};

use crate::failure::NAME;

/// An empty directory that stays empty.
#[derive(Debug)]
pub(crate) struct Empty;

fn closed() -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        "no route has this path; choose one beneath a directory that '/' lists",
    )
}

/// Only the root exists.
fn refuse_missing(path: &VPath) -> Result<()> {
    if path.is_root() {
        Ok(())
    } else {
        Err(Error::not_found())
    }
}

derived_backend! {
    impl Backend for Empty {
        fn info(&self) -> BackendInfo {
            BackendInfo::new(NAME, Capabilities::default())
        }

        async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
            refuse_missing(path).map(|()| Entry::directory(path.clone()))
        }

        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            refuse_missing(path).and_then(|()| options.listing(Vec::new(), Skipped::default()))
        }

        async fn read(&self, path: &VPath, _: ReadOptions) -> Result<FileBytes> {
            refuse_missing(path).and(Err(Error::is_a_directory()))
        }

        async fn write(&self, _: &VPath, _: Content, _: WriteOptions) -> Result<WriteOutcome> {
            Err(closed())
        }

        async fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
            if path.is_root() { Ok(()) } else { Err(closed()) }
        }

        async fn delete(&self, _: &VPath, _: DeleteOptions) -> Result<()> {
            Err(Error::not_found())
        }
    }
}
