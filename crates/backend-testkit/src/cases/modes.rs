//! Permission bits and modification times.

use std::time::{Duration, SystemTime};

use backend_core::BackendExt as _;
use backend_core::ops::{CopyOptions, RenameOptions, WriteMode, WriteOptions};

use super::create_dir::create_dir;
use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

async fn set(t: &Env, path: &str, mode: u32) -> CaseResult {
    t.fixture().set_mode(&t.path(path)?, mode).await
}

async fn mode(t: &Env, path: &str) -> Result<u32, Failure> {
    let mode = t.backend().metadata(path).await?.mode;
    mode.ok_or_else(|| Failure::new(format!("{path} has no permission bits")))
}

/// The permission bits are reported, without other mode bits.
pub async fn bits_are_told(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    set(t, "directory/file", 0o640).await?;
    set(t, "directory", 0o751).await?;
    check_eq!(mode(t, "directory/file").await?, 0o640)?;
    check_eq!(mode(t, "directory").await?, 0o751)?;
    let listing = t.backend().list_dir("directory").await?;
    check_eq!(listing.entries[0].mode, Some(0o640))
}

/// A new file is not executable, and its owner can read and write it.
pub async fn new_file_is_plain(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    let mode = mode(t, "file").await?;
    check_eq!(mode & 0o700, 0o600)?;
    check_eq!(mode & 0o111, 0)
}

/// Overwriting a file keeps its bits.
pub async fn write_keeps_bits(t: &Env) -> CaseResult {
    t.put("file", "old").await?;
    for bits in [0o755, 0o600, 0o444, 0o777] {
        set(t, "file", bits).await?;
        t.put("file", "new").await?;
        check_eq!(mode(t, "file").await?, bits)?;
        let hash = backend_core::ops::ContentHash::of(b"new");
        let options = WriteOptions::default().mode(WriteMode::IfUnchanged(hash));
        let path = t.path("file")?;
        t.backend().write(&path, "new".into(), options).await?;
        check_eq!(mode(t, "file").await?, bits)?;
    }
    Ok(())
}

/// Editing a file keeps its bits.
pub async fn edit_keeps_bits(t: &Env) -> CaseResult {
    t.put("script", "echo old\n").await?;
    set(t, "script", 0o750).await?;
    t.backend().replace_text("script", "old", "new").await?;
    check_eq!(mode(t, "script").await?, 0o750)?;
    check_eq!(t.get("script").await?, b"echo new\n")
}

/// Writing a file through a link keeps its bits.
pub async fn write_through_a_link_keeps_bits(t: &Env) -> CaseResult {
    t.put("real/file", "old").await?;
    t.link("link", "real/file").await?;
    set(t, "real/file", 0o750).await?;
    t.put("link", "new").await?;
    check_eq!(mode(t, "real/file").await?, 0o750)?;
    check_eq!(mode(t, "link").await?, 0o750)
}

/// A copy has the bits of the original, even if it replaces a file.
pub async fn copy_copies_bits(t: &Env) -> CaseResult {
    t.put_all(&["from", "over", "tree/inner/script"]).await?;
    set(t, "from", 0o750).await?;
    set(t, "over", 0o600).await?;
    set(t, "tree/inner/script", 0o711).await?;
    set(t, "tree/inner", 0o750).await?;
    t.backend().copy_to("from", "to").await?;
    check_eq!(mode(t, "to").await?, 0o750)?;
    let options = CopyOptions::default().overwrite(true).recursive(true);
    let (from, over) = (t.path("from")?, t.path("over")?);
    t.backend().copy(&from, &over, options).await?;
    check_eq!(mode(t, "over").await?, 0o750)?;
    let (from, to) = (t.path("tree")?, t.path("copied")?);
    t.backend().copy(&from, &to, options).await?;
    check_eq!(mode(t, "copied/inner/script").await?, 0o711)?;
    check_eq!(mode(t, "copied/inner").await?, 0o750)
}

/// Moving keeps the bits, even if it replaces a file.
pub async fn rename_keeps_bits(t: &Env) -> CaseResult {
    t.put_all(&["from", "over"]).await?;
    create_dir(t, "directory").await?;
    set(t, "from", 0o750).await?;
    set(t, "over", 0o600).await?;
    set(t, "directory", 0o700).await?;
    let options = RenameOptions::default().overwrite(true);
    let (from, over) = (t.path("from")?, t.path("over")?);
    t.backend().rename(&from, &over, options).await?;
    t.backend().move_to("directory", "moved").await?;
    check_eq!(mode(t, "over").await?, 0o750)?;
    check_eq!(mode(t, "moved").await?, 0o700)
}

/// A directory without write permission is copied with its contents and bits.
pub async fn copy_of_a_closed_directory(t: &Env) -> CaseResult {
    t.put("tree/inner/file", "x").await?;
    set(t, "tree/inner", 0o555).await?;
    let options = CopyOptions::default().recursive(true);
    let (from, to) = (t.path("tree")?, t.path("copy")?);
    let copied = t.backend().copy(&from, &to, options).await;
    let bits = mode(t, "copy/inner").await;
    // The cleanup needs write permission.
    set(t, "tree/inner", 0o755).await?;
    set(t, "copy/inner", 0o755).await?;
    copied?;
    check_eq!(bits?, 0o555)?;
    check_eq!(t.get("copy/inner/file").await?, b"x")
}

/// Writing and editing update the modification time.
pub async fn changes_advance_the_time(t: &Env) -> CaseResult {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let path = t.path("file")?;
    t.put("file", "one").await?;
    t.fixture().set_modified(&path, old).await?;
    check_eq!(t.backend().metadata("file").await?.modified, Some(old))?;
    t.put("file", "two").await?;
    check!(t.backend().metadata("file").await?.modified > Some(old))?;
    t.fixture().set_modified(&path, old).await?;
    t.backend().replace_text("file", "two", "three").await?;
    check!(t.backend().metadata("file").await?.modified > Some(old))
}

/// Moving a file keeps its modification time.
pub async fn rename_keeps_the_time(t: &Env) -> CaseResult {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    t.put("from", "x").await?;
    t.fixture().set_modified(&t.path("from")?, old).await?;
    t.backend().move_to("from", "deeper/to").await?;
    let moved = t.backend().metadata("deeper/to").await?;
    check_eq!(moved.modified, Some(old))
}

/// A script is still executable after an edit.
pub async fn edited_script_still_runs(t: &Env) -> CaseResult {
    t.put("script", "#!/bin/sh\necho old\n").await?;
    set(t, "script", 0o755).await?;
    t.backend().replace_text("script", "old", "new").await?;
    let outcome = t.run("./script").await?;
    check_eq!(outcome.stdout.text(), "new\n")
}
