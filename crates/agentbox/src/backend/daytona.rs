//! `daytona[:IMAGE]`: a hosted sandbox, created on demand and deleted when the program ends.

mod sandbox;
pub(crate) mod settings;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, ErrorKind};
use backend_daytona::{Account, DaytonaSandbox, Mode};
use sandbox_runtime::Runtime;
use sessions::{DaytonaEngine, DaytonaEngineBuilder};

use self::settings::DaytonaSettings;
use super::kind::Kind;
use super::open_backend::{OpenBackend, Outliving};
use super::runtimes::of_docker as runtimes;
use super::spec::BackendSpec;
use super::target::Target;
use crate::exit::{Failure, usage};

/// The space of the sessions of all servers in an organization.
const SPACE: &str = "agentbox";

/// The content of a sandbox, or the one that is used.
#[derive(Debug, PartialEq, Eq)]
enum Source<'a> {
    /// A snapshot; without a name the one that the account has by default.
    Snapshot(Option<&'a str>),
    Other(Target<'a>),
}

impl DaytonaSettings {
    fn source<'a>(&'a self, argument: Option<&'a str>) -> Result<Source<'a>, Failure> {
        let named = argument.and_then(|argument| argument.strip_prefix("snapshot="));
        if let Some(name) = named.filter(|name| !name.is_empty()) {
            return Ok(Source::Snapshot(Some(name)));
        }
        let (image, runtime) = (self.image.as_deref(), self.runtime.as_deref());
        match (argument, self.snapshot.as_deref(), image.or(runtime)) {
            (None, Some(_), Some(_)) => Err(Failure::usage(
                "[daytona] has a snapshot and an image or a runtime; remove one of them",
            )),
            (None, snapshot, None) => Ok(Source::Snapshot(snapshot)),
            _ => Target::choose(Kind::Daytona, argument, image, runtime).map(Source::Other),
        }
    }

    /// Returns the runtime of sessions, and the snapshot if they have none.
    fn session_source<'a>(
        &'a self,
        spec: &'a BackendSpec,
    ) -> Result<(Option<Runtime>, Option<&'a str>), Failure> {
        let runtime = match self.source(spec.argument.as_deref())? {
            Source::Snapshot(snapshot) => {
                self.check_session_keys()?;
                return Ok((None, snapshot));
            }
            Source::Other(Target::Runtime(name)) => runtimes(spec)?.get(name)?,
            Source::Other(Target::Image(image)) => Runtime::from_image("image", image),
            Source::Other(Target::Attach(_)) => {
                return Err(Failure::usage(
                    "daytona:attach=ID is one sandbox for all, and each session has its own; write \
                     daytona:IMAGE, daytona:snapshot=NAME or daytona:runtime=NAME",
                ));
            }
        };
        self.check_session_keys()?;
        let runtime = match &self.work_dir {
            Some(directory) => runtime.with_work_dir(directory),
            None => runtime,
        };
        Ok((Some(runtime), None))
    }

    fn check_session_keys(&self) -> Result<(), Failure> {
        let other = [
            ("auto_stop = 0", self.auto_stop == Some(0)),
            ("idle_timeout", self.idle_timeout.is_some()),
            ("keep", self.keep),
            ("name", self.name.is_some()),
        ];
        match other.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(()),
            Some((key, _)) => Err(usage!(
                "{key} in [daytona] is not for sandboxes of sessions, which have names and times of \
                 their own; remove it"
            )),
        }
    }

    /// Returns the options of the sessions in an organization.
    fn engine_builder(&self, account: Account) -> DaytonaEngineBuilder {
        let mut builder = DaytonaEngine::builder(account).space(SPACE);
        apply! { builder,
            auto_stop: self.auto_stop.map(Duration::from_secs),
            keep_stored_for: self.auto_delete.map(Duration::from_secs),
        }
        builder
    }
}

/// Refuses a directory of this machine for the files of sessions.
fn check_root(root: Option<&Path>) -> Result<(), Failure> {
    match root {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "hosted sandboxes do not reach directories of this machine, and keep the files of their \
             sessions themselves; leave out --workspaces",
        )),
    }
}

