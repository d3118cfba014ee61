//! [`delegate!`](crate::delegate!): methods of a wrapper that only pass the call on.
//!
//! The methods are written as `#[async_trait]` expands them: it has already run on the
//! rest of an impl block when the macros in it are expanded, so it cannot do this later.

/// Implements methods of [`Backend`](crate::Backend) and [`Sandbox`](crate::Sandbox) by
/// calling the same method of another value.
///
/// It stands in an impl block, beside the methods that do more than that. A method that is
/// neither named here nor written there is a compile error, as without the macro; for
/// methods that have a default, `#[deny(clippy::missing_trait_methods)]` makes it one.
///
/// ```
/// use std::sync::Arc;
/// use backend_core::{Backend, BackendInfo, delegate};
///
/// /// The same files under another name.
/// #[derive(Debug)]
/// struct Named {
///     name: &'static str,
///     files: Arc<dyn Backend>,
/// }
///
/// impl Backend for Named {
///     fn info(&self) -> BackendInfo {
///         let mut info = self.files.info();
///         info.name = self.name.into();
///         info
///     }
///
///     delegate! {
///         |self| self.files => working_dir, as_sandbox, resolve, stat, ls, read, read_text,
///         write, edit, create_dir, delete, rename, copy, glob, grep, watch
///     }
/// }
///
/// let files = Arc::new(backend_state::StateBackend::new());
/// assert_eq!(Named { name: "notes", files }.info().name, "notes");
/// ```
///
/// In async methods the expression may use `?` and `.await`. It can also depend on the path,
/// which is the source of a move or copy, and on the
/// [`Operation`](crate::Operation), as in `|self, path| self.at(path) => stat, ls` and
/// `|self, path, operation| self.check(path, operation)? => stat, ls`.
#[macro_export]
macro_rules! delegate {
    (|$self:ident| $to:expr => $($method:ident),+ $(,)?) => {
        $($crate::__delegate! { $method [$self] $to })+
    };
    (|$self:ident, $path:ident| $to:expr => $($method:ident),+ $(,)?) => {
        $($crate::__delegate! { $method [$self $path] $to })+
    };
    (|$self:ident, $path:ident, $operation:ident| $to:expr => $($method:ident),+ $(,)?) => {
        $($crate::__delegate! { $method [$self $path $operation] $to })+
    };
}

