//! [`BuildError`]: the reason a toolset cannot be built.

use backend_core::Quoted;
use backend_mounts::MountError;

/// The reason a toolset cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A description was given for a tool that does not exist.
    #[error("a description is given for an unknown tool: {}; the tools are {}",
        .unknown.join(", "), .valid.join(", "))]
    #[non_exhaustive]
    UnknownDescription {
        /// The unknown names.
        unknown: Vec<String>,
        /// The known names.
        valid: Vec<String>,
    },
    /// A description was given for an argument that the tool does not have.
    #[error("a description is given for {}, which is not an argument of {tool}; its arguments are {}",
        Quoted::new(.argument), or_none(.valid))]
    #[non_exhaustive]
    UnknownArgument {
        /// The tool.
        tool: String,
        /// The unknown argument, with dots if it is nested.
        argument: String,
        /// The arguments of the tool.
        valid: Vec<String>,
    },
    /// Settings were given for a custom tool that does not exist.
    #[error("settings are given for an unknown custom tool: {}; the custom tools are {}",
        .unknown.join(", "), or_none(.valid))]
    #[non_exhaustive]
    UnknownSetting {
        /// The unknown names.
        unknown: Vec<String>,
        /// The custom tools.
        valid: Vec<String>,
    },
    /// The name of a custom tool is invalid.
    #[error(
        "{0} is not a valid tool name; use 1 to 64 of the letters a-z, A-Z, digits, '_' and '-'"
    )]
    InvalidName(Quoted),
    /// A custom tool has the name of another tool.
    #[error("another tool is called {0}; give one of them another name")]
    Taken(Quoted),
    /// A custom tool declares no operation.
    #[error("the tool {0} declares no operations, so no policy can judge it; declare what it does")]
    NoOperations(Quoted),
    /// The arguments of a custom tool are not an object.
    #[error("the arguments of the tool {0} must be an object; give its schema the type 'object'")]
    NoObject(Quoted),
    /// A policy was given together with parts of another one.
    #[error(
        "a policy is given together with rules, mounts or tool settings; put them into the policy"
    )]
    TwoPolicies,
    /// The mounts are inconsistent.
    #[error("invalid mounts: {0}")]
    Mounts(#[from] MountError),
}

fn or_none(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}
