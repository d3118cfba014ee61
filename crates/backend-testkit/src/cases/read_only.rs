//! A read-only backend.

use std::sync::Arc;

use backend_core::ops::Links;
use backend_core::{Backend, BackendExt as _, ErrorKind, VPath};

use super::ops::{all_fail, arrivals, departures, makes, reads, searches, writes};
use crate::check_eq;
use crate::env::Env;
use crate::failure::{CaseResult, Failure};

fn read_only(t: &Env) -> Result<Arc<dyn Backend>, Failure> {
    let none = || Failure::new("the fixture says it has a read-only backend but has none");
    t.fixture().read_only().ok_or_else(none)
}

async fn refuses_all(backend: &dyn Backend, path: &VPath, other: &VPath) -> CaseResult {
    let denied = ErrorKind::PermissionDenied;
    all_fail(denied, &writes(backend, path, Links::Follow).await)?;
    all_fail(denied, &makes(backend, path, Links::Follow).await)?;
    all_fail(denied, &arrivals(backend, other, path, Links::Follow).await)?;
    all_fail(
        denied,
        &departures(backend, path, other, Links::Follow).await,
    )
}

/// Every change is denied, whatever the path is, and nothing changes.
pub async fn every_change_is_denied(t: &Env) -> CaseResult {
    t.put("directory/file", "kept").await?;
    t.put("file", "secret").await?;
    let backend = read_only(t)?;
    for path in ["file", "directory", "new", "directory/new/deeper"] {
        let (path, other) = (t.path(path)?, t.path("other")?);
        refuses_all(&backend, &path, &other).await?;
    }
    check_eq!(t.names("").await?, ["directory/", "file"])?;
    check_eq!(t.names("directory").await?, ["file"])?;
    check_eq!(t.get("file").await?, b"secret")?;
    check_eq!(t.get("directory/file").await?, b"kept")
}

/// Reading and searching work, and see changes made through other backends.
pub async fn reading_works(t: &Env) -> CaseResult {
    t.put("directory/file", "needle\n").await?;
    let backend = read_only(t)?;
    let file = t.path("directory/file")?;
    for (operation, answer) in reads(&backend, &file, Links::Follow).await {
        answer.map_err(|error| Failure::new(format!("{operation}: {error}")))?;
    }
    for (operation, answer) in searches(&backend, &t.path(".")?, Links::Follow).await {
        answer.map_err(|error| Failure::new(format!("{operation}: {error}")))?;
    }
    t.put("directory/file", "changed\n").await?;
    check_eq!(backend.read_to_string("directory/file").await?, "changed\n")?;
    let found = backend.search_text("changed").await?;
    check_eq!(t.hits(&found), ["directory/file:1:changed"])
}

/// A read-only backend reports that it is one.
pub async fn says_so(t: &Env) -> CaseResult {
    let backend = read_only(t)?;
    check_eq!(backend.info().capabilities.writable, false)?;
    check_eq!(t.backend().info().capabilities.writable, true)?;
    check_eq!(backend.working_dir(), t.backend().working_dir())
}