/// One method of [`delegate!`](crate::delegate!).
#[doc(hidden)]
#[macro_export]
macro_rules! __delegate {
    (info [$self:ident] $to:expr) => {
        fn info(&$self) -> $crate::BackendInfo {
            $to.info()
        }
    };
    (working_dir [$self:ident] $to:expr) => {
        fn working_dir(&$self) -> $crate::VPath {
            $to.working_dir()
        }
    };
    (as_sandbox [$self:ident] $to:expr) => {
        fn as_sandbox(&$self) -> ::core::option::Option<&dyn $crate::Sandbox> {
            $to.as_sandbox()
        }
    };
    (resolve $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Resolve, path, resolve<'b>(
            path: &'b $crate::VPath, options: $crate::ops::ResolveOptions
        ) -> $crate::VPath }
    };
    (stat $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Stat, path, stat<'b>(
            path: &'b $crate::VPath, options: $crate::ops::StatOptions
        ) -> $crate::ops::Entry }
    };
    (ls $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Ls, path, ls<'b>(
            path: &'b $crate::VPath, options: $crate::ops::LsOptions
        ) -> $crate::ops::Listing }
    };
    (read $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Read, path, read<'b>(
            path: &'b $crate::VPath, options: $crate::ops::ReadOptions
        ) -> $crate::ops::FileBytes }
    };
    (read_text $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, ReadText, path, read_text<'b>(
            path: &'b $crate::VPath, options: $crate::ops::TextOptions
        ) -> $crate::text::TextWindow }
    };
    (write $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Write, path, write<'b>(
            path: &'b $crate::VPath,
            content: $crate::ops::Content,
            options: $crate::ops::WriteOptions
        ) -> $crate::ops::WriteOutcome }
    };
    (edit $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Edit, path, edit<'b, 'c>(
            path: &'b $crate::VPath,
            edits: &'c [$crate::Edit],
            options: $crate::ops::EditOptions
        ) -> $crate::ops::EditOutcome }
    };
    (create_dir $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, CreateDir, path, create_dir<'b>(
            path: &'b $crate::VPath, options: $crate::ops::CreateDirOptions
        ) -> () }
    };
    (delete $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Delete, path, delete<'b>(
            path: &'b $crate::VPath, options: $crate::ops::DeleteOptions
        ) -> () }
    };
    (rename $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Rename, from, rename<'b, 'c>(
            from: &'b $crate::VPath,
            to: &'c $crate::VPath,
            options: $crate::ops::RenameOptions
        ) -> () }
    };
    (copy $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Copy, from, copy<'b, 'c>(
            from: &'b $crate::VPath,
            to: &'c $crate::VPath,
            options: $crate::ops::CopyOptions
        ) -> () }
    };
    (glob $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Glob, &query.path, glob<>(
            query: $crate::ops::GlobQuery
        ) -> $crate::ops::GlobResult }
    };
    (grep $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Grep, &query.path, grep<>(
            query: $crate::ops::GrepQuery
        ) -> $crate::ops::GrepResult }
    };

    (watch $with:tt $to:expr) => {
        $crate::__delegate! { @async $with $to, Watch, &query.path, watch<>(
            query: $crate::ops::WatchQuery
        ) -> $crate::WatchStream }
    };

    // Commands have no path, so these take neither a path nor an operation: the two
    // arguments after `$to` are not used.
    (id [$self:ident] $to:expr) => {
        fn id(&$self) -> ::std::string::String {
            $to.id()
        }
    };
    (last_activity [$self:ident] $to:expr) => {
        fn last_activity(&$self) -> ::std::time::SystemTime {
            $to.last_activity()
        }
    };
    (command_names [$self:ident] $to:expr) => {
        fn command_names(&$self, directory: &$crate::VPath) -> $crate::CommandPaths {
            $to.command_names(directory)
        }
    };
    (start [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Start, (), start<>() -> () }
    };
    (stop [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Stop, (), stop<>(
            mode: $crate::ops::StopMode
        ) -> () }
    };
    (is_alive [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Start, (), is_alive<>() -> bool }
    };
    (trace [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Execute, (), trace<'b, 'c>(
            directory: &'b $crate::VPath, paths: &'c [::std::string::String]
        ) -> ::std::vec::Vec<$crate::TracedPath> }
    };
    (execute [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Execute, (), execute<>(
            command: $crate::ops::Command
        ) -> $crate::ops::ExecuteOutcome }
    };
    (stream [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Stream, (), stream<>(
            command: $crate::ops::Command
        ) -> $crate::EventStream }
    };
    (shell_start [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Shell, (), shell_start<>(
            command: $crate::ops::Command
        ) -> $crate::ops::ShellInfo }
    };
    (shell_read [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Shell, (), shell_read<'b>(
            id: &'b $crate::ops::ShellId, wait: ::std::time::Duration
        ) -> $crate::ops::ShellOutput }
    };
    (shell_write [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Shell, (), shell_write<'b>(
            id: &'b $crate::ops::ShellId,
            input: ::core::option::Option<$crate::__private::Bytes>
        ) -> () }
    };
    (shell_kill [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Shell, (), shell_kill<'b>(
            id: &'b $crate::ops::ShellId
        ) -> bool }
    };
    (shell_attach [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Shell, (), shell_attach<'b>(
            id: &'b $crate::ops::ShellId
        ) -> $crate::Connection }
    };
    (shell_resize [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Shell, (), shell_resize<'b>(
            id: &'b $crate::ops::ShellId, size: $crate::ops::TerminalSize
        ) -> () }
    };
    (shell_signal [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Shell, (), shell_signal<'b>(
            id: &'b $crate::ops::ShellId, signal: $crate::ops::Signal
        ) -> () }
    };
    (shell_list [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Shell, (), shell_list<>(
        ) -> ::std::vec::Vec<$crate::ops::ShellInfo> }
    };
    (connect [$self:ident] $to:expr) => {
        $crate::__delegate! { @async [$self] $to, Connect, (), connect<>(
            port: u16
        ) -> $crate::Connection }
    };

    // The lifetimes are those of `#[async_trait]`: one for each reference, in order, and
    // last that of the call.
    (
        @async [$self:ident $($path:ident $($operation:ident)?)?] $to:expr,
        $variant:ident, $at:expr,
        $method:ident<$($life:lifetime),*>($($arg:ident: $type:ty),*) -> $output:ty
    ) => {
        fn $method<'a, $($life,)* 'call>(
            &'a $self,
            $($arg: $type),*
        ) -> $crate::__private::BoxFuture<'call, $crate::Result<$output>>
        where
            'a: 'call,
            $($life: 'call,)*
            Self: 'call,
        {
            ::std::boxed::Box::pin(async move {
                $(
                    let $path = $at;
                    $(let $operation = $crate::Operation::$variant;)?
                )?
                $to.$method($($arg),*).await
            })
        }
    };
}
