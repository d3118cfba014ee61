//! `composite:FILE`: several backends as one tree.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::{Quoted, VPath};
use serde::Deserialize;
use toml::Table;

use super::kind::Kind;
use super::open_backend::{HostDir, OpenBackend, StopActions};
use super::spec::BackendSpec;
use crate::exit::{Failure, usage};
use crate::files::read_toml;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CompositeFile {
    /// The backend for paths outside all routes.
    default: Option<Part>,
    working_dir: Option<String>,
    /// Backends by mount point.
    routes: BTreeMap<String, Part>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Part {
    Spec(String),
    Table(PartTable),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartTable {
    backend: String,
    /// The backend's directory that is shown; its working directory by default.
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
                ..PartTable::default()
            },
        }
    }
}

impl CompositeFile {
    fn read(file: &Path) -> Result<Self, Failure> {
        let written: Self = read_toml(file, "composite")?;
        if written.default.is_none() && written.routes.is_empty() {
            let file = file.display();
            return Err(usage!(
                "{file}: it names no backend, write default = \"BACKEND\" and [routes]; correct it there"
            ));
        }
        Ok(written)
    }

    /// Returns all parts by mount point.
    fn parts(self) -> impl Iterator<Item = (String, PartTable)> {
        let default = self.default.map(|part| ("/".to_owned(), part));
        let all = default.into_iter().chain(self.routes);
        all.map(|(prefix, part)| (prefix, part.table()))
    }
}

impl PartTable {
    /// Returns the specification of the part. Relative paths start where the file is.
    fn spec(&self, whole: &BackendSpec, file: &Path) -> Result<BackendSpec, Failure> {
        let directory = file.parent().unwrap_or(Path::new("/"));
        whole.part(&self.backend, directory, &self.settings)
    }
}

pub(super) fn check(spec: &BackendSpec) -> Result<Vec<Kind>, Failure> {
    let file = spec.file()?;
    let mut kinds = vec![spec.kind];
    for (_, part) in CompositeFile::read(file)?.parts() {
        kinds.extend(super::check(&part.spec(spec, file)?)?);
    }
    Ok(kinds)
}

pub(super) async fn open(spec: &BackendSpec) -> Result<OpenBackend, Failure> {
    let file = spec.file()?;
    let written = CompositeFile::read(file)?;
    let mut builder = Composite::builder();
    if let Some(working_dir) = &written.working_dir {
        builder = builder.working_dir(path(working_dir, file)?);
    }
    let mut stop_actions = StopActions::default();
    let (mut host_dirs, mut confined) = (Vec::new(), Vec::new());
    for (prefix, part) in written.parts() {
        let prefix = path(&prefix, file)?;
        let mut opened = super::open(&part.spec(spec, file)?).await?;
        let (route, from) = route(part, &opened, &prefix, file)?;
        stop_actions.extend(opened.take_stop_actions());
        let shown = opened.host_dirs.iter();
        host_dirs.extend(shown.filter_map(|one| translated(one, from.as_ref(), &prefix)));
        confined.append(&mut opened.confined);
        builder = builder.route(route);
    }
    // Each part has its own stop action.
    Ok(OpenBackend {
        host_dirs,
        confined,
        stop_actions,
        ..OpenBackend::new(Arc::new(builder.build()?), None)
    })
}

/// Returns the route to a part, and the directory it shows unless paths are full.
fn route(
    part: PartTable,
    opened: &OpenBackend,
    prefix: &VPath,
    file: &Path,
) -> Result<(Route, Option<VPath>), Failure> {
    let route = Route::new(prefix.clone(), opened.guarded());
    match (part.directory, part.full_paths) {
        (None, true) => Ok((route.full_paths(), None)),
        (None, false) => Ok((route.to_working_dir(), Some(opened.backend.working_dir()))),
        (Some(directory), false) => {
            let directory = path(&directory, file)?;
            Ok((route.to_directory(directory.clone()), Some(directory)))
        }
        (Some(_), true) => Err(usage!(
            "{}: {} has a directory and full_paths; remove one of them",
            file.display(),
            Quoted::new(prefix.as_str())
        )),
    }
}

/// Translates a directory shown by one part into the paths of the whole tree. `from` is
/// the part's directory that is mounted at `prefix`; without it, paths stay the same.
fn translated(one: &HostDir, from: Option<&VPath>, prefix: &VPath) -> Option<HostDir> {
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
    let path = VPath::parse(text).ok();
    path.filter(|_| text.starts_with('/')).ok_or_else(|| {
        let (file, text) = (file.display(), Quoted::new(text));
        usage!("{file}: {text} is not an absolute path; write one such as /docs")
    })
}
