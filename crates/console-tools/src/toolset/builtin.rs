//! The table of this crate's tools, by name.

use permissions::tool::Tool;

use super::registered_tool::RegisteredTool;
use crate::commands;
use crate::files;
use crate::options::{EditFormat, Options, Profile};
use crate::search;
use crate::tool::Builtin;

/// Returns the tools that the options enable, in the order in which the model sees them.
pub(super) fn entries(options: &Options) -> Vec<RegisteredTool> {
    let all = table(options.profile).iter();
    let enabled = all.filter(|(tool, _)| is_enabled(*tool, options));
    enabled.map(|(_, make)| make()).collect()
}

fn table(profile: Profile) -> &'static [(Tool, Make)] {
    match profile {
        Profile::Coding | Profile::Lean => CONSOLE,
        Profile::Filesystem => FILESYSTEM,
    }
}

type Make = fn() -> RegisteredTool;

const fn tool<T: Builtin>() -> (Tool, Make) {
    (T::TOOL, RegisteredTool::builtin::<T>)
}

const CONSOLE: &[(Tool, Make)] = &[
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

const FILESYSTEM: &[(Tool, Make)] = &[
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
    let known = move |tool: &&Tool| known(profile, tool.name()).is_some();
    Tool::ALL.iter().filter(known).map(|tool| tool.name())
}

/// Returns how to make a tool that a profile knows, whether or not the options enable it.
pub(super) fn known(profile: Profile, name: &str) -> Option<Make> {
    let mut all = table(profile).iter();
    all.find_map(|(tool, make)| (tool.name() == name).then_some(*make))
}

pub(crate) fn is_enabled(tool: Tool, options: &Options) -> bool {
    let is_known = known(options.profile, tool.name()).is_some();
    if !is_known || options.profile == Profile::Filesystem {
        return is_known;
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
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_of_the_table_is_known() {
        for (tool, make) in CONSOLE.iter().chain(FILESYSTEM) {
            assert_eq!(make().name.parse(), Ok(*tool));
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
