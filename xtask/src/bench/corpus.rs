//! The files that are searched: most of them created once and kept in the cache.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::scratch;

/// Copying stops after the crate that reaches this number.
const MAX_TREE_FILES: u64 = 20_000;

/// Minimum number of source files in the tree. What the registry lacks is generated.
const MIN_TREE_SOURCES: u64 = 10_000;

/// A word that occurs three times in the tree.
const RARE_LITERAL: &str = "agentbox_rare_literal";

/// The search pattern for memory measurements.
const NEEDLE: &str = "needle";

/// Creates a tree from the sources of crates that cargo has unpacked in `registry`.
/// Returns its size for the report.
pub(super) fn tree(path: &Path, registry: &Path) -> Result<String> {
    kept(path, || fill_tree(path, registry, MIN_TREE_SOURCES))
}

/// Creates 200k small files, of which every hundredth contains a needle.
pub(super) fn many(path: &Path) -> Result<String> {
    kept(path, || fill_many(path, 1_000, 200))
}

/// Creates 2 GB of lines of 100 bytes, with 200 needles.
pub(super) fn big(directory: &Path) -> Result<PathBuf> {
    fill_big(directory, 200, 100_000)
        .with_context(|| format!("cannot write 2 GB into {}", directory.display()))
}

/// Fills the directory `path`, unless an earlier run completed it and wrote its
/// description next to it.
fn kept(path: &Path, fill: impl FnOnce() -> Result<String>) -> Result<String> {
    let note = path.with_extension("txt");
    if let Ok(description) = fs::read_to_string(&note) {
        return Ok(description);
    }
    println!("filling {}", path.display());
    scratch::empty(path)?;
    let description = fill().with_context(|| format!("cannot fill {}", path.display()))?;
    fs::write(&note, &description)?;
    Ok(description)
}

/// Creates a file in which every block has a needle in its first line.
fn fill_big(directory: &Path, n_blocks: usize, lines_per_block: usize) -> Result<PathBuf> {
    let path = directory.join("lines.txt");
    println!("writing {}", path.display());
    let line = |number| {
        let word = if number == 0 { NEEDLE } else { "straw" };
        format!("{:<99}\n", format!("{number:08} {word} and other words"))
    };
    let block: String = (0..lines_per_block).map(line).collect();
    let mut file = File::create(&path)?;
    for _ in 0..n_blocks {
        file.write_all(block.as_bytes())?;
    }
    Ok(path)
}

/// The size of a tree.
#[derive(Default)]
struct Extent {
    files: u64,
    sources: u64,
    bytes: u64,
}

impl Extent {
    fn add(&mut self, file: &Path, bytes: u64) {
        self.files += 1;
        self.sources += u64::from(file.extension().is_some_and(|extension| extension == "rs"));
        self.bytes += bytes;
    }
}

fn fill_tree(path: &Path, registry: &Path, min_sources: u64) -> Result<String> {
    let mut extent = Extent::default();
    for krate in crates_in(registry)? {
        if extent.files >= MAX_TREE_FILES {
            break;
        }
        let name = krate.file_name().context("a crate has no name")?;
        copy_dir(&krate, &path.join(name), &mut extent)?;
    }
    let generated = path.join("zz-generated");
    let mut number = 0;
    while number == 0 || extent.sources < min_sources {
        let dir = generated.join(format!("m{:03}", number / 100));
        fs::create_dir_all(&dir)?;
        let (file, text) = (
            dir.join(format!("f{number:05}.rs")),
            generated_source(number),
        );
        fs::write(&file, &text)?;
        extent.add(&file, text.len() as u64);
        number += 1;
    }
    let (files, sources, megabytes) = (extent.files, extent.sources, extent.bytes / 1_000_000);
    Ok(format!(
        "Tree: {files} files of crates from cargo's registry, {sources} of them Rust, {megabytes} MB"
    ))
}

