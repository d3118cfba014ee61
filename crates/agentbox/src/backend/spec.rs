//! The specification of a backend: `NAME` or `NAME:ARGUMENT`.

use std::path::{Path, PathBuf};

use backend_core::Quoted;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::kind::{self, ALLOWED_DIRECTORIES, Kind, Tables};
use crate::exit::{Failure, environment, usage};
use crate::files::{resolve_parent_dirs, resolve_path};
use crate::output;

/// Maximum nesting of backends. Anything deeper is taken for a mistake.
const DEPTH: usize = 8;

/// The default directory for files, under the current directory.
pub(crate) const WORKSPACE: &str = "agentbox-workspace";

/// The time at which slow preparations are made, such as building an image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Prepare {
    /// Before the backend is opened.
    #[default]
    Wait,
    /// In the background; the first call waits for it.
    Background,
    /// When the backend needs it.
    No,
}

#[derive(Debug, Clone)]
pub(crate) struct BackendSpec {
    pub(crate) kind: Kind,
    /// The text after the colon. A path is absolute.
    pub(crate) argument: Option<String>,
    /// Whether the user named no backend. The default directory may be created then.
    pub(crate) implied: bool,
    /// Whether the directory is created without a message.
    pub(crate) quiet: bool,
    pub(crate) prepare: Prepare,
    /// Whether a single client uses it, which waits for each of its changes anyway.
    pub(crate) one_client: bool,
    /// Whether confined commands are kept from the paths that the rules deny.
    pub(crate) views: bool,
    /// Number of backends that it is nested in.
    depth: usize,
    tables: Tables,
}

impl BackendSpec {
    /// Parses `NAME[:ARGUMENT]`; `None` is the default.
    pub(crate) fn new(spec: Option<&str>, tables: &Tables) -> Result<Self, Failure> {
        let implied = spec.is_none();
        let workspace = format!("local:{WORKSPACE}");
        let spec = spec.unwrap_or(&workspace);
        let here = std::env::current_dir()
            .map_err(|error| environment!("there is no current directory: {error}; go to one"))?;
        let mut parsed = Self::from_spec(&absolute(spec, &here)?, tables.clone())?;
        parsed.implied = implied;
        Ok(parsed)
    }

    fn from_spec(spec: &str, tables: Tables) -> Result<Self, Failure> {
        let (kind, argument) = split(spec);
        let kind = kind.ok_or_else(|| unknown(spec))?;
        Ok(Self {
            kind,
            argument: argument.map(str::to_owned),
            implied: false,
            quiet: false,
            prepare: Prepare::default(),
            one_client: false,
            views: false,
            depth: 0,
            tables,
        })
    }

    /// Creates the specification of a part of this backend, named in a file in
    /// `directory`. `over` overrides the settings of its kind.
    pub(super) fn part(&self, spec: &str, directory: &Path, over: &Table) -> Result<Self, Failure> {
        let mut part = Self::from_spec(&absolute(spec, directory)?, self.tables.clone())?;
        part.depth = self.depth + 1;
        part.prepare = self.prepare;
        part.one_client = self.one_client;
        part.views = self.views;
        if part.depth > DEPTH {
            return Err(usage!(
                "{} is {DEPTH} backends deep in others; see that no file names itself",
                Quoted::new(spec)
            ));
        }
        let mut over = over.clone();
        rebase(&mut over, part.kind, directory);
        let table = part.tables.entry(part.kind).or_default();
        table.extend(over);
        Ok(part)
    }

    /// Returns the path named after the colon.
    fn path(&self) -> Option<&Path> {
        let path = self.argument.as_deref().filter(|path| !path.is_empty());
        path.map(Path::new)
    }

    pub(super) fn file(&self) -> Result<&Path, Failure> {
        let (name, usage) = (self.kind.name(), self.kind.usage());
        self.path()
            .ok_or_else(|| usage!("{name} needs a file; write {usage}"))
    }

    /// Returns the specification with absolute paths, valid in any directory.
    pub(crate) fn text(&self) -> String {
        match &self.argument {
            Some(argument) => format!("{}:{argument}", self.kind.name()),
            None => self.kind.name().to_owned(),
        }
    }

