//! `cargo xtask api`: the public API of each published library, as text in `docs/api`.
//!
//! A change of the API shows up in a review as a change of that text. The text is
//! generated from rustdoc's JSON, whose format changes between versions of Rust.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{Workspace, rust_release};
use crate::{flags, process};

/// The version of Rust whose JSON the crate `public-api` reads. Both are raised
/// together.
const RUST: &str = "1.95";

/// Directory of the texts.
const DIRECTORY: &str = "docs/api";

/// Enables JSON output on a stable toolchain for rustdoc, and for nothing that is
/// compiled for it.
const WRAPPER: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

/// Shows the differences, and writes the new texts if requested.
pub(crate) fn run(flags: &flags::Api) -> Result<bool> {
    match compare(&Workspace::discover()?, flags.fix)? {
        Compared::Unable(reason) => bail!(reason),
        Compared::Done { libraries, changed } => {
            println!("{} of {libraries} changed", changed.len());
            Ok(flags.fix || changed.is_empty())
        }
    }
}

/// The result of a comparison with [`DIRECTORY`].
#[derive(Debug)]
pub(crate) enum Compared {
    /// This toolchain cannot do it, with the reason.
    Unable(String),
    Done {
        libraries: usize,
        /// The packages whose API has changed. The changes were printed.
        changed: Vec<String>,
    },
}

/// Prints how the APIs differ from the recorded texts. With `fix`, records the new
/// ones.
pub(crate) fn compare(workspace: &Workspace, fix: bool) -> Result<Compared> {
    let release = rust_release(workspace)?;
    if !release.starts_with(&format!("{RUST}.")) {
        let reason = format!("listings are made with Rust {RUST}, and this is {release}");
        return Ok(Compared::Unable(reason));
    }
    let listings = Listings::make(workspace)?;
    let changes = listings.changes(&workspace.root().join(DIRECTORY))?;
    for change in &changes {
        println!("{}", change.shown());
        if fix {
            change.write()?;
        }
    }
    Ok(Compared::Done {
        libraries: listings.0.len(),
        changed: changes.iter().map(Change::package).collect(),
    })
}

/// The text of every published library, by file name.
#[derive(Debug)]
struct Listings(BTreeMap<String, String>);

impl Listings {
    /// Runs rustdoc on all libraries.
    fn make(workspace: &Workspace) -> Result<Self> {
        let documented = document(workspace)?;
        let metadata = workspace.metadata()?;
        let published = metadata.packages.iter();
        let published = published.filter(|package| package.is_published_library());
        let listings = published.map(|package| {
            let library = package.library().unwrap_or_default();
            let text = listing(&documented.join(format!("{library}.json")))
                .with_context(|| format!("{} cannot be listed", package.name))?;
            Ok((format!("{}.txt", package.name), text))
        });
        Ok(Self(listings.collect::<Result<_>>()?))
    }

    /// Returns the texts in `directory` that are out of date.
    fn changes(&self, directory: &Path) -> Result<Vec<Change>> {
        let mut old = BTreeMap::new();
        if directory.is_dir() {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                old.insert(name, fs::read_to_string(entry.path())?);
            }
        }
        let names: BTreeSet<_> = old.keys().chain(self.0.keys()).collect();
        let change = |name: &String| Change {
            path: directory.join(name),
            old: old.get(name).cloned().unwrap_or_default(),
            new: self.0.get(name).cloned(),
        };
        let changes = names.into_iter().map(change);
        Ok(changes
            .filter(|change| change.new.as_ref() != Some(&change.old))
            .collect())
    }
}

/// A text that differs from the recorded one.
#[derive(Debug)]
struct Change {
    path: PathBuf,
    old: String,
    /// `None` if the library no longer exists.
    new: Option<String>,
}

