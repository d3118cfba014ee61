//! The options that all commands have in common.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use toml::{Table, Value};

use crate::backend::kind::{ALLOWED_DIRECTORIES, Kind};
use crate::backend::spec;
use crate::files::from_here;

/// Options common to all commands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct CommonOptions {
    #[arg(long, global = true, value_name = "BACKEND", help = spec::help())]
    backend: Option<String>,
    /// The permission rules: default, permissive, readonly, strict, or a file with
    /// rules; without it everything inside the backend is allowed.
    #[arg(long, global = true, value_name = "PRESET|FILE")]
    permissions: Option<String>,
    /// The lowest level at which the sandbox must keep paths that the rules deny from
    /// commands; below it no command runs.
    #[arg(long, global = true, value_name = "LEVEL", value_parser = PossibleValuesParser::new(["words", "landlock", "view"]))]
    require_enforcement: Option<String>,
    /// Another directory that the file tools of local:DIR reach; paths are then
    /// those of this machine. Can be given more than once.
    #[arg(long = "allow-dir", global = true, value_name = "DIR")]
    pub(crate) allow_dirs: Vec<String>,
    /// The format of file edits.
    #[arg(long, global = true, value_name = "FORMAT", value_parser = PossibleValuesParser::new(["str_replace", "hashline"]))]
    edit_format: Option<String>,
    /// Which tools there are, and how much their descriptions say.
    #[arg(long, global = true, value_name = "PROFILE", value_parser = PossibleValuesParser::new(profiles()))]
    profile: Option<String>,
    /// The level logged to standard error: off, error, warn, info, debug, trace, or a
    /// filter such as warn,backend_local=debug.
    #[arg(long, global = true, value_name = "LEVEL|FILTER")]
    log: Option<String>,
    /// The config file.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Returns the profiles. pydantic-ai-backend calls `lean` `agent`.
fn profiles() -> [PossibleValue; 3] {
    let lean = PossibleValue::new("lean").alias("agent");
    ["coding".into(), lean, "filesystem".into()]
}

impl CommonOptions {
    /// Returns the flags as a layer of the configuration.
    pub(crate) fn layer(&self) -> Table {
        let flags = [
            ("backend", &self.backend),
            ("permissions", &self.permissions),
            ("require_enforcement", &self.require_enforcement),
            ("edit_format", &self.edit_format),
            ("profile", &self.profile),
            ("log", &self.log),
        ];
        let given = flags.into_iter().filter_map(|(key, value)| {
            let value = value.as_ref()?;
            Some((key.to_owned(), Value::from(value.as_str())))
        });
        let mut layer: Table = given.collect();
        if !self.allow_dirs.is_empty() {
            let paths = self.allow_dirs.iter().map(|path| from_here(path));
            let paths: Vec<String> = paths.collect();
            let local = Table::from_iter([(ALLOWED_DIRECTORIES.to_owned(), paths.into())]);
            layer.insert(Kind::Local.name().to_owned(), local.into());
        }
        layer
    }
}