    /// Returns the directories that it reaches besides its own, if its kind has any.
    pub(crate) fn allowed_directories(&self) -> Vec<String> {
        let table = self.tables.get(&self.kind);
        let table = table.filter(|_| self.kind == Kind::Local);
        let allowed = table.and_then(|table| table.get(ALLOWED_DIRECTORIES)?.as_array());
        let paths = allowed.into_iter().flatten().filter_map(Value::as_str);
        paths.map(str::to_owned).collect()
    }

    /// Returns the directories that the tools know by their paths on this machine, its own
    /// first. There are none if it shows its own directory as `/`.
    pub(crate) fn shown_directories(&self) -> Vec<PathBuf> {
        let allowed = self.allowed_directories();
        let own = self.path().filter(|_| !allowed.is_empty());
        let all = own.into_iter().chain(allowed.iter().map(Path::new));
        // The default directory may not be there yet.
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        all.map(canonical).collect()
    }

    /// Returns `true` if it is of this kind, or may include a backend that is.
    pub(crate) fn may_include(&self, kind: Kind) -> bool {
        self.kind == kind || self.kind == Kind::Composite
    }

    /// Returns the file that defines its directories and the permissions in them.
    pub(crate) fn definition_file(&self) -> Option<&Path> {
        let is_described = matches!(self.kind, Kind::Composite | Kind::Mounts);
        self.path().filter(|_| is_described)
    }

    /// Returns the directory of this machine that holds the files, if there is one.
    pub(crate) fn host_root(&self) -> Option<PathBuf> {
        let directory = self.path().filter(|_| self.kind == Kind::Local);
        directory?.canonicalize().ok()
    }

    /// Returns the directory of `local:DIR`. Only the default directory may be missing.
    pub(super) fn given_directory(&self) -> Result<&Path, Failure> {
        let directory = self.path().ok_or_else(|| {
            let (name, usage) = (self.kind.name(), self.kind.usage());
            usage!("{name} needs a directory; write {usage}, such as {name}:.")
        })?;
        if !self.implied || directory.exists() {
            check_directory(directory)?;
        }
        Ok(directory)
    }

    /// Returns the directory of this machine that holds the files, if there is one.
    /// Creates the default directory, and reports that.
    pub(crate) fn directory(&self) -> Result<Option<&Path>, Failure> {
        if self.kind != Kind::Local {
            return Ok(None);
        }
        let directory = self.given_directory()?;
        if directory.exists() {
            return Ok(Some(directory));
        }
        let shown = directory.display();
        std::fs::create_dir_all(directory).map_err(|error| {
            environment!(
                "{shown} cannot be created: {error}; name a directory with --backend local:DIR"
            )
        })?;
        if !self.quiet {
            output::note(&format!(
                "agentbox: files are in {shown} (new); choose another directory with --backend local:DIR"
            ));
        }
        Ok(Some(directory))
    }

    pub(super) fn settings<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        self.kind.settings(&self.tables)
    }

    /// Returns the settings of another kind, some of which count for this one too.
    #[cfg(any(feature = "daytona", feature = "k8s"))]
    pub(super) fn settings_of<T: DeserializeOwned>(&self, kind: Kind) -> Result<T, Failure> {
        kind.settings(&self.tables)
    }

    /// Returns `true` if it is a part of another backend.
    pub(super) fn is_part(&self) -> bool {
        self.depth > 0
    }
}

/// Returns `true` if the text after the colon names an image or the like, and no path.
fn is_container(kind: Kind) -> bool {
    matches!(kind, Kind::Daytona | Kind::Docker | Kind::K8s)
}

/// Makes the path in a specification absolute. Other texts are returned unchanged.
pub(crate) fn absolute(spec: &str, directory: &Path) -> Result<String, Failure> {
    let (kind, path) = match split(spec) {
        (Some(kind), Some(path)) if !is_container(kind) && !path.is_empty() => (kind, path),
        _ => return Ok(spec.to_owned()),
    };
    let path = resolve_parent_dirs(&resolve_path(path, directory));
    // A lossy conversion would name a different path.
    let path = path.to_str().ok_or_else(|| {
        let shown = directory.display();
        usage!("{shown} is not valid UTF-8; give an absolute path that is")
    })?;
    Ok(format!("{}:{path}", kind.name()))
}