impl Change {
    fn package(&self) -> String {
        let name = self.path.file_stem().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns the removed and the added lines. Each line is independent, so their
    /// order does not matter.
    fn shown(&self) -> String {
        let new = self.new.as_deref().unwrap_or_default();
        let missing = |from: &str, to: &str, mark: char| -> String {
            let there: BTreeSet<_> = to.lines().collect();
            let lines = from.lines().filter(|line| !there.contains(line));
            lines.map(|line| format!("{mark}{line}\n")).collect()
        };
        let went = missing(&self.old, new, '-');
        let came = missing(new, &self.old, '+');
        format!("{}\n{went}{came}", self.path.display())
    }

    fn write(&self) -> Result<()> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        match &self.new {
            Some(text) => fs::write(&self.path, text),
            None => fs::remove_file(&self.path),
        }
        .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Writes the JSON of all libraries and returns its directory.
///
/// It uses all features and all members at once, so that the compiled dependencies of
/// other stages are reused.
fn document(workspace: &Workspace) -> Result<PathBuf> {
    let wrapper = workspace.cache("api").join("rustdoc");
    fs::create_dir_all(workspace.cache("api"))?;
    fs::write(&wrapper, WRAPPER)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let mut command = workspace.cargo(["doc", "--workspace", "--all-features"])?;
    command
        .args(["--lib", "--no-deps"])
        .env("RUSTDOC", &wrapper)
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json")
        .env_remove("CARGO_ENCODED_RUSTDOCFLAGS");
    process::run(&mut command)?;
    Ok(workspace.metadata()?.target_directory.join("doc"))
}

/// Returns the API with one item per line. Blanket implementations are left out.
fn listing(json: &Path) -> Result<String> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()?;
    Ok(reviewable(api.items().map(ToString::to_string)))
}

/// Leaves out the methods of implemented traits: the implementation itself implies
/// them.
fn reviewable(items: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut implementing: Option<String> = None;
    for item in items {
        if item.starts_with("impl") {
            let of = item.split_once(" for ").map(|(_, of)| of);
            let of = of.and_then(|of| of.split(['<', ' ']).next());
            implementing = of.map(str::to_owned);
            // `#[derive(PartialEq)]` adds it, and code cannot name it.
            if item.contains("::StructuralPartialEq for ") {
                continue;
            }
        } else if let Some(of) = &implementing
            && item.split_once(of).is_some_and(|(before, after)| {
                before.ends_with("fn ") && after.starts_with([':', '<'])
            })
        {
            continue;
        }
        text.push_str(&item);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn listings(texts: &[(&str, &str)]) -> Listings {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        Listings(texts.iter().map(owned).collect())
    }

    #[test]
    fn functions_of_traits_are_left_out() {
        let items = [
            "pub struct a::B<T>",
            "impl<T> a::B<T>",
            "pub fn a::B<T>::new() -> Self",
            "impl<T> core::clone::Clone for a::B<T> where T: core::clone::Clone",
            "pub fn a::B<T>::clone(&self) -> a::B<T>",
            "impl<T> core::marker::StructuralPartialEq for a::B<T>",
            "impl<T> core::str::FromStr for a::B<T>",
            "pub type a::B<T>::Err = a::E",
            "pub fn a::B<T>::from_str(&str) -> Result<Self, a::E>",
            "pub struct a::Bc",
            "pub fn a::free(a::B<u8>)",
        ];
        let text = reviewable(items.iter().map(ToString::to_string));
        let kept: Vec<_> = text.lines().collect();
        let expected: Vec<_> = [0, 1, 2, 3, 6, 7, 9, 10].map(|i| items[i]).into();
        assert_eq!(kept, expected);
    }

    #[test]
    fn changes_are_shown_and_written_down() {
        let scratch = Scratch::temporary("api").unwrap();
        let place = scratch.join("api");
        let before = listings(&[("a.txt", "fn f()\nfn g()\n"), ("b.txt", "x\n")]);
        let changes = before.changes(&place).unwrap();
        assert_eq!(changes.len(), 2);
        for change in changes {
            change.write().unwrap();
        }
        assert!(before.changes(&place).unwrap().is_empty());

        let after = listings(&[("a.txt", "fn f(u8)\nfn g()\n")]);
        let changes = after.changes(&place).unwrap();
        let shown: Vec<_> = changes.iter().map(Change::shown).collect();
        let path = |name| place.join(name).display().to_string();
        assert_eq!(shown[0], format!("{}\n-fn f()\n+fn f(u8)\n", path("a.txt")));
        assert_eq!(shown[1], format!("{}\n-x\n", path("b.txt")));
        for change in changes {
            change.write().unwrap();
        }
        assert!(!place.join("b.txt").exists());
        assert!(after.changes(&place).unwrap().is_empty());
    }
}
