//! Spellings of paths, and unusual names.

use backend_core::limits::{NAME_BYTES, PATH_BYTES, PATH_DEPTH, TEMPORARY_PREFIX};
use backend_core::{BackendExt as _, ErrorKind};

use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

/// Writes, lists, reads and deletes a file of this name.
async fn name_works(t: &Env, name: &str) -> CaseResult {
    let spelling = format!("./odd/{name}");
    t.put(&spelling, name).await?;
    check_eq!(t.names("odd").await?, [name])?;
    let listing = t.backend().list_dir(t.path("odd")?.as_str()).await?;
    let Some(entry) = listing.entries.first() else {
        return Err(crate::Failure::new("the listing is empty"));
    };
    let read = t.backend().read_bytes(entry.path.as_str()).await?;
    check_eq!(read, name.as_bytes())?;
    t.backend().delete_file(&spelling).await?;
    check!(t.names("odd").await?.is_empty(), "{name:?} is still there")
}

/// `""`, `.`, `./` and the absolute spelling are all the working directory.
pub async fn every_spelling_of_the_working_directory(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    let absolute = t.backend().working_dir();
    for spelling in ["", ".", "./", "./.", "sub/..", absolute.as_str()] {
        check_eq!(t.names(spelling).await?, ["file"])?;
    }
    Ok(())
}

/// A relative path starts at the working directory.
pub async fn relative_starts_at_the_working_directory(t: &Env) -> CaseResult {
    t.put("a/b.txt", "x").await?;
    let expected = t.backend().working_dir().join("a/b.txt")?;
    check_eq!(t.path("a/b.txt")?, expected)?;
    check_eq!(t.backend().read_bytes(expected.as_str()).await?, "x")
}

/// Doubled slashes, dots and a trailing slash name the same file.
pub async fn spellings_fold(t: &Env) -> CaseResult {
    t.put("a/b.txt", "x").await?;
    for spelling in ["a//b.txt", "./a/./b.txt", "a/c/../b.txt", "a/b.txt/"] {
        check_eq!(t.get(spelling).await?, b"x")?;
    }
    Ok(())
}

/// There is nothing above the root.
pub async fn climbing_above_the_root_is_invalid(t: &Env) -> CaseResult {
    let climb = "../".repeat(64);
    for spelling in [climb.clone(), format!("{climb}etc/passwd"), "/..".into()] {
        t.fails(
            ErrorKind::InvalidPath,
            t.backend().read_bytes(&spelling).await,
        )?;
    }
    Ok(())
}

/// NUL, home and drive spellings are refused, with a hint.
pub async fn hopeless_spellings_are_invalid(t: &Env) -> CaseResult {
    for spelling in ["a\0b", "~", "~/notes", "C:\\notes", "c:/notes"] {
        let write = t.backend().write_file(spelling, "x").await;
        t.fails(ErrorKind::InvalidPath, write)?;
    }
    check!(t.names(".").await?.is_empty())
}

/// Variables, percent signs and quotes in a path are literal.
pub async fn nothing_is_expanded(t: &Env) -> CaseResult {
    for name in ["$HOME", "%2e%2e", "`id`", "$(id)", "~backup", "a..b", "..."] {
        name_works(t, name).await?;
    }
    Ok(())
}

/// A name that begins with a dash is a name, not an option.
pub async fn leading_dashes(t: &Env) -> CaseResult {
    for name in ["-rf", "--help", "-delete", "--pre=sh", "-"] {
        name_works(t, name).await?;
    }
    Ok(())
}

/// Blanks and newlines in names are preserved.
pub async fn blanks_and_line_ends(t: &Env) -> CaseResult {
    for name in ["two  blanks", " led", "trailed ", "a\nb", "a\tb", "a\r"] {
        name_works(t, name).await?;
    }
    Ok(())
}

/// A blank in a directory's name does not split the path.
pub async fn blanks_in_directories(t: &Env) -> CaseResult {
    t.put("my work/sub dir/notes.md", "x").await?;
    check_eq!(t.names("my work").await?, ["sub dir/"])?;
    check_eq!(t.get("my work/sub dir/notes.md").await?, b"x")
}

/// Characters that are special in shells, globs and listings are literal in names.
pub async fn special_characters(t: &Env) -> CaseResult {
    for name in [
        "a:b", "a=b", "*", "?", "[x]", "{a,b}", "a\\b", "'", "\"", "a;b", "a|b", "a&b", "a -> b",
        "#a", "!a",
    ] {
        name_works(t, name).await?;
    }
    Ok(())
}

/// Names can be any UTF-8 and are compared byte by byte.
pub async fn unicode_names(t: &Env) -> CaseResult {
    for name in ["é", "e\u{301}", "日本語", "🦀", "\u{202e}gnp.exe"] {
        name_works(t, name).await?;
    }
    t.put("é", "composed").await?;
    t.put("e\u{301}", "decomposed").await?;
    check_eq!(t.get("é").await?, b"composed")
}

/// Upper and lower case differ.
pub async fn case_matters(t: &Env) -> CaseResult {
    t.put("readme", "lower").await?;
    t.put("README", "upper").await?;
    check_eq!(t.get("readme").await?, b"lower")?;
    check_eq!(t.names(".").await?, ["README", "readme"])
}

/// A directory and a sibling with the same prefix are not confused.
pub async fn siblings_that_begin_alike(t: &Env) -> CaseResult {
    t.put_all(&["ok/x", "ok-evil/y", "ok..", "okay"]).await?;
    check_eq!(t.names("ok").await?, ["x"])?;
    check_eq!(t.names("ok-evil").await?, ["y"])
}

/// The longest name works, and one byte more is rejected.
pub async fn longest_name(t: &Env) -> CaseResult {
    name_works(t, &"n".repeat(NAME_BYTES)).await?;
    let long = "n".repeat(NAME_BYTES + 1);
    let write = t.backend().write_file(&long, "x").await;
    t.fails(ErrorKind::InvalidPath, write)
}

/// A path over the length limit is rejected.
pub async fn too_long_a_path_is_invalid(t: &Env) -> CaseResult {
    let long = "directory/".repeat(PATH_BYTES / 10 + 1);
    let list = t.backend().list_dir(&long).await;
    t.fails(ErrorKind::InvalidPath, list)
}

/// A path over the depth limit is rejected.
pub async fn too_deep_a_path_is_invalid(t: &Env) -> CaseResult {
    let deep = "d/".repeat(PATH_DEPTH + 1);
    let write = t.backend().write_file(&deep, "x").await;
    t.fails(ErrorKind::InvalidPath, write)?;
    check!(t.names(".").await?.is_empty())
}

/// A deep path works.
pub async fn deep_path(t: &Env) -> CaseResult {
    let deep = "d/".repeat(200) + "file";
    t.put(&deep, "x").await?;
    check_eq!(t.get(&deep).await?, b"x")?;
    check_eq!(t.glob("file").await?, [deep])
}

/// The names of temporary files can neither be created nor read.
pub async fn temporary_names_are_reserved(t: &Env) -> CaseResult {
    let name = format!("{TEMPORARY_PREFIX}1");
    let write = t.backend().write_file(&name, "x").await;
    t.fails(ErrorKind::InvalidPath, write)?;
    check_eq!(t.backend().list_dir(".").await?.total, 0)
}