/// Makes relative paths in a kind's table absolute, starting at `directory`.
pub(crate) fn rebase(table: &mut Table, kind: Kind, directory: &Path) {
    for key in kind.path_keys() {
        if let Some(value) = table.get_mut(key) {
            rebase_value(value, directory);
        }
    }
}

/// Makes paths absolute, except the names of volumes, which have no slash.
pub(crate) fn rebase_value(value: &mut Value, directory: &Path) {
    match value {
        Value::String(path) => {
            let (source, rest) = path.split_at(path.find(':').unwrap_or(path.len()));
            let is_path =
                rest.is_empty() || source.contains('/') || matches!(source, "." | ".." | "~");
            if is_path && !source.is_empty() {
                let source = resolve_path(source, directory);
                *path = format!("{}{rest}", source.display());
            }
        }
        Value::Array(paths) => {
            let each = |path| rebase_value(path, directory);
            paths.iter_mut().for_each(each);
        }
        _ => {}
    }
}

pub(crate) fn help() -> String {
    let usages = kind::usages("or");
    if cfg!(local) {
        format!(
            "Where the files are: {usages}; without it the directory {WORKSPACE}, which is created"
        )
    } else {
        format!("Where the files are: {usages}; this build has no local and no mounts")
    }
}

fn split(spec: &str) -> (Option<Kind>, Option<&str>) {
    let mut parts = spec.splitn(2, ':');
    (parts.next().and_then(Kind::named), parts.next())
}

fn unknown(spec: &str) -> Failure {
    let there_are = kind::usages("and");
    let name = spec.split(':').next().unwrap_or(spec);
    let advice = if Path::new(spec).is_dir() {
        format!("; for the directory write local:{spec}")
    } else {
        "; use one of them".to_owned()
    };
    let name = Quoted::new(name);
    usage!("this version has no backend {name}, there are {there_are}{advice}")
}

/// Refuses a path that is not a directory.
pub(super) fn check_directory(directory: &Path) -> Result<(), Failure> {
    let shown = directory.display();
    if directory.is_dir() {
        Ok(())
    } else if directory.exists() {
        Err(environment!("{shown} is not a directory; name one"))
    } else {
        Err(environment!(
            "there is no directory {shown}; create it with mkdir, or name another"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(spec: &str) -> Result<BackendSpec, Failure> {
        BackendSpec::new(Some(spec), &Tables::new())
    }

    #[test]
    fn specifications_are_read() {
        let state = parse("state").unwrap();
        assert_eq!(state.text(), "state");
        let local = parse("local:/tmp/a:b").unwrap();
        assert_eq!(local.text(), "local:/tmp/a:b");
        let relative = parse("local:a").unwrap();
        assert!(Path::new(&relative.argument.unwrap()).is_absolute());
        let image = parse("docker:python:3.12").unwrap();
        assert_eq!(image.text(), "docker:python:3.12");
        let pod = parse("k8s:attach=box").unwrap();
        assert_eq!(pod.text(), "k8s:attach=box");
        let hosted = parse("daytona:snapshot=agents").unwrap();
        assert_eq!(hosted.text(), "daytona:snapshot=agents");
        let default = BackendSpec::new(None, &Tables::new()).unwrap();
        assert!(default.implied && default.text().ends_with(WORKSPACE));
    }

    #[test]
    fn paths_of_tables_start_where_the_file_is() {
        let mut table: Table = toml::from_str(
            r#"ca_bundle = "ca.pem"
               volumes = ["data:/data", "./src:/src:ro", "/abs:/abs"]
               image = "a/b""#,
        )
        .unwrap();
        rebase(&mut table, Kind::Docker, Path::new("/etc"));
        assert_eq!(table["ca_bundle"].as_str(), Some("/etc/ca.pem"));
        let volumes = table["volumes"].to_string();
        assert_eq!(
            volumes,
            r#"["data:/data", "/etc/src:/src:ro", "/abs:/abs"]"#
        );
        assert_eq!(table["image"].as_str(), Some("a/b"));
    }

    #[test]
    fn what_there_is_not_is_an_error_that_says_what_there_is() {
        for spec in ["podman:box", "", "Local:/"] {
            let error = parse(spec).unwrap_err().to_string();
            assert!(error.contains("local:DIR, state[:FILE], docker"), "{error}");
        }
        let error = parse("/").unwrap_err().to_string();
        assert!(error.contains("write local:/"), "{error}");
    }
}
