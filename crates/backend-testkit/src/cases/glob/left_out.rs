//! Files that a search leaves out: hidden, ignored, generated and excluded ones.

use backend_core::ops::{GlobQuery, GlobResult};

use super::{NONE, found, hide, search};
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

/// Names that begin with a dot are left out.
pub async fn hidden_left_out(t: &Env) -> CaseResult {
    t.put_all(&[".a/b", ".env", "a", "b/.c", "b/.d/e"]).await?;
    for pattern in ["**", "*", "**/*", "{a,*}"] {
        check_eq!(t.glob(pattern).await?, ["a"])?;
    }
    check_eq!(t.glob("?env").await?, NONE)?;
    check_eq!(t.glob("[.]env").await?, NONE)
}

/// Names that begin with a dot are found when asked for.
pub async fn hidden_on_request(t: &Env) -> CaseResult {
    let all = [".a/b", ".env", "a", "b/.c", "b/.d/e"];
    t.put_all(&all).await?;
    check_eq!(found(t, t.glob_query("**").hidden(true)).await?, all)?;
    check_eq!(found(t, t.glob_query("*env").hidden(true)).await?, [".env"])
}

/// A name is found if the pattern spells out its dot. Others stay hidden.
pub async fn hidden_when_named(t: &Env) -> CaseResult {
    t.put_all(&[".github/.a/b", ".github/b/c", ".x/b/c"])
        .await?;
    t.put_all(&[".env", ".x/.env", "b/.env", "b/.envrc"])
        .await?;
    check_eq!(t.glob(".github/**").await?, [".github/b/c"])?;
    check_eq!(t.glob("**/.env").await?, [".env", "b/.env"])?;
    check_eq!(t.glob(".env").await?, [".env", "b/.env"])?;
    check_eq!(t.glob("b/.env*").await?, ["b/.env", "b/.envrc"])
}

/// A hidden directory that is the start of the search is searched.
pub async fn hidden_start_directory_is_searched(t: &Env) -> CaseResult {
    t.put_all(&[".config/.x", ".config/a", ".config/b/c"])
        .await?;
    let query = GlobQuery::new("**", t.path(".config")?);
    check_eq!(found(t, query).await?, [".config/a", ".config/b/c"])?;
    let query = GlobQuery::new("c", t.path(".config/b")?);
    check_eq!(found(t, query).await?, [".config/b/c"])
}

/// Files in `.git` are found only by a pattern that names it.
pub async fn git_only_when_named(t: &Env) -> CaseResult {
    t.put_all(&[".git/config", ".gitx/a", "b/.git/config"])
        .await?;
    let asked = found(t, t.glob_query("**").hidden(true)).await?;
    check_eq!(asked, [".gitx/a"])?;
    check_eq!(t.glob(".git/*").await?, [".git/config"])?;
    let both = [".git/config", "b/.git/config"];
    check_eq!(t.glob("**/.git/config").await?, both)
}

/// Files ignored by `.gitignore` are left out, even outside a repository.
pub async fn gitignore_is_honoured(t: &Env) -> CaseResult {
    t.put(".gitignore", "# comment\n\n*.log\nmade\n").await?;
    t.put_all(&["a.log", "b/c.log", "b/d", "b/made/e", "made/f"])
        .await?;
    check_eq!(t.glob("**").await?, ["b/d"])?;
    check_eq!(t.glob("*.log").await?, NONE)?;
    check_eq!(t.glob("made/f").await?, NONE)
}

/// Ignored files are found when asked for. That does not include hidden ones.
pub async fn ignored_on_request(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n").await?;
    t.put(".ignore", "target\n").await?;
    t.put_all(&["a", "b.log", "target/c"]).await?;
    let asked = found(t, t.glob_query("**").ignored(true)).await?;
    check_eq!(asked, ["a", "b.log", "target/c"])
}

/// In one directory, `.ignore` takes precedence.
pub async fn ignore_beats_gitignore(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n!secret.txt\n").await?;
    t.put(".ignore", "!kept.log\nsecret.txt\n").await?;
    t.put_all(&["a.log", "kept.log", "secret.txt"]).await?;
    check_eq!(t.glob("**").await?, ["kept.log"])
}

/// A deeper ignore file takes precedence over those above it.
pub async fn deeper_beats_shallower(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n!*.txt\n").await?;
    t.put("sub/.gitignore", "!kept.log\n*.txt\n").await?;
    t.put_all(&["a.txt", "kept.log", "sub/a.txt", "sub/b.log"])
        .await?;
    t.put_all(&["sub/kept.log", "sub/x/kept.log"]).await?;
    let kept = ["a.txt", "sub/kept.log", "sub/x/kept.log"];
    check_eq!(t.glob("**").await?, kept)
}

