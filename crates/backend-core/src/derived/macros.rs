//! All derived operations in one macro.

/// Implements [`Backend`](crate::Backend) for a type that has only the basic operations.
///
/// The body holds `info`, `stat`, `ls`, `read`, `write`, `create_dir` and `delete`;
/// the rest comes from [`crate::derived`]. Use it for storage without symbolic
/// links and without commands, whose working directory is its root.
///
/// The guide to custom backends shows a complete one in fewer than a hundred lines.
#[macro_export]
macro_rules! derived_backend {
    (impl Backend for $type:ty { $($body:tt)* }) => {
        #[$crate::__private::async_trait]
        impl $crate::Backend for $type {
            $($body)*

            fn working_dir(&self) -> $crate::VPath {
                $crate::VPath::root()
            }

            fn as_sandbox(&self) -> Option<&dyn $crate::Sandbox> {
                None
            }

            async fn resolve(
                &self,
                path: &$crate::VPath,
                _: $crate::ops::ResolveOptions,
            ) -> $crate::Result<$crate::VPath> {
                $crate::derived::resolve_without_links(self, path).await
            }

            async fn read_text(
                &self,
                path: &$crate::VPath,
                options: $crate::ops::TextOptions,
            ) -> $crate::Result<$crate::text::TextWindow> {
                $crate::derived::text_by_read(self, path, options).await
            }

            async fn edit(
                &self,
                path: &$crate::VPath,
                edits: &[$crate::Edit],
                options: $crate::ops::EditOptions,
            ) -> $crate::Result<$crate::ops::EditOutcome> {
                $crate::derived::edit_by_write(self, path, edits, options).await
            }

            async fn rename(
                &self,
                from: &$crate::VPath,
                to: &$crate::VPath,
                options: $crate::ops::RenameOptions,
            ) -> $crate::Result<()> {
                $crate::derived::rename_by_copy(self, from, to, options).await
            }

            async fn copy(
                &self,
                from: &$crate::VPath,
                to: &$crate::VPath,
                options: $crate::ops::CopyOptions,
            ) -> $crate::Result<()> {
                $crate::derived::copy_by_read(self, from, to, options).await
            }

            async fn glob(
                &self,
                query: $crate::ops::GlobQuery,
            ) -> $crate::Result<$crate::ops::GlobResult> {
                $crate::derived::glob_by_walk(self, query).await
            }

            async fn grep(
                &self,
                query: $crate::ops::GrepQuery,
            ) -> $crate::Result<$crate::ops::GrepResult> {
                $crate::derived::grep_by_read(self, query).await
            }
        }
    };
}
