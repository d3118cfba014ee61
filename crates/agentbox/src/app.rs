//! What every command starts from: the configuration, the rules, a backend.

use std::sync::Arc;

use backend_core::VPath;
use console_tools::{Toolset, ToolsetBuilder};
use permissions::Policy;

use crate::backend::{Opened, Wanted};
use crate::cli::Global;
use crate::config::Config;
use crate::exit::Failure;
use crate::log;
use crate::rules::Rules;

/// The program, configured.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) rules: Option<Rules>,
    pub(crate) wanted: Wanted,
}

impl App {
    /// Reads what is configured, and starts the log.
    pub(crate) fn new(global: &Global) -> Result<Self, Failure> {
        let config = Config::load(global.layer(), global.config.clone(), std::env::vars_os())?;
        log::start(config.log.as_deref())?;
        let rules = config.permissions.as_ref().map(Rules::configured);
        let rules = rules.transpose()?;
        let spec = config.backend.as_deref();
        let wanted = Wanted::new(spec, &config.backends)?;
        if global.allows_directories() && wanted.allowed_directories().is_empty() {
            return Err(Failure::usage(
                "--allow-dir is for --backend local:DIR; other backends have no such directories",
            ));
        }
        Ok(Self {
            config,
            rules,
            wanted,
        })
    }

    /// Opens the backend.
    pub(crate) async fn open(&self) -> Result<Opened, Failure> {
        self.wanted.open().await
    }

    /// The tools on a backend. Without rules everything inside it is allowed.
    pub(crate) fn toolset(&self, opened: &Opened) -> ToolsetBuilder {
        let mut builder = Toolset::builder(Arc::clone(&opened.backend))
            .options(self.config.options.clone())
            .tool_settings(self.config.tools.clone());
        if let Some(mounts) = &opened.mounts {
            builder = builder.mounts(mounts.clone());
        }
        match &self.rules {
            Some(rules) => builder.ruleset(rules.ruleset.clone()),
            None => builder,
        }
    }

    /// What is allowed in a working directory.
    pub(crate) fn policy(&self, working_dir: &VPath) -> Policy {
        match &self.rules {
            Some(rules) => Policy::builder()
                .ruleset(&rules.ruleset, working_dir)
                .build(),
            None => Policy::allow_all(),
        }
    }
}
