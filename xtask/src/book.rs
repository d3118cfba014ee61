//! `cargo xtask book`: a book of HTML from the pages that docs/SUMMARY.md names.
//!
//! The pages stay where they are read in the repository too, some outside docs/. A copy of
//! them has the repository's layout, so the links between pages hold. Links to other files
//! lead to the repository on the web.

mod html;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::scratch::{self, Scratch};
use crate::workspace::Workspace;
use crate::{markdown, process};

/// The directory of the summary and of most pages.
const DOCS: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";
const CONFIG: &str = "docs/book.toml";
/// The pictures of pages, all of which are in the book.
const IMAGES: &str = "docs/images/";

/// Builds the book. Returns whether its links hold.
pub(crate) fn run() -> Result<bool> {
    let workspace = Workspace::discover()?;
    ensure!(
        workspace.has_program("mdbook")?,
        "mdbook is not installed; `cargo xtask test-all --provision --only book` installs it"
    );
    let book = build(&workspace)?;
    for problem in &book.problems {
        eprintln!("error: {problem}");
    }
    let index = book.directory.join("index.html");
    println!("{} pages: {}", book.pages, index.display());
    Ok(book.problems.is_empty())
}

/// A book that was built.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) directory: PathBuf,
    pub(crate) pages: usize,
    /// The links that lead nowhere, and pages that the summary leaves out.
    pub(crate) problems: Vec<String>,
}

/// Builds the book in `target/book`.
pub(crate) fn build(workspace: &Workspace) -> Result<Book> {
    let root = workspace.root();
    let summary = read(root, SUMMARY)?;
    let pages = pages(&summary)?;
    let mut problems = left_out(root, &pages)?;
    let source = Scratch::temporary("book")?;
    copy(root, &pages, &summary, &source)?;
    let directory = workspace.metadata()?.target_directory.join("book");
    scratch::empty(&directory)?;
    let mut mdbook = workspace.command("mdbook")?;
    process::run(
        mdbook
            .arg("build")
            .arg(&*source)
            .arg("--dest-dir")
            .arg(&directory),
    )?;
    problems.extend(html::broken_links(&directory)?);
    Ok(Book {
        directory,
        pages: pages.len(),
        problems,
    })
}

fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

/// Returns the pages of a summary, by their paths in the repository.
fn pages(summary: &str) -> Result<BTreeSet<String>> {
    let mut pages = BTreeSet::new();
    for (_, line) in markdown::prose_lines(summary) {
        for target in markdown::link_targets(line) {
            let path = markdown::resolve(DOCS, target);
            let path = path.with_context(|| format!("{target} is outside the repository"))?;
            if let Some(twice) = pages.replace(path) {
                bail!("{SUMMARY} names {twice} twice");
            }
        }
    }
    Ok(pages)
}

/// Reports the pages of docs/ that the summary does not name.
fn left_out(root: &Path, pages: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for entry in fs::read_dir(root.join(DOCS))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let path = format!("{DOCS}/{name}");
        if name.ends_with(".md") && path != SUMMARY && !pages.contains(&path) {
            problems.push(format!("{path} is not in {SUMMARY}"));
        }
    }
    problems.sort_unstable();
    Ok(problems)
}

