//! Programs in Markdown files, compiled as a reader would paste them.
//!
//! Every block ` ```rust ` of a Markdown file must be a complete program. The last
//! block ` ```toml ` above it that begins with `[dependencies]` must be the complete
//! list of its dependencies, as written by a user.

use anyhow::{Context as _, Result};

use super::project::{Program, Project};
use crate::markdown;
use crate::metadata::Package;
use crate::process;
use crate::test_all::stage::Ctx;
use crate::tidy::TextFile;

/// A code block and its dependencies.
#[derive(Debug, PartialEq, Eq)]
struct Snippet {
    /// The file and the line where the block begins, as in `README.md:12`.
    place: String,
    list: String,
    /// The code, at the same line numbers as in its file. The program's name contains
    /// no line number, so that cargo recognizes it when the block moves.
    program: Program,
}

/// Compiles all blocks of the repository. Returns how many there are, and the locations
/// of those that failed.
pub(super) fn check(ctx: &Ctx, own: &[&Package]) -> Result<(usize, Vec<String>)> {
    let mut snippets = Vec::new();
    let mut failed = Vec::new();
    for file in crate::tidy::read_files(ctx.workspace.root())? {
        if file.has_extension("md") {
            for snippet in snippets_of(&file) {
                match snippet {
                    Ok(snippet) => snippets.push(snippet),
                    Err(place) => {
                        eprintln!("error: {place}: no list of dependencies is above this block");
                        failed.push(place);
                    }
                }
            }
        }
    }
    let n_snippets = snippets.len() + failed.len();
    for group in by_list(snippets) {
        failed.extend(check_group(ctx, own, group)?);
    }
    Ok((n_snippets, failed))
}

/// Returns the blocks of a file, in order. For a block without a list, the error is its
/// location.
fn snippets_of(file: &TextFile) -> Vec<Result<Snippet, String>> {
    let mut list = None;
    let mut found = Vec::new();
    for fence in markdown::fences(&file.text) {
        let code = fence.code.join("\n") + "\n";
        let language = fence.info.split(',').next().unwrap_or_default();
        match language {
            "toml" if code.starts_with("[dependencies]\n") => list = Some(code),
            "rust" => {
                let place = format!("{}:{}", file.path, fence.lines.start + 1);
                let n = found.len() + 1;
                found.push(match &list {
                    None => Err(place),
                    Some(list) => Ok(Snippet {
                        place,
                        list: list.clone(),
                        program: Program {
                            name: format!("{}-{n}", file.path.replace(['/', '.'], "-")),
                            path: format!("{}/{n}.rs", file.path),
                            source: "\n".repeat(fence.lines.start + 1) + &code,
                        },
                    }),
                });
            }
            _ => {}
        }
    }
    found
}

/// Groups the blocks with the same list, which share a project.
fn by_list(snippets: Vec<Snippet>) -> Vec<Vec<Snippet>> {
    let mut groups: Vec<Vec<Snippet>> = Vec::new();
    for snippet in snippets {
        match groups.iter_mut().find(|it| it[0].list == snippet.list) {
            Some(group) => group.push(snippet),
            None => groups.push(vec![snippet]),
        }
    }
    groups
}

/// Compiles blocks that share one list. Returns the locations of those that do not
/// compile.
fn check_group(ctx: &Ctx, own: &[&Package], group: Vec<Snippet>) -> Result<Vec<String>> {
    let list = group[0].list.clone();
    let (places, programs): (Vec<_>, Vec<_>) =
        group.into_iter().map(|it| (it.place, it.program)).unzip();
    let project = Project {
        name: programs[0].name.clone(),
        list,
        programs,
    };
    let written = project.write(ctx, own);
    written.with_context(|| format!("the list of dependencies above {}", places[0]))?;
    // If a block has tests, they are compiled too.
    let has_tests = |it: &Program| it.source.contains("#[cfg(test)]");
    let targets = if project.programs.iter().any(has_tests) {
        "--all-targets"
    } else {
        "--bins"
    };
    if process::run(&mut project.cargo(ctx, &["check", "--keep-going", targets])?).is_ok() {
        return Ok(Vec::new());
    }
    let mut failed = Vec::new();
    for (program, place) in project.programs.iter().zip(&places) {
        let args = ["check", "--bin", &program.name];
        if !process::succeeds(&mut project.cargo(ctx, &args)?) {
            failed.push(place.clone());
        }
    }
    // Otherwise the error was in the tests.
    if failed.is_empty() {
        failed = places;
    }
    for place in &failed {
        eprintln!("error: {place}: the block does not compile with the list above it");
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::TextFile;

    const PAGE: &str = "\
# T

```rust
fn early() {}
```

```toml
[dependencies]
a = \"0.1\"
```

```toml
[runtimes.x]
```

```rust,no_run
fn main() {}
```

```text
fn no() {}
```

```toml
[dependencies]
b = \"0.1\"
```

Words.

```rust
fn main() {
    b::run();
}
```
";

    fn page(path: &str) -> Vec<Result<Snippet, String>> {
        snippets_of(&TextFile {
            path: path.to_owned(),
            text: PAGE.to_owned(),
        })
    }

    #[test]
    fn a_block_has_the_last_list_above_it_and_its_own_lines() {
        let mut found = page("docs/a.md").into_iter();
        assert_eq!(found.next(), Some(Err("docs/a.md:3".to_owned())));
        let found: Vec<_> = found.map(Result::unwrap).collect();
        let [first, second] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(first.place, "docs/a.md:16");
        assert_eq!(first.list, "[dependencies]\na = \"0.1\"\n");
        let Program { name, path, source } = &second.program;
        assert_eq!((&**name, &**path), ("docs-a-md-3", "docs/a.md/3.rs"));
        assert_eq!(second.list, "[dependencies]\nb = \"0.1\"\n");
        for (index, line) in source.lines().enumerate() {
            let expected = PAGE.lines().nth(index).unwrap();
            assert!(line.is_empty() || line == expected, "{line:?} at {index}");
        }
        assert!(source.ends_with("\nfn main() {\n    b::run();\n}\n"));
    }

    #[test]
    fn equal_lists_share_a_project() {
        let found = ["a.md", "b.md"].into_iter().flat_map(page);
        let groups = by_list(found.filter_map(Result::ok).collect());
        let places =
            |group: &Vec<Snippet>| -> Vec<_> { group.iter().map(|it| it.place.clone()).collect() };
        let places: Vec<_> = groups.iter().map(places).collect();
        assert_eq!(places, [["a.md:16", "b.md:16"], ["a.md:31", "b.md:31"]]);
    }
}