/// Returns the directories of the crates under `registry/<index>/`, sorted by name.
fn crates_in(registry: &Path) -> Result<Vec<PathBuf>> {
    let mut crates = Vec::new();
    // Without a registry, everything is generated.
    for index in fs::read_dir(registry).into_iter().flatten() {
        let index = index?.path();
        if index.is_dir() {
            for krate in fs::read_dir(index)? {
                crates.push(krate?.path());
            }
        }
    }
    crates.retain(|path| path.is_dir());
    crates.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    Ok(crates)
}

/// Copies directories and regular files, nothing else.
fn copy_dir(from: &Path, to: &Path, extent: &mut Extent) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy_dir(&path, &target, extent)?;
        } else if kind.is_file() {
            let bytes = fs::copy(&path, &target)
                .with_context(|| format!("cannot copy {}", path.display()))?;
            extent.add(&path, bytes);
        }
    }
    Ok(())
}

fn generated_source(number: u64) -> String {
    let rare = if number == 0 { RARE_LITERAL } else { "common" };
    let item = |item| {
        let mark = if item < 3 { rare } else { "common" };
        format!(
            "/// Number {item} of {number}: {mark}.\n\
             pub fn f{item}(&self) -> Result<u64, Error> {{\n    \
             self.inner.get({number}).ok_or(Error::Missing({item}))\n}}\n\n"
        )
    };
    (0..20).map(item).collect()
}

fn fill_many(path: &Path, n_dirs: u64, files_per_dir: u64) -> Result<String> {
    for dir in 0..n_dirs {
        let dir_path = path.join(format!("d{dir:04}"));
        fs::create_dir(&dir_path)?;
        for file in 0..files_per_dir {
            let word = if file % 100 == 0 { NEEDLE } else { "straw" };
            let text = format!("directory {dir}\nfile {file}\n{word}\n");
            fs::write(dir_path.join(format!("f{file:03}.txt")), text)?;
        }
    }
    Ok(format!("{} files", n_dirs * files_per_dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_complete_corpus_is_kept_and_an_incomplete_one_made_anew() {
        let scratch = Scratch::temporary("kept").unwrap();
        let path = scratch.join("many");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("left over"), "").unwrap();
        let made = kept(&path, || fill_many(&path, 2, 101)).unwrap();
        assert_eq!(made, "202 files");
        assert!(!path.join("left over").exists());
        let text = fs::read_to_string(path.join("d0001/f100.txt")).unwrap();
        assert!(text.contains(NEEDLE));
        assert_eq!(kept(&path, || panic!("filled twice")).unwrap(), made);
    }

    #[test]
    fn crates_are_copied_and_what_is_missing_is_generated() {
        let scratch = Scratch::temporary("tree").unwrap();
        let krate = scratch.join("registry/index-1/some-1.0.0");
        fs::create_dir_all(krate.join("src")).unwrap();
        fs::write(krate.join("src/lib.rs"), "fn main() {}\n").unwrap();
        fs::write(krate.join("Cargo.toml"), "[package]\n").unwrap();
        let tree = scratch.join("tree");
        let size = fill_tree(&tree, &scratch.join("registry"), 150).unwrap();
        assert!(size.starts_with("Tree: 151 files "), "{size}");
        assert!(size.contains(", 150 of them Rust, "), "{size}");
        assert!(tree.join("some-1.0.0/src/lib.rs").is_file());
        let marked = fs::read_to_string(tree.join("zz-generated/m000/f00000.rs")).unwrap();
        assert_eq!(marked.matches(RARE_LITERAL).count(), 3);
    }

    #[test]
    fn a_big_file_has_a_needle_per_block() {
        let scratch = Scratch::temporary("big").unwrap();
        let text = fs::read_to_string(fill_big(&scratch, 3, 10).unwrap()).unwrap();
        assert_eq!(text.len(), 3 * 10 * 100);
        assert_eq!(text.matches(NEEDLE).count(), 3);
    }
}
