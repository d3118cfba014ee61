//! Checks for existence, and for files and directories.

use backend_core::{BackendExt as _, Result};

use crate::check_eq;
use crate::env::Env;
use crate::failure::CaseResult;

/// Returns whether the path exists, is a file, is a directory.
async fn told(t: &Env, path: &str) -> Result<(bool, bool, bool)> {
    let backend = t.backend();
    Ok((
        backend.exists(path).await?,
        backend.is_file(path).await?,
        backend.is_dir(path).await?,
    ))
}

/// A regular file exists, even an empty one.
pub async fn file_exists(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    t.put("empty", "").await?;
    for path in ["file", "empty"] {
        check_eq!(told(t, path).await?, (true, true, false))?;
    }
    Ok(())
}

/// A directory exists, even an empty one, and is not a file.
pub async fn directory_exists(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    t.backend().create_dir_all("empty/inner").await?;
    for path in ["directory", "empty", "empty/inner", "."] {
        check_eq!(told(t, path).await?, (true, false, true))?;
    }
    Ok(())
}

/// A missing path, or one below a file, does not exist.
pub async fn missing_does_not(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    for path in ["missing", "missing/deeper", "file/beneath"] {
        check_eq!(told(t, path).await?, (false, false, false))?;
    }
    Ok(())
}

/// A string that is not a valid path gives false, not an error.
pub async fn invalid_does_not(t: &Env) -> CaseResult {
    let climb = "../".repeat(64);
    let long = "n".repeat(300);
    for path in ["a\0b", "~/x", "C:\\x", &climb, &long] {
        check_eq!(told(t, path).await?, (false, false, false))?;
    }
    Ok(())
}
