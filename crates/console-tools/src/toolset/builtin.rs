//! The table of this crate's tools, by name.

use permissions::tool::Tool;

use super::registered_tool::RegisteredTool;
use crate::commands;
use crate::files;
use crate::options::{EditFormat, Options, Profile};
use crate::search;
use crate::tool::Builtin;

/// Returns the tools of this crate that the options enable, in the order in which the
/// model sees them.
pub(super) fn entries(options: &Options) -> Vec<RegisteredTool> {
    let is_wanted = |(name, _): &&(&str, Make)| {
        let tool = name.parse::<Tool>();
        tool.is_ok_and(|tool| is_enabled(tool, options))
    };
    let all = table(options.profile).iter();
    let made = all.filter(is_wanted).filter_map(|(_, make)| make());
    made.collect()
}

fn table(profile: Profile) -> &'static [(&'static str, Make)] {
    match profile {
        Profile::Coding | Profile::Lean => CONSOLE,
        Profile::Filesystem => FILESYSTEM,
    }
}

/// Creates an entry, or returns `None` if the name is not that of a tool.
type Make = fn() -> Option<RegisteredTool>;

const fn tool<T: Builtin>() -> (&'static str, Make) {
    (T::NAME, RegisteredTool::builtin::<T>)
}

const CONSOLE: &[(&str, Make)] = &[
    tool::<search::LsTool>(),
    tool::<files::read_file::Console>(),
    tool::<files::write_file::Console>(),
    tool::<files::edit_file::Console>(),
    tool::<files::hashline_edit::HashlineEditTool>(),
    tool::<search::GlobTool>(),
    tool::<search::GrepTool>(),
    tool::<files::delete_file::Console>(),
    tool::<files::move_file::Console>(),
    tool::<files::copy_file::Console>(),
    tool::<commands::ExecuteTool>(),
    tool::<commands::RunInBackgroundTool>(),
    tool::<commands::ReadOutputTool>(),
    tool::<commands::WriteInputTool>(),
    tool::<commands::KillShellTool>(),
    tool::<commands::ListShellsTool>(),
];

const FILESYSTEM: &[(&str, Make)] = &[
    tool::<files::read_file::Filesystem>(),
    tool::<files::write_file::Filesystem>(),
    tool::<files::list_files::ListFilesTool>(),
    tool::<files::edit_file::Filesystem>(),
    tool::<files::delete_file::Filesystem>(),
    tool::<files::move_file::Filesystem>(),
    tool::<files::copy_file::Filesystem>(),
];

/// Returns the names that a profile knows, whether or not the options enable them.
pub(super) fn names(profile: Profile) -> impl Iterator<Item = &'static str> {
    let known = move |tool: &&Tool| match profile {
        Profile::Coding | Profile::Lean => **tool != Tool::ListFiles,
        Profile::Filesystem => in_filesystem(**tool),
    };
    Tool::ALL.iter().filter(known).map(|tool| tool.name())
}

/// Returns a tool that a profile knows, whether or not the options enable it.
pub(super) fn known(profile: Profile, name: &str) -> Option<RegisteredTool> {
    let (_, make) = table(profile).iter().find(|(known, _)| *known == name)?;
    make()
}

const fn in_filesystem(tool: Tool) -> bool {
    matches!(
        tool,
        Tool::ReadFile
            | Tool::WriteFile
            | Tool::EditFile
            | Tool::DeleteFile
            | Tool::MoveFile
            | Tool::CopyFile
            | Tool::ListFiles
    )
}

/// Returns `true` if the options enable a tool.
pub(crate) fn is_enabled(tool: Tool, options: &Options) -> bool {
    if options.profile == Profile::Filesystem {
        return in_filesystem(tool);
    }
    match tool {
        Tool::EditFile => options.edit_format == EditFormat::StrReplace,
        Tool::HashlineEdit => options.edit_format == EditFormat::Hashline,
        Tool::Execute => options.include_execute,
        Tool::RunInBackground
        | Tool::ReadOutput
        | Tool::WriteInput
        | Tool::KillShell
        | Tool::ListShells => options.include_background,
        Tool::DeleteFile | Tool::MoveFile | Tool::CopyFile => options.include_file_operations,
        Tool::ListFiles => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_of_the_table_is_known() {
        for (name, make) in CONSOLE.iter().chain(FILESYSTEM) {
            assert!(make().is_some(), "{name} is not the name of a tool");
        }
    }

    #[test]
    fn a_name_is_offered_once() {
        for profile in [Profile::Coding, Profile::Lean, Profile::Filesystem] {
            let options = Options {
                profile,
                include_file_operations: true,
                ..Options::default()
            };
            let entries = entries(&options);
            let mut names: Vec<_> = entries.iter().map(|entry| &entry.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), entries.len(), "{profile:?}");
            let known: Vec<_> = super::names(profile).collect();
            assert!(names.iter().all(|name| known.contains(&&***name)));
        }
    }
}