/// A later `!name` cancels an earlier rule.
pub async fn negation_brings_back(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n!kept.log\n").await?;
    t.put_all(&["a.log", "b/kept.log", "kept.log"]).await?;
    check_eq!(t.glob("*.log").await?, ["b/kept.log", "kept.log"])
}

/// Files in an ignored directory stay ignored, whatever other rules say.
pub async fn nothing_comes_back_inside_an_ignored_directory(t: &Env) -> CaseResult {
    t.put(".gitignore", "build/\n!build/a\n!b\n").await?;
    t.put("build/.gitignore", "!*\n").await?;
    t.put_all(&["build/a", "build/b", "c"]).await?;
    check_eq!(t.glob("**").await?, ["c"])?;
    check_eq!(t.glob("build/*").await?, NONE)
}

/// `!name` stops a file from being ignored. It does not unhide it.
pub async fn negation_does_not_unhide(t: &Env) -> CaseResult {
    t.put(".gitignore", "!.env\n").await?;
    t.put(".ignore", "!.env\n!.config\n").await?;
    t.put_all(&[".config/a", ".env", "b"]).await?;
    check_eq!(t.glob("**").await?, ["b"])
}

/// Rules above the searched directory apply to it.
pub async fn rules_above_the_start_apply(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n/src/made\n").await?;
    t.put_all(&["src/a", "src/b.log", "src/made/c"]).await?;
    t.put_all(&["src/x/d.log", "src/x/made/e"]).await?;
    let query = GlobQuery::new("**", t.path("src")?);
    check_eq!(found(t, query).await?, ["src/a", "src/x/made/e"])
}

/// A rule with a slash at its start or inside applies at its own level only.
pub async fn anchored_rules(t: &Env) -> CaseResult {
    t.put(".gitignore", "/build\ndoc/made\n").await?;
    t.put("sub/.gitignore", "/out\n").await?;
    t.put_all(&["build/a", "doc/made/a", "out/a"]).await?;
    t.put_all(&["sub/out/a", "sub/x/out/a", "x/build/a"])
        .await?;
    t.put_all(&["x/doc/made/a"]).await?;
    let kept = ["out/a", "sub/x/out/a", "x/build/a", "x/doc/made/a"];
    check_eq!(t.glob("**").await?, kept)
}

/// A rule with a slash at its end applies to directories only.
pub async fn directory_only_rules(t: &Env) -> CaseResult {
    t.put(".gitignore", "logs/\n").await?;
    t.put_all(&["a/logs", "b/logs/c", "logs/d"]).await?;
    check_eq!(t.glob("**").await?, ["a/logs"])
}

/// The rules do not apply to the start of the search itself.
pub async fn start_inside_ignored_directory_is_searched(t: &Env) -> CaseResult {
    t.put(".gitignore", "build/\n*.log\n").await?;
    t.put_all(&["build/a", "build/b.log", "build/c/d"]).await?;
    let query = GlobQuery::new("**", t.path("build")?);
    check_eq!(found(t, query).await?, ["build/a", "build/c/d"])?;
    let query = GlobQuery::new("**", t.path("build/c")?);
    check_eq!(found(t, query).await?, ["build/c/d"])
}

/// If no ignore file has rules, generated directories are left out, and each is counted
/// once. The names of files, and directory names that are only similar, do not matter.
pub async fn generated_left_out_and_counted(t: &Env) -> CaseResult {
    t.put_all(&["__pycache__/a", "a/build/b", "a/build/dist/c", "b/venv"])
        .await?;
    t.put_all(&[".venv/lib/a", "node_modules.d/a", "node_modules/m/a"])
        .await?;
    let result = search(t, t.glob_query("**")).await?;
    check_eq!(t.found(&result), ["b/venv", "node_modules.d/a"])?;
    check_eq!((result.skipped.generated, result.skipped.hidden), (3, 1))?;
    let result = search(t, t.glob_query("**").hidden(true)).await?;
    check_eq!(t.found(&result), ["b/venv", "node_modules.d/a"])?;
    check_eq!((result.skipped.generated, result.skipped.hidden), (4, 0))?;
    // Directories that the pattern cannot reach are not counted.
    let result = search(t, t.glob_query("a/*/b")).await?;
    check_eq!((result.files.len(), result.skipped.generated), (0, 1))
}

/// Generated directories are searched when asked for, together with everything that is
/// ignored.
pub async fn generated_on_request(t: &Env) -> CaseResult {
    t.put_all(&["a/build/b", "node_modules/m/dist/a"]).await?;
    for query in [
        t.glob_query("**").generated(true),
        t.glob_query("**").ignored(true),
    ] {
        let result = search(t, query).await?;
        check_eq!(t.found(&result), ["a/build/b", "node_modules/m/dist/a"])?;
        check_eq!(result.skipped.generated, 0)?;
    }
    Ok(())
}