pub(super) fn check(spec: &BackendSpec) -> Result<(), Failure> {
    let daytona: DaytonaSettings = spec.settings()?;
    let source = daytona.source(spec.argument.as_deref())?;
    if let Source::Other(Target::Runtime(name)) = source {
        runtimes(spec)?.get(name)?;
    }
    sandbox::without_agents(&daytona).map(drop)
}

/// Checks everything that opening checks, except for the agents: all options, and whether there is
/// a sandbox to attach to. Nothing is created or started. Returns what was found.
pub(crate) async fn try_out(spec: &BackendSpec, account: Account) -> Result<&'static str, Failure> {
    let daytona: DaytonaSettings = spec.settings()?;
    // This mode needs no agent.
    let builder = sandbox::without_agents(&daytona)?
        .mode(Mode::Portable)
        .account(account);
    let builder = match daytona.source(spec.argument.as_deref())? {
        Source::Other(Target::Attach(id)) => {
            let mut attach = builder.attach(id).allow_foreign(true);
            apply! { attach, working_dir: &daytona.work_dir }
            attach.open().await?;
            return Ok("it exists");
        }
        Source::Other(Target::Image(image)) => builder.image(image),
        Source::Other(Target::Runtime(name)) => builder.runtime(runtimes(spec)?.get(name)?),
        Source::Snapshot(None) => builder,
        Source::Snapshot(Some(name)) => builder.snapshot(name),
    };
    builder.build()?;
    Ok("its settings are valid")
}

pub(super) async fn open(spec: &BackendSpec) -> Result<OpenBackend, Failure> {
    let daytona: DaytonaSettings = spec.settings()?;
    let builder = match daytona.source(spec.argument.as_deref())? {
        // This program did not create it, and leaves it running.
        Source::Other(Target::Attach(id)) => {
            let attach = sandbox::attach(&daytona, id)?.account(daytona.account()?);
            let sandbox = attach.open().await?;
            let open = OpenBackend::new(Arc::new(sandbox.clone()), None);
            return Ok(open.outliving(Attached(sandbox)));
        }
        Source::Other(Target::Image(image)) => sandbox::builder(&daytona)?.image(image),
        Source::Other(Target::Runtime(name)) => {
            let runtime = runtimes(spec)?.get(name)?;
            sandbox::builder(&daytona)?.runtime(runtime)
        }
        Source::Snapshot(None) => sandbox::builder(&daytona)?,
        Source::Snapshot(Some(name)) => sandbox::builder(&daytona)?.snapshot(name),
    };
    let stop = if daytona.keep || daytona.name.is_some() {
        StopMode::Keep
    } else {
        StopMode::Purge
    };
    // Last, so that mistakes in the settings are reported even without a key.
    let sandbox = builder.account(daytona.account()?).build()?;
    let created = Created {
        sandbox: sandbox.clone(),
        has_name: daytona.name.is_some(),
        keep: daytona.keep,
    };
    Ok(OpenBackend::new(Arc::new(sandbox), Some(stop)).outliving(created))
}

/// A sandbox that this program creates.
#[derive(Debug)]
struct Created {
    sandbox: DaytonaSandbox,
    /// Whether the user named it.
    has_name: bool,
    keep: bool,
}

/// A sandbox that this program attached to.
#[derive(Debug)]
struct Attached(DaytonaSandbox);

#[async_trait]
impl Outliving for Attached {
    fn left(&self, _: &Error) -> Option<String> {
        None
    }

    fn kept(&self) -> Option<String> {
        None
    }

    async fn leave(&self) -> backend_core::Result<()> {
        self.0.leave().await
    }
}

#[async_trait]
impl Outliving for Created {
    fn left(&self, error: &Error) -> Option<String> {
        // A service that refuses the account or is another one has created nothing.
        let is_refused = matches!(error.kind(), ErrorKind::Auth | ErrorKind::Config);
        if is_refused && self.sandbox.instance_id().is_none() {
            return None;
        }
        let name = self.sandbox.name();
        let next = if self.has_name {
            "look at the dashboard of Daytona"
        } else {
            "end it with agentbox sandboxes reap --backend daytona"
        };
        Some(format!("the sandbox {name} could not be stopped; {next}"))
    }

