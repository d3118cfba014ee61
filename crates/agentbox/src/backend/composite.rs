//! `composite:FILE`: several backends as one tree.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::{Quoted, VPath};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;
use toml::Table;

use super::opened::HostDir;
use super::{Argument, BackendSpec, Kind, Opened};
use crate::config::read_text;
use crate::exit::Failure;

pub(super) const KIND: Kind = Kind {
    name: "composite",
    usage: "composite:FILE",
    argument: Argument::File,
    keys: &[],
    paths: &[],
    check,
    open,
};

/// The parsed file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CompositeFile {
    /// The backend for paths outside all routes.
    #[serde(default)]
    default: Option<Part>,
    #[serde(default)]
    working_dir: Option<String>,
    /// Backends by mount point.
    #[serde(default)]
    routes: BTreeMap<String, Part>,
}

/// A backend of the tree.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Part {
    Spec(String),
    Table(PartTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartTable {
    backend: String,
    /// The backend's directory that is shown; its working directory by default.
    #[serde(default)]
    directory: Option<String>,
    /// Whether the backend sees full paths, from the root of the tree.
    #[serde(default)]
    full_paths: bool,
    /// Settings for this backend, which override the table of its kind.
    #[serde(default)]
    settings: Table,
}

impl Part {
    fn table(self) -> PartTable {
        match self {
            Self::Table(table) => table,
            Self::Spec(backend) => PartTable {
                backend,
                directory: None,
                full_paths: false,
                settings: Table::new(),
            },
        }
    }
}

impl CompositeFile {
    fn read(file: &Path) -> Result<Self, Failure> {
        let shown = file.display();
        let text = read_text(file, "composite")?;
        let wrong = |what: &str| Failure::usage(format!("{shown}: {what}; correct it there"));
        let written: Self = toml::from_str(&text).map_err(|error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            Failure::usage(format!(
                "{shown}:{line}: {}; correct it there",
                error.message()
            ))
        })?;
        match written.default.is_none() && written.routes.is_empty() {
            true => Err(wrong(
                "it names no backend, write default = \"BACKEND\" and [routes]",
            )),
            false => Ok(written),
        }
    }
}

fn check(spec: &BackendSpec) -> Result<Vec<&'static str>, Failure> {
    let file = spec.file()?;
    let written = CompositeFile::read(file)?;
    let mut kinds = vec![KIND.name];
    for part in written
        .default
        .into_iter()
        .chain(written.routes.into_values())
    {
        let part = part.table();
        let part = spec.part(&part.backend, directory(file), &part.settings)?;
        kinds.extend(part.check()?);
    }
    Ok(kinds)
}

/// Returns the directory that relative paths in the file start from.
fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

fn open(spec: &BackendSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
    async move {
        let file = spec.file()?;
        let written = CompositeFile::read(file)?;
        let mut builder = Composite::builder();
        if let Some(working_dir) = &written.working_dir {
            builder = builder.working_dir(path(working_dir, file)?);
        }
        let default = written.default.map(|part| ("/".to_owned(), part));
        let (mut stop_actions, mut host_dirs, mut confined) = (Vec::new(), Vec::new(), Vec::new());
        for (prefix, part) in default.into_iter().chain(written.routes) {
            let prefix = path(&prefix, file)?;
            let mut opened = open_part(spec, file, &prefix, part).await?;
            stop_actions.push(opened.1.take_stop_actions());
            let from = opened.2;
            let (more, changed) = opened.1.parts(|one| moved(one, from.as_ref(), &prefix));
            host_dirs.extend(more);
            confined.extend_from_slice(changed);
            builder = builder.route(opened.0);
        }
        let composite = builder.build()?;
        let opened = Opened::made_of(Arc::new(composite), stop_actions);
        Ok(opened.with_host_dirs(host_dirs).confined(confined))
    }
    .boxed()
}

async fn open_part(
    spec: &BackendSpec,
    file: &Path,
    prefix: &VPath,
    part: Part,
) -> Result<(Route, Opened, Option<VPath>), Failure> {
    let part = part.table();
    let part_spec = spec.part(&part.backend, directory(file), &part.settings)?;
    let opened = part_spec.open().await?;
    let route = Route::new(prefix.clone(), opened.guarded());
    let (route, from) = match (part.directory, part.full_paths) {
        (None, true) => (route.full_paths(), None),
        (None, false) => (route.to_working_dir(), Some(opened.backend.working_dir())),
        (Some(directory), false) => {
            let directory = path(&directory, file)?;
            (route.to_directory(directory.clone()), Some(directory))
        }
        (Some(_), true) => {
            return Err(Failure::usage(format!(
                "{}: {} has a directory and full_paths; remove one of them",
                file.display(),
                Quoted::new(prefix.as_str())
            )));
        }
    };
    Ok((route, opened, from))
}

/// Translates a directory shown by one part into the paths of the whole tree. `from` is
/// the part's directory that is mounted at `prefix`; without it, paths stay the same.
fn moved(one: &HostDir, from: Option<&VPath>, prefix: &VPath) -> Option<HostDir> {
    let Some(from) = from else {
        return Some(one.clone());
    };
    let mut one = one.clone();
    if let Ok(at) = one.at.rebase(from, prefix) {
        one.at = at;
        return Some(one);
    }
    // Only a directory beneath it is shown.
    let beneath = from.strip_prefix(&one.at)?;
    one.host = one.host.join(beneath);
    one.at = prefix.clone();
    Some(one)
}

fn path(text: &str, file: &Path) -> Result<VPath, Failure> {
    let absolute = text.starts_with('/').then(|| VPath::parse(text));
    match absolute {
        Some(Ok(path)) => Ok(path),
        _ => Err(Failure::usage(format!(
            "{}: {} is not an absolute path; write one such as /docs",
            file.display(),
            Quoted::new(text)
        ))),
    }
}