/// A generated directory is searched with all its contents if a component of the
/// pattern is its name.
pub async fn generated_when_named(t: &Env) -> CaseResult {
    t.put_all(&["a/build/b", "build/target/c", "dist/d", "dist/venv/e"])
        .await?;
    for (pattern, found) in [
        ("build/**", &["build/target/c"][..]),
        ("**/build/**", &["a/build/b", "build/target/c"]),
        ("{dist,src}/**", &["dist/d", "dist/venv/e"]),
        ("a/build/b", &["a/build/b"]),
        // Neither a wildcard that happens to match, nor the name of a file.
        ("d*/**", &[]),
        ("*/b*/*", &[]),
        ("**/build", &[]),
    ] {
        let names = t.glob(pattern).await?;
        check!(names == found, "{pattern} finds {names:?}")?;
    }
    Ok(())
}

/// The start is searched, whatever its name and the names of its parents are.
pub async fn generated_start_directory_is_searched(t: &Env) -> CaseResult {
    t.put_all(&["build/a", "build/target/b", "build/src/c"])
        .await?;
    for (start, found_there, skipped) in [
        ("build", &["build/a", "build/src/c"][..], 1),
        ("build/target", &["build/target/b"], 0),
        ("build/src", &["build/src/c"], 0),
    ] {
        let query = GlobQuery::new("**", t.path(start)?);
        let result = search(t, query).await?;
        check_eq!(t.found(&result), found_there)?;
        check_eq!(result.skipped.generated, skipped)?;
    }
    Ok(())
}

/// If an ignore file has rules, only ignore files decide what is left out.
pub async fn ignore_files_overrule_generated(t: &Env) -> CaseResult {
    t.put("git/.gitignore", "target/\n").await?;
    t.put("kept/.ignore", "!build/\n").await?;
    t.put("bare/.gitignore", "# no rule\n").await?;
    t.put_all(&[
        "bare/build/a",
        "git/build/a",
        "git/sub/dist/a",
        "git/target/a",
    ])
    .await?;
    t.put_all(&["kept/build/a"]).await?;
    let result = search(t, t.glob_query("**")).await?;
    let kept = ["git/build/a", "git/sub/dist/a", "kept/build/a"];
    check_eq!(t.found(&result), kept)?;
    check_eq!((result.skipped.ignored, result.skipped.generated), (1, 1))?;
    // The same if the ignore file is above the start.
    let query = GlobQuery::new("**", t.path("git/sub")?);
    check_eq!(found(t, query).await?, ["git/sub/dist/a"])
}

/// Excluded files do not count towards the limit and leave no trace.
pub async fn exclude_comes_before_the_limit(t: &Env) -> CaseResult {
    t.put_all(&["a.secret", "b", "c", "d.secret"]).await?;
    let query = t.glob_query("**").limit(2).exclude(hide("*.secret")?);
    let result = search(t, query).await?;
    check_eq!(t.found(&result), ["b", "c"])?;
    check!(!result.truncated)?;
    check!(result.skipped.is_empty(), "{:?}", result.skipped)
}

/// Everything in an excluded directory is excluded, however it is asked for.
pub async fn exclude_hides_what_is_inside(t: &Env) -> CaseResult {
    t.put_all(&["a", "vault/.b", "vault/c", "vault/x/d"])
        .await?;
    let vault = t.path("vault")?;
    let exclude = hide(vault.as_str())?;
    for pattern in ["**", "{a,vault/**}"] {
        let query = t.glob_query(pattern).hidden(true).ignored(true);
        let result = search(t, query.exclude(exclude.clone())).await?;
        check_eq!(t.found(&result), ["a"])?;
        check!(result.skipped.is_empty(), "{:?}", result.skipped)?;
    }
    for start in ["vault", "vault/x"] {
        let query = GlobQuery::new("**", t.path(start)?).exclude(exclude.clone());
        check_eq!(search(t, query).await?, GlobResult::default())?;
    }
    Ok(())
}

/// Skipped entries are counted, each directory once.
pub async fn skipped_is_counted(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\nbuild/\n").await?;
    t.put_all(&[".a/b", ".a/c", ".env", "b.log"]).await?;
    t.put_all(&["build/d", "build/e", "sub/f.log", "sub/g"])
        .await?;
    let result = search(t, t.glob_query("**")).await?;
    check_eq!(t.found(&result), ["sub/g"])?;
    let skipped = result.skipped;
    check_eq!((skipped.hidden, skipped.ignored), (3, 3))?;
    let others = [skipped.binary, skipped.unreadable, skipped.not_utf8];
    check_eq!(others, [0, 0, 0])
}
