//! Blocking calls as a backend, made on the thread that awaits them.

use async_trait::async_trait;
use backend_core::ops::*;
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendInfo, Edit, Result, Sandbox, VPath};
use backend_sync::SyncBackend;

/// Every call blocks the thread that polls it, as in a careless program.
#[derive(Debug)]
pub(crate) struct Inline(pub(crate) SyncBackend);

macro_rules! inline {
    ($($method:ident($($arg:ident: $type:ty),+) -> $output:ty;)+) => {
        #[async_trait]
        impl Backend for Inline {
            fn info(&self) -> BackendInfo {
                // Its items cannot be waited for on the thread that awaits them.
                let mut info = self.0.info();
                info.capabilities.watch = false;
                info
            }

            fn working_dir(&self) -> VPath {
                self.0.working_dir()
            }

            fn as_sandbox(&self) -> Option<&dyn Sandbox> {
                None
            }

            $(async fn $method(&self, $($arg: $type),+) -> Result<$output> {
                self.0.$method($($arg),+)
            })+
        }
    };
}

inline! {
    resolve(path: &VPath, options: ResolveOptions) -> VPath;
    stat(path: &VPath, options: StatOptions) -> Entry;
    ls(path: &VPath, options: LsOptions) -> Listing;
    read(path: &VPath, options: ReadOptions) -> FileBytes;
    read_text(path: &VPath, options: TextOptions) -> TextWindow;
    write(path: &VPath, content: Content, options: WriteOptions) -> WriteOutcome;
    edit(path: &VPath, edits: &[Edit], options: EditOptions) -> EditOutcome;
    create_dir(path: &VPath, options: CreateDirOptions) -> ();
    delete(path: &VPath, options: DeleteOptions) -> ();
    rename(from: &VPath, to: &VPath, options: RenameOptions) -> ();
    copy(from: &VPath, to: &VPath, options: CopyOptions) -> ();
    glob(query: GlobQuery) -> GlobResult;
    grep(query: GrepQuery) -> GrepResult;
}