    fn kept(&self) -> Option<String> {
        let is_unknown = self.keep && !self.has_name && self.sandbox.instance_id().is_some();
        let name = self.sandbox.name();
        is_unknown.then(|| {
            format!(
                "the sandbox {name} is stopped and kept; use it with --backend daytona:attach={name}"
            )
        })
    }
}

/// Checks that a server can have sessions, without asking the service.
pub(super) fn check_sessions(spec: &BackendSpec, root: Option<&Path>) -> Result<(), Failure> {
    check_root(root)?;
    let daytona: DaytonaSettings = spec.settings()?;
    daytona.session_source(spec)?;
    sandbox::without_agents(&daytona).map(drop)
}

/// Returns the engine of the sessions that exist, which creates none.
pub(super) fn session_engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<DaytonaEngine, Failure> {
    check_root(root)?;
    let daytona: DaytonaSettings = spec.settings()?;
    Ok(daytona.engine_builder(daytona.account()?).build()?)
}

/// Returns the engine of a server's sessions.
pub(super) fn serving_engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<DaytonaEngine, Failure> {
    let daytona: DaytonaSettings = spec.settings()?;
    let (runtime, snapshot) = daytona.session_source(spec)?;
    let mut template = sandbox::builder(&daytona)?;
    check_root(root)?;
    apply! { template, snapshot: snapshot }
    let mut builder = daytona
        .engine_builder(daytona.account()?)
        .template(template);
    apply! { builder, runtime: runtime }
    Ok(builder.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::kind::Tables;

    fn settings(table: &str) -> DaytonaSettings {
        toml::from_str(table).unwrap()
    }

    fn spec(text: &str) -> BackendSpec {
        BackendSpec::new(Some(text), &Tables::new()).unwrap()
    }

    #[test]
    fn a_sandbox_is_made_of_what_is_named_last() {
        let image = |name| Source::Other(Target::Image(name));
        for (table, argument, expected) in [
            ("", None, Source::Snapshot(None)),
            ("snapshot = 'a'", None, Source::Snapshot(Some("a"))),
            ("image = 'a'", None, image("a")),
            ("snapshot = 'a'", Some("b:1"), image("b:1")),
            (
                "image = 'a'",
                Some("snapshot=b"),
                Source::Snapshot(Some("b")),
            ),
            (
                "snapshot = 'a'",
                Some("attach=b"),
                Source::Other(Target::Attach("b")),
            ),
        ] {
            let settings = settings(table);
            assert_eq!(settings.source(argument).unwrap(), expected, "{table}");
        }
        for (table, argument) in [
            ("snapshot = 'a'\nimage = 'b'", None),
            ("image = 'a'\nruntime = 'b'", None),
            ("", Some("snapshot=")),
            ("", Some("")),
        ] {
            let error = settings(table).source(argument).unwrap_err();
            assert!(error.is_usage(), "{error}");
        }
    }

    #[test]
    fn each_session_has_a_sandbox_of_its_own() {
        let image = spec("daytona:python:3.12");
        let (runtime, snapshot) = settings("work_dir = '/srv/x'")
            .session_source(&image)
            .map(|(runtime, snapshot)| (runtime.unwrap(), snapshot.map(str::to_owned)))
            .unwrap();
        assert_eq!(runtime.image.as_deref(), Some("python:3.12"));
        assert_eq!((runtime.work_dir.as_str(), snapshot), ("/srv/x", None));
        let empty = settings("");
        let plain = spec("daytona");
        let (runtime, snapshot) = empty.session_source(&plain).unwrap();
        assert!(runtime.is_none() && snapshot.is_none());
        let attach = spec("daytona:attach=box");
        assert!(empty.session_source(&attach).unwrap_err().is_usage());
        for table in [
            "idle_timeout = 1",
            "keep = true",
            "name = 'a'",
            "auto_stop = 0",
        ] {
            let error = settings(table).session_source(&plain).unwrap_err();
            assert!(error.is_usage(), "{table}");
        }
        assert!(check_root(Some(Path::new("files"))).unwrap_err().is_usage());
    }
}
