//! Whether a regular file is there.

use backend_core::BackendExt as _;

use crate::case::CaseResult;
use crate::check_eq;
use crate::env::Env;

/// A regular file exists, an empty one too.
pub async fn file_exists(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    t.put("empty", "").await?;
    check_eq!(t.backend().exists("file").await?, true);
    check_eq!(t.backend().exists("empty").await?, true);
    Ok(())
}

/// A directory is not a file that exists.
pub async fn directory_does_not(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    check_eq!(t.backend().exists("directory").await?, false);
    check_eq!(t.backend().exists(".").await?, false);
    Ok(())
}

/// Neither does what is missing or lies beneath a file.
pub async fn missing_does_not(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    for path in ["missing", "missing/deeper", "file/beneath"] {
        check_eq!(t.backend().exists(path).await?, false);
    }
    Ok(())
}

/// A string that is no path is false, not an error.
pub async fn invalid_does_not(t: &Env) -> CaseResult {
    let climb = "../".repeat(64);
    let long = "n".repeat(300);
    for path in ["a\0b", "~/x", "C:\\x", &climb, &long] {
        check_eq!(t.backend().exists(path).await?, false);
    }
    Ok(())
}