/// Copies the pages and the configuration to where mdBook reads them.
fn copy(root: &Path, pages: &BTreeSet<String>, summary: &str, to: &Path) -> Result<()> {
    fs::copy(root.join(CONFIG), to.join("book.toml"))?;
    let write = |path: &str, text: String| -> Result<()> {
        let path = to.join("src").join(path);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    // mdBook wants it at the top.
    let moved = linked(summary, DOCS, &|path| path.to_owned());
    write("SUMMARY.md", moved)?;
    copy_images(&root.join(IMAGES), &to.join("src").join(IMAGES))?;
    let is_dir = |path: &str| root.join(path).is_dir();
    for page in pages {
        let directory = page.rsplit_once('/').map_or("", |(directory, _)| directory);
        let text = linked(
            &read(root, page)?,
            directory,
            &|path| match pages.contains(path) || path.starts_with(IMAGES) {
                true => relative(directory, path),
                false => on_the_web(path, is_dir(path)),
            },
        );
        write(page, text)?;
    }
    Ok(())
}

/// Copies the pictures in a directory, and in those beneath it.
fn copy_images(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for image in fs::read_dir(from)? {
        let image = image?;
        let copied = to.join(image.file_name());
        if image.file_type()?.is_dir() {
            copy_images(&image.path(), &copied)?;
        } else {
            fs::copy(image.path(), copied)?;
        }
    }
    Ok(())
}

/// Returns a page of a directory with other targets for its relative links. `target` is
/// given their paths in the repository.
fn linked(text: &str, directory: &str, target: &dyn Fn(&str) -> String) -> String {
    let mut replaced: BTreeMap<usize, String> = BTreeMap::new();
    for (index, line) in markdown::prose_lines(text) {
        let mut line = line.to_owned();
        let targets = markdown::link_targets(&line);
        let targets: BTreeSet<String> = targets.into_iter().map(str::to_owned).collect();
        for old in targets.iter().filter(|old| markdown::is_relative(old)) {
            let Some(path) = markdown::resolve(directory, old) else {
                continue;
            };
            let anchor = old
                .split_once('#')
                .map_or("", |(path, _)| &old[path.len()..]);
            let new = format!("{}{anchor}", target(&path));
            for (before, after) in [("](", ")"), ("](", " "), ("]: ", "")] {
                let (old, new) = (
                    format!("{before}{old}{after}"),
                    format!("{before}{new}{after}"),
                );
                line = line.replace(&old, &new);
            }
        }
        replaced.insert(index, line);
    }
    let lines = text.lines().enumerate().map(|(index, line)| {
        let line = replaced.get(&index).map_or(line, |line| line.as_str());
        format!("{line}\n")
    });
    lines.collect()
}

/// Returns the way from a directory to a page, both from the root of the repository. mdBook
/// names a README as an index.
fn relative(directory: &str, page: &str) -> String {
    let path = match page.strip_suffix("README.md") {
        Some(beside) if beside.is_empty() || beside.ends_with('/') => format!("{beside}index.md"),
        _ => page.to_owned(),
    };
    let up = directory.split('/').filter(|part| !part.is_empty()).count();
    format!("{}{path}", "../".repeat(up))
}

fn on_the_web(path: &str, is_dir: bool) -> String {
    let kind = if is_dir { "tree" } else { "blob" };
    format!("{}/{kind}/main/{path}", env!("CARGO_PKG_REPOSITORY"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_once_and_by_their_path() {
        let found = pages("[a](../README.md)\n- [b](b.md)\n").unwrap();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            ["README.md", "docs/b.md"]
        );
        let error = pages("[a](a.md)\n[b](./a.md)\n").unwrap_err();
        assert_eq!(error.to_string(), "docs/SUMMARY.md names docs/a.md twice");
        assert!(pages("[a](../../a.md)\n").is_err());
    }

    #[test]
    fn a_readme_is_an_index() {
        assert_eq!(relative("", "docs/a.md"), "docs/a.md");
        assert_eq!(relative("docs", "README.md"), "../index.md");
        assert_eq!(
            relative("crates/a", "crates/b/README.md"),
            "../../crates/b/index.md"
        );
        assert_eq!(relative("", "docs/MYREADME.md"), "docs/MYREADME.md");
    }

    #[test]
    fn links_to_pages_stay_and_others_lead_to_the_web() {
        let text = "[a](a.md#part) [code](../xtask/src \"title\") [web](https://b.org) [here](#x)\n\
                    `[no](a.md)`\n```\n[no](../x)\n```\n[label]: ../LICENSE\n";
        let told = linked(text, "docs", &|path| match path {
            "docs/a.md" => relative("docs", path),
            _ => on_the_web(path, path == "xtask/src"),
        });
        let web = env!("CARGO_PKG_REPOSITORY");
        let expected = format!(
            "[a](../docs/a.md#part) [code]({web}/tree/main/xtask/src \"title\") [web](https://b.org) [here](#x)\n\
             `[no](a.md)`\n```\n[no](../x)\n```\n[label]: {web}/blob/main/LICENSE\n"
        );
        assert_eq!(told, expected);
    }
}
