//! The common start of every command: the configuration, the rules, a backend.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::{Enforcement, VPath};
use console_tools::{Resolver, Toolset, ToolsetBuilder};
use permissions::Policy;

use crate::backend;
use crate::backend::kind::Kind;
use crate::backend::open_backend::{OpenBackend, host_paths};
use crate::backend::spec::BackendSpec;
use crate::config::{Config, Level, default_config_path};
use crate::exit::{Failure, usage};
use crate::log;
use crate::options::CommonOptions;
use crate::rules::{Rules, Source};
use crate::token;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) rules: Option<Rules>,
    pub(crate) spec: BackendSpec,
    /// The file with the server's token, which the tools must not show.
    pub(crate) token_file: Option<PathBuf>,
}

impl App {
    /// Reads the configuration and starts the log.
    pub(crate) fn new(options: &CommonOptions) -> Result<Self, Failure> {
        let config = Config::load(options.layer(), options.config.clone(), std::env::vars_os())?;
        log::start(config.log.as_deref())?;
        let rules = config.permissions.as_ref().map(Rules::configured);
        let rules = rules.transpose()?;
        let mut spec = BackendSpec::new(config.backend.as_deref(), &config.backends)?;
        spec.views = config.require_enforcement == Some(Level::View)
            || rules.as_ref().is_some_and(Rules::keep_paths_from_commands);
        if !options.allow_dirs.is_empty() && spec.allowed_directories().is_empty() {
            return Err(Failure::usage(
                "--allow-dir is for --backend local:DIR; other backends have no such directories",
            ));
        }
        Ok(Self {
            config,
            rules,
            spec,
            token_file: None,
        })
    }

    pub(crate) async fn open(&self) -> Result<OpenBackend, Failure> {
        let opened = backend::open(&self.spec).await?;
        for file in self.policy_files() {
            if let Some(directory) = opened.confined_directory_of(&file) {
                let (file, directory) = (file.display(), directory.display());
                return Err(usage!(
                    "{file} says what commands may do, and confined commands can change \
                     everything in {directory}; put it elsewhere"
                ));
            }
        }
        match &self.token_file {
            Some(file) if !opened.paths_of(file).is_empty() => Err(token::readable(file)),
            _ => Ok(opened),
        }
    }

    /// Returns the files that define what the tools may do.
    fn policy_files(&self) -> Vec<PathBuf> {
        let rules = match self.rules.as_ref().map(|rules| &rules.source) {
            Some(Source::File(file, _)) => Some(file.clone()),
            Some(Source::Preset(_) | Source::Config) | None => None,
        };
        let config = self.config.file.clone().into_iter();
        // A config file created at the usual place would take effect at the next start.
        let all = config.chain(default_config_path()).chain(rules);
        all.chain(self.spec.definition_file().map(Path::to_path_buf))
            .collect()
    }

    /// Returns the paths of those files, as the tools know them.
    fn protected(&self, opened: &OpenBackend) -> Vec<VPath> {
        let files = self.policy_files().into_iter();
        files.flat_map(|file| opened.paths_of(&file)).collect()
    }

    /// Builds the tools for a backend. Without rules everything inside it is allowed,
    /// except changing the files that define the rules.
    pub(crate) fn toolset(&self, opened: &OpenBackend) -> ToolsetBuilder {
        let builder = self.configured(Toolset::builder(Arc::clone(&opened.backend)));
        let builder = builder.protect(self.protected(opened));
        match &opened.mounts {
            Some(mounts) => builder.mounts(mounts.clone()),
            None => builder,
        }
    }

    /// Builds the tools for the sessions of a server, whose directories hold none of the
    /// files that define the rules.
    pub(crate) fn session_toolset(&self, resolver: Arc<dyn Resolver>) -> ToolsetBuilder {
        self.configured(Toolset::resolving(resolver))
    }

    fn configured(&self, builder: ToolsetBuilder) -> ToolsetBuilder {
        let builder = builder
            .options(self.config.options.clone())
            .tool_settings(self.config.tools.clone())
            .require_enforcement(self.required_level());
        match &self.rules {
            Some(rules) => builder.ruleset(rules.ruleset.clone()),
            None => builder,
        }
    }

    /// Checks that the directory of all sessions holds nothing that commands in them must
    /// not change or read.
    pub(crate) fn check_workspaces(&self, directory: &Path) -> Result<(), Failure> {
        let inside = |file: &PathBuf| {
            let mut paths = host_paths(file).into_iter();
            paths.any(|path| path.starts_with(directory))
        };
        let mut files = self
            .policy_files()
            .into_iter()
            .chain(self.token_file.clone());
        match files.find(inside) {
            Some(file) => Err(usage!(
                "{} is among the files of sessions in {}; put it elsewhere",
                file.display(),
                directory.display()
            )),
            None => Ok(()),
        }
    }

    /// Returns advice on how to allow an operation that needs approval.
    pub(crate) fn approval_advice(&self, opened: &OpenBackend) -> &'static str {
        match (&opened.mounts, &self.rules) {
            (Some(_), None) => "set read_approval or write_approval = false for the mount",
            _ => "allow it in the rules",
        }
    }

    /// Returns `true` if a call may need approval, according to the configuration.
    pub(crate) fn can_ask(&self) -> bool {
        let options = &self.config.options;
        self.rules.as_ref().is_some_and(Rules::can_ask)
            || options.require_write_approval
            || options.require_execute_approval
            || self.spec.kind == Kind::Mounts
    }

    /// Returns the lowest level at which commands may run, besides that of the rules.
    fn required_level(&self) -> Enforcement {
        let level = self.config.require_enforcement;
        level.map_or_else(Enforcement::default, Enforcement::from)
    }

    /// Returns the policy for the tools of a backend.
    pub(crate) fn policy(&self, opened: &OpenBackend) -> Policy {
        let working_dir = opened.backend.working_dir();
        let policy = match &self.rules {
            Some(rules) => Policy::builder()
                .ruleset(&rules.ruleset, &working_dir)
                .build(),
            None => Policy::allow_all(),
        };
        let policy = policy.requiring(self.required_level());
        policy.protecting(self.protected(opened))
    }
}
