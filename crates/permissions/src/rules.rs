//! Ordered rules per operation: data, presets, loading, and the compiled engine.
//!
//! A [`Ruleset`] is plain data: loaded from TOML or JSON, built by a [`RulesetBuilder`],
//! or taken from a [`Preset`]. [`Ruleset::compile`] turns it into [`Rules`], which
//! decide.

mod builder;
pub(crate) mod command_pattern;
mod compiled;
mod data;
mod denials;
mod hidden;
pub(crate) mod level;
mod load;
mod pattern;
mod ports;
mod preset;
mod section;
mod table;

pub use builder::RulesetBuilder;
pub(crate) use compiled::LISTING;
pub use compiled::Rules;
pub use data::{CommandRule, CommandRules, PathRule, PathRules, Ruleset, TerminalRules};
pub use load::{LoadError, SaveError};
pub use pattern::{CommandPattern, PATTERN_BYTES, PathPattern, PatternError};
pub use ports::{PortRange, PortRangeError, PortRule, PortRules};
pub use preset::{AUTO_RUN, Preset, SECRETS, SYSTEM, UnknownPreset};
#[doc(hidden)]
pub use table::TablesOnly;
