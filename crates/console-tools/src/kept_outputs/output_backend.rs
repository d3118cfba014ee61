//! The kept outputs as a read-only backend.

use std::sync::Arc;

use backend_core::ops::{
    Content, CreateDirOptions, DeleteOptions, Entry, FileBytes, Listing, LsOptions, ReadOptions,
    Skipped, StatOptions, WriteOptions, WriteOutcome,
};
use backend_core::{
    BackendInfo, Capabilities, Error, ErrorKind, Operation, Result, VPath, derived_backend,
};

use super::store::OutputStore;

const NAME: &str = "outputs";

#[derive(Debug, Clone)]
pub(super) struct OutputBackend(pub(super) Arc<OutputStore>);

impl OutputBackend {
    fn entry(&self, path: &VPath) -> Result<Entry> {
        Ok(match self.0.find(path)? {
            None => Entry::directory(path.clone()),
            Some(text) => Entry::file(path.clone(), text.len() as u64),
        })
    }

    fn listing(&self, path: &VPath, options: &LsOptions) -> Result<Listing> {
        let entry = self.entry(path)?;
        let entries = if entry.is_dir() {
            self.0.list()
        } else {
            vec![entry]
        };
        options.listing(entries, Skipped::default())
    }

    fn bytes(&self, path: &VPath, options: &ReadOptions) -> Result<FileBytes> {
        let text = self.0.find(path)?.ok_or_else(Error::is_a_directory)?;
        options.slice(&text)
    }
}

/// Returns the error for any operation that would change a kept output.
pub(super) fn refuse<T>(operation: Operation, path: &VPath) -> Result<T> {
    let error = Error::new(
        ErrorKind::PermissionDenied,
        "kept outputs can only be read; write to a path elsewhere",
    );
    Err(error.at(operation, path).on(NAME))
}

derived_backend! {
    impl Backend for OutputBackend {
        fn info(&self) -> BackendInfo {
            BackendInfo::new(NAME, Capabilities::default())
        }

        async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
            self.entry(path).map_err(Error::context(NAME, Operation::Stat, path))
        }

        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            let listed = self.listing(path, &options);
            listed.map_err(Error::context(NAME, Operation::Ls, path))
        }

        async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
            let read = self.bytes(path, &options);
            read.map_err(Error::context(NAME, Operation::Read, path))
        }

        async fn write(&self, path: &VPath, _: Content, _: WriteOptions) -> Result<WriteOutcome> {
            refuse(Operation::Write, path)
        }

        async fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
            refuse(Operation::CreateDir, path)
        }

        async fn delete(&self, path: &VPath, _: DeleteOptions) -> Result<()> {
            refuse(Operation::Delete, path)
        }
    }
}
