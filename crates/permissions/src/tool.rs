//! The tools a model calls, and the operations they stand for.
//!
//! A tool without operations would never be judged. So the operations of every [`Tool`]
//! come from one match without a wildcard.
//! That none is empty is checked at compile time.

mod settings;

use std::str::FromStr;

use backend_core::Quoted;
use serde::{Deserialize, Serialize};

pub use settings::{ToolSetting, ToolSettings};

use crate::action::names;
use crate::{Action, Op, Policy};

macro_rules! tools {
    ($($variant:ident = $name:literal,)*) => {
        /// A tool that a model calls.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "each name is the tool it stands for")]
        pub enum Tool {
            $(#[serde(rename = $name)] $variant,)*
        }

        impl Tool {
            /// Every tool.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
        }

        names!(Tool::name { $($variant = $name,)* });
    };
}

tools! {
    Ls = "ls",
    ReadFile = "read_file",
    WriteFile = "write_file",
    EditFile = "edit_file",
    HashlineEdit = "hashline_edit",
    Glob = "glob",
    Grep = "grep",
    Execute = "execute",
    RunInBackground = "run_in_background",
    ReadOutput = "read_output",
    WriteInput = "write_input",
    KillShell = "kill_shell",
    ListShells = "list_shells",
    DeleteFile = "delete_file",
    MoveFile = "move_file",
    CopyFile = "copy_file",
    ListFiles = "list_files",
}

impl Tool {
    /// Returns the tool's operations. Never empty.
    pub const fn operations(self) -> &'static [Op] {
        match self {
            Self::Ls => &[Op::Ls],
            Self::ReadFile => &[Op::Read],
            Self::WriteFile => &[Op::Write],
            Self::EditFile | Self::HashlineEdit => &[Op::Read, Op::Edit],
            Self::Glob | Self::ListFiles => &[Op::Glob],
            Self::Grep => &[Op::Grep, Op::Read],
            Self::Execute
            | Self::RunInBackground
            | Self::ReadOutput
            | Self::WriteInput
            | Self::KillShell
            | Self::ListShells => &[Op::Execute],
            Self::DeleteFile => &[Op::Delete],
            Self::MoveFile => &[Op::Read, Op::Delete, Op::Write, Op::Move],
            Self::CopyFile => &[Op::Read, Op::Write, Op::Copy],
        }
    }

    /// Returns whether each call of the tool may need approval. Looking at running shells
    /// does not, because their start was judged.
    const fn may_need_approval(self) -> bool {
        !matches!(self, Self::ReadOutput | Self::ListShells | Self::KillShell)
    }
}

const _: () = {
    let mut index = 0;
    while index < Tool::ALL.len() {
        let operations = Tool::ALL[index].operations();
        assert!(!operations.is_empty(), "a tool must have an operation");
        index += 1;
    }
};

/// The error for a word that does not name a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a known tool; put the settings of a custom tool under 'custom'")]
pub struct UnknownTool(Quoted);

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(name: &str) -> Result<Self, UnknownTool> {
        Self::ALL
            .iter()
            .copied()
            .find(|tool| tool.name() == name)
            .ok_or_else(|| UnknownTool(Quoted::new(name)))
    }
}

/// The visibility of a tool to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// The tool is not offered, because every call of it would be denied.
    Hidden,
    /// The tool is offered.
    Offered {
        /// Whether every call needs approval.
        asks: bool,
    },
}

/// Returns whether `tool` is offered under `policy`. `commands` is `true` if the backend
/// runs commands.
pub fn visible(tool: Tool, policy: &Policy, commands: bool) -> Visibility {
    match visible_as(tool.name(), tool.operations(), policy, commands) {
        Visibility::Offered { .. } if !tool.may_need_approval() => {
            let setting = policy.tools().get(tool.name());
            let asks = setting.action == Some(Action::Ask) && !setting.pre_approved;
            Visibility::Offered { asks }
        }
        shown => shown,
    }
}

/// Like [`visible`], for any tool with this name and these operations. It is hidden if one
/// of them is always denied.
pub fn visible_as(name: &str, operations: &[Op], policy: &Policy, commands: bool) -> Visibility {
    if operations.contains(&Op::Execute) && !commands {
        return Visibility::Hidden;
    }
    let setting = policy.tools().get(name);
    let best = operations
        .iter()
        .map(|op| policy.most_lenient(*op))
        .chain(setting.action)
        .max()
        .unwrap_or(Action::Deny);
    match best {
        Action::Deny => Visibility::Hidden,
        action => Visibility::Offered {
            asks: action == Action::Ask && !setting.pre_approved,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for tool in Tool::ALL {
            assert_eq!(tool.name().parse(), Ok(*tool));
            assert_eq!(tool.to_string(), tool.name());
        }
        assert_eq!(Tool::ALL.len(), 17);
        let error = "rm".parse::<Tool>().unwrap_err();
        assert!(error.to_string().contains("'rm'"), "{error}");
    }

    #[test]
    fn without_commands_nothing_runs() {
        let policy = Policy::allow_all();
        for tool in Tool::ALL {
            let runs = tool.operations().contains(&Op::Execute);
            let hidden = visible(*tool, &policy, false) == Visibility::Hidden;
            assert_eq!(hidden, runs, "{tool}");
            assert_eq!(
                visible(*tool, &policy, true),
                Visibility::Offered { asks: false }
            );
        }
    }
}
