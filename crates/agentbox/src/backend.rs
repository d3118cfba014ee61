//! The backends that can be asked for, as `NAME` or `NAME:ARGUMENT`.
//!
//! One more is one more file and one more line in [`KINDS`].

mod local;
mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::{Backend, Quoted};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use toml::Table;

use crate::config::place;
use crate::exit::Failure;
use crate::output;

/// Every kind of backend.
pub(crate) const KINDS: &[Kind] = &[local::KIND, state::KIND];

/// Where files are if nobody says: a directory under the current one.
pub(crate) const WORKSPACE: &str = "agentbox-workspace";

/// A kind of backend.
#[derive(Debug)]
pub(crate) struct Kind {
    /// What stands before the colon, and the name of its table in the config file.
    pub(crate) name: &'static str,
    /// How it is asked for.
    pub(crate) usage: &'static str,
    /// What stands behind the colon.
    pub(crate) argument: Argument,
    /// The keys of its table.
    pub(crate) keys: &'static [&'static str],
    /// Opens it.
    pub(crate) open: Open,
}

/// What stands behind the colon of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    /// The directory of this machine that holds the files.
    Directory,
    /// A file of this machine.
    File,
}

type Open = for<'a> fn(&'a Wanted) -> BoxFuture<'a, Result<Arc<dyn Backend>, Failure>>;

/// A backend that somebody asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    kind: &'static Kind,
    /// What stands behind the colon; a path is absolute.
    pub(crate) argument: Option<String>,
    /// Whether nobody asked for it: it may be created.
    pub(crate) implied: bool,
    /// Whether nobody is told of that.
    pub(crate) quiet: bool,
    settings: Table,
}

impl Wanted {
    /// Reads `NAME[:ARGUMENT]`; `None` is the default.
    pub(crate) fn new(
        spec: Option<&str>,
        settings: impl Fn(&str) -> Option<Table>,
    ) -> Result<Self, Failure> {
        let implied = spec.is_none();
        let workspace = format!("local:{WORKSPACE}");
        let spec = spec.unwrap_or(&workspace);
        let here = std::env::current_dir().map_err(|error| {
            Failure::environment(format!("there is no current directory: {error}; go to one"))
        })?;
        let spec = absolute(spec, &here)?;
        let (kind, argument) = split(&spec);
        let kind = kind.ok_or_else(|| unknown(&spec))?;
        Ok(Self {
            kind,
            argument: argument.map(str::to_owned),
            implied,
            quiet: false,
            settings: settings(kind.name).unwrap_or_default(),
        })
    }

    /// How it can be asked for from anywhere.
    pub(crate) fn spec(&self) -> String {
        match &self.argument {
            Some(argument) => format!("{}:{argument}", self.kind.name),
            None => self.kind.name.to_owned(),
        }
    }

    /// The directory of this machine that holds the files, if there is one.
    pub(crate) fn host_root(&self) -> Option<PathBuf> {
        let directory = self.argument.as_deref().map(Path::new)?;
        match self.kind.argument {
            Argument::Directory => directory.canonicalize().ok(),
            Argument::File => None,
        }
    }

    /// The directory of this machine that holds the files, if there is one. That
    /// which is used by default is made, and that is told.
    pub(crate) fn directory(&self) -> Result<Option<&Path>, Failure> {
        if self.kind.argument != Argument::Directory {
            return Ok(None);
        }
        let directory = self.argument.as_deref().filter(|path| !path.is_empty());
        let directory = directory.map(Path::new).ok_or_else(|| {
            let (name, usage) = (self.kind.name, self.kind.usage);
            Failure::usage(format!(
                "{name} needs a directory; write {usage}, such as {name}:."
            ))
        })?;
        let shown = directory.display();
        match (directory.exists(), self.implied) {
            (true, _) => return Ok(Some(directory)),
            (false, false) => {
                return Err(Failure::environment(format!(
                    "there is no directory {shown}; create it with mkdir, or name another"
                )));
            }
            (false, true) => {}
        }
        std::fs::create_dir_all(directory).map_err(|error| {
            Failure::environment(format!(
                "{shown} cannot be created: {error}; name a directory with --backend local:DIR"
            ))
        })?;
        if !self.quiet {
            output::note(&format!(
                "agentbox: files are in {shown} (new); choose another place with --backend local:DIR"
            ));
        }
        Ok(Some(directory))
    }

    /// Opens it.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Backend>, Failure> {
        (self.kind.open)(self).await
    }

    /// What its table in the config file says.
    fn settings<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let settings = self.settings.clone().try_into();
        settings.map_err(|error: toml::de::Error| {
            let what: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
            Failure::usage(format!(
                "the settings of {} are wrong: {}; correct them in [{}] of the config file",
                self.kind.name,
                what.join(" ").trim(),
                self.kind.name
            ))
        })
    }
}

/// The same wish with an absolute path. What is no wish stays as it is.
pub(crate) fn absolute(spec: &str, directory: &Path) -> Result<String, Failure> {
    let (kind, path) = match split(spec) {
        (Some(kind), Some(path)) if !path.is_empty() => (kind, path),
        _ => return Ok(spec.to_owned()),
    };
    match kind.argument {
        Argument::Directory | Argument::File => {
            let path = place(path, directory);
            // Another name would be another place.
            let path = path.to_str().ok_or_else(|| {
                let shown = directory.display();
                Failure::usage(format!(
                    "{shown} is no UTF-8; give an absolute path that is"
                ))
            })?;
            Ok(format!("{}:{path}", kind.name))
        }
    }
}

/// What is said about `--backend`.
pub(crate) fn help() -> String {
    format!(
        "Where the files are: {}; without it the directory {WORKSPACE}, which is created",
        usages(" or ")
    )
}

/// How backends are asked for.
fn usages(between: &str) -> String {
    let all: Vec<&str> = KINDS.iter().map(|kind| kind.usage).collect();
    all.join(between)
}

fn split(spec: &str) -> (Option<&'static Kind>, Option<&str>) {
    let (name, argument) = match spec.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (spec, None),
    };
    (KINDS.iter().find(|kind| kind.name == name), argument)
}

fn unknown(spec: &str) -> Failure {
    let there_are = usages(" and ");
    let name = spec.split(':').next().unwrap_or(spec);
    let advice = match Path::new(spec).is_dir() {
        true => format!("; for the directory write local:{spec}"),
        false => "; use one of them".to_owned(),
    };
    let name = Quoted::new(name);
    Failure::usage(format!(
        "this version has no backend {name}, there are {there_are}{advice}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(spec: &str) -> Result<Wanted, Failure> {
        Wanted::new(Some(spec), |_| None)
    }

    #[test]
    fn wishes_are_read() {
        let state = wanted("state").unwrap();
        assert_eq!(state.spec(), "state");
        let local = wanted("local:/tmp/a:b").unwrap();
        assert_eq!(local.spec(), "local:/tmp/a:b");
        let relative = wanted("local:a").unwrap();
        assert!(Path::new(&relative.argument.unwrap()).is_absolute());
        let default = Wanted::new(None, |_| None).unwrap();
        assert!(default.implied && default.spec().ends_with(WORKSPACE));
    }

    #[test]
    fn what_there_is_not_is_an_error_that_says_what_there_is() {
        for spec in ["docker:python", "composite:a.toml", "", "Local:/"] {
            let error = wanted(spec).unwrap_err().to_string();
            assert!(error.contains("local:DIR and state[:FILE]"), "{error}");
        }
        let error = wanted("/").unwrap_err().to_string();
        assert!(error.contains("write local:/"), "{error}");
    }
}
