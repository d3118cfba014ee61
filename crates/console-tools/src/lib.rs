#![doc = include_str!("../README.md")]

#[cfg(test)]
#[macro_use]
mod test_run;

mod args;
mod arguments;
mod capability;
mod commands;
mod context;
mod conversation;
mod counted;
mod custom;
mod definition;
mod descriptions;
mod files;
mod host_names;
mod json_size;
mod kept_outputs;
mod media;
mod number_bounds;
mod options;
mod prompt;
mod reply;
mod resolver;
mod schema;
mod search;
pub mod terminal;
mod tool;
mod toolset;
mod tracker;

pub use arguments::Arguments;
pub use capability::{Capability, CapabilityError, Permissions};
pub use context::{Context, Observer};
pub use conversation::Conversation;
pub use custom::CustomTool;
pub use definition::Definitions;
pub use kept_outputs::{OUTPUTS, OutputOverlay};
pub use options::{EditFormat, Limits, Options, Profile};
pub use reply::{Block, FailureClass, Reply, ToolError, ToolResult};
pub use resolver::{Caller, Resolver};
pub use schema::schema_for;
pub use tool::{Annotations, Definition, ToolHandler};
pub use toolset::{BuildError, CallPreview, Chat, Toolset, ToolsetBuilder};
