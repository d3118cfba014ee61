//! Searching directories with symbolic links. Links below the start are not followed.

use backend_core::ErrorKind;
use backend_core::ops::{GlobQuery, GrepQuery, Links};

use crate::check_eq;
use crate::env::Env;
use crate::failure::CaseResult;

/// A glob does not return links to files.
pub async fn glob_passes_over_file_links(t: &Env) -> CaseResult {
    t.put_all(&["a/file", "z"]).await?;
    t.link("link", "a/file").await?;
    t.link("a/up", "../z").await?;
    t.link("dangling", "gone").await?;
    check_eq!(t.glob("**").await?, ["a/file", "z"])?;
    check_eq!(t.glob("link").await?, [""; 0])
}

/// A glob does not enter linked directories, named or not.
pub async fn glob_enters_no_linked_directory(t: &Env) -> CaseResult {
    t.put_all(&["real/file", "real/inner/file"]).await?;
    t.link("link", "real").await?;
    t.link("real/inner/up", "../..").await?;
    check_eq!(t.glob("**/file").await?, ["real/file", "real/inner/file"])?;
    check_eq!(t.glob("link/*").await?, [""; 0])?;
    check_eq!(t.glob("*/file").await?, ["real/file"])
}

/// A grep does not follow links to files or directories, so nothing is found twice.
pub async fn grep_follows_no_link(t: &Env) -> CaseResult {
    t.put("real/file", "needle\n").await?;
    t.link("file-link", "real/file").await?;
    t.link("directory-link", "real").await?;
    t.link("real/up", "..").await?;
    t.link("real/circle", "circle").await?;
    check_eq!(t.grep("needle").await?, ["real/file:1:needle"])
}

/// A search may start at a link to a directory, and returns paths below the link.
pub async fn start_may_be_a_directory_link(t: &Env) -> CaseResult {
    t.put("real/inner/file", "needle\n").await?;
    t.link("link", "real").await?;
    let path = t.path("link")?;
    let found = t.backend().glob(GlobQuery::new("**", path.clone())).await?;
    check_eq!(t.found(&found), ["link/inner/file"])?;
    let found = t.backend().grep(GrepQuery::new("needle", path)).await?;
    check_eq!(t.hits(&found), ["link/inner/file:1:needle"])?;
    let path = t.path("link/inner")?;
    let found = t.backend().grep(GrepQuery::new("needle", path)).await?;
    check_eq!(t.hits(&found), ["link/inner/file:1:needle"])
}

/// A link to a file is searched by grep when it is named, and is not a directory for a
/// glob.
pub async fn start_may_be_a_file_link(t: &Env) -> CaseResult {
    t.put("real/.hidden", "needle\n").await?;
    t.link("link", "real/.hidden").await?;
    let path = t.path("link")?;
    let found = t
        .backend()
        .grep(GrepQuery::new("needle", path.clone()))
        .await?;
    check_eq!(t.hits(&found), ["link:1:needle"])?;
    let found = t.backend().glob(GlobQuery::new("**", path)).await;
    t.fails(ErrorKind::NotADirectory, found)
}

/// Links out of the backend are not searched.
pub async fn links_out_are_not_searched(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    t.put("file", "secret\n").await?;
    t.link("directory", &outside).await?;
    t.link("link", &format!("{outside}/secret")).await?;
    check_eq!(t.glob("**").await?, ["file"])?;
    check_eq!(t.grep("secret").await?, ["file:1:secret"])
}

/// An ignore file that is a link out of the backend is not read.
pub async fn ignore_file_that_leads_out_is_not_read(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    t.put_all(&["secret", "other"]).await?;
    for name in [".gitignore", ".ignore"] {
        t.link(name, &format!("{outside}/secret")).await?;
    }
    check_eq!(t.glob("**").await?, ["other", "secret"])?;
    check_eq!(t.grep("text").await?, ["other:1:text", "secret:1:text"])
}

/// Refusing links applies to the path of the start, not to entries below it.
pub async fn refusing_is_about_the_start(t: &Env) -> CaseResult {
    t.put("real/file", "needle\n").await?;
    t.link("real/link", "file").await?;
    t.link("link", "real").await?;
    let here = t.backend().working_dir();
    let query = GlobQuery::new("**", here.clone()).links(Links::Refuse);
    check_eq!(t.found(&t.backend().glob(query).await?), ["real/file"])?;
    let query = GrepQuery::new("needle", here).links(Links::Refuse);
    check_eq!(
        t.hits(&t.backend().grep(query).await?),
        ["real/file:1:needle"]
    )
}
