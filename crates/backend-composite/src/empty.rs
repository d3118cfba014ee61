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

derived_backend! {
    impl Backend for Empty {
        fn info(&self) -> BackendInfo {
            BackendInfo::new(NAME, Capabilities::default())
        }

        async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
            match path.is_root() {
                true => Ok(Entry::directory(path.clone())),
                false => Err(Error::not_found()),
            }
        }

        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            match path.is_root() {
                true => options.listing(Vec::new(), Skipped::default()),
                false => Err(Error::not_found()),
            }
        }

        async fn read(&self, path: &VPath, _: ReadOptions) -> Result<FileBytes> {
            match path.is_root() {
                true => Err(Error::is_a_directory()),
                false => Err(Error::not_found()),
            }
        }

        async fn write(&self, _: &VPath, _: Content, _: WriteOptions) -> Result<WriteOutcome> {
            Err(closed())
        }

        async fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
            match path.is_root() {
                true => Ok(()),
                false => Err(closed()),
            }
        }

        async fn delete(&self, _: &VPath, _: DeleteOptions) -> Result<()> {
            Err(Error::not_found())
        }
    }
}
