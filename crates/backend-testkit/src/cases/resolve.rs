//! Resolving the links in a path.

use backend_core::ErrorKind;
use backend_core::ops::{Links, ReadOptions, StatOptions};

use crate::check_eq;
use crate::env::Env;
use crate::failure::CaseResult;

/// A path without links resolves to itself.
pub async fn plain_path_is_itself(t: &Env) -> CaseResult {
    t.put("a/file", "x").await?;
    for path in ["a/file", "a", "."] {
        check_eq!(t.resolve(path).await?, t.path(path)?)?;
    }
    Ok(())
}

/// A missing end of the path is kept.
pub async fn missing_end_is_kept(t: &Env) -> CaseResult {
    t.put("a/file", "x").await?;
    let path = "a/missing/deeper";
    check_eq!(t.resolve(path).await?, t.path(path)?)
}

/// Resolving a path below a file is an error, even if it is missing.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    t.fails(ErrorKind::NotADirectory, t.resolve("file/beneath").await)
}

/// A link that stays inside resolves to its target, including a missing end.
pub async fn link_leads_to_its_target(t: &Env) -> CaseResult {
    t.put("real/file", "x").await?;
    t.link("link", "real").await?;
    for (path, leads_to) in [("link/file", "real/file"), ("link/new", "real/new")] {
        check_eq!(t.resolve(path).await?, t.path(leads_to)?)?;
    }
    Ok(())
}

/// Circular links are an error and do not hang.
pub async fn links_in_a_circle(t: &Env) -> CaseResult {
    t.link("a", "b").await?;
    t.link("b", "a").await?;
    t.fails(ErrorKind::InvalidPath, t.resolve("a").await)
}

/// A call that refuses links reports the link.
pub async fn refused_link_is_told(t: &Env) -> CaseResult {
    t.put("real/file", "x").await?;
    t.link("link", "real").await?;
    let path = t.path("link/file")?;
    let options = ReadOptions::default().links(Links::Refuse);
    t.fails(ErrorKind::IsALink, t.backend().read(&path, options).await)?;
    let options = StatOptions::default().links(Links::Refuse);
    t.fails(ErrorKind::IsALink, t.backend().stat(&path, options).await)?;
    check_eq!(t.get("link/file").await?, b"x")
}
