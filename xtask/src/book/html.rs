//! Links between the pages of HTML in a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

/// A page's anchors, and the targets of its links.
#[derive(Debug, Default)]
struct Page {
    anchors: BTreeSet<String>,
    links: BTreeSet<String>,
}

/// Returns the links in a directory that lead to no file or to no anchor of one.
pub(super) fn broken_links(directory: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    read(directory, directory, &mut pages)?;
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !leads_away(link)) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                _ => beside(path, file),
            };
            let is_there = match pages.get(&target) {
                Some(page) => anchor.is_empty() || page.anchors.contains(anchor),
                None => anchor.is_empty() && directory.join(&target).exists(),
            };
            if !is_there {
                broken.push(format!("{}: the link {link} leads nowhere", path.display()));
            }
        }
    }
    Ok(broken)
}

/// Reads the pages beneath `directory`, by their paths from `root`.
fn read(root: &Path, directory: &Path, pages: &mut BTreeMap<PathBuf, Page>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            read(root, &path, pages)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let text = fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            let page = Page {
                anchors: values(&text, " id=\""),
                links: &values(&text, " href=\"") | &values(&text, " src=\""),
            };
            pages.insert(path.strip_prefix(root)?.to_owned(), page);
        }
    }
    Ok(())
}

/// Returns the values of an attribute. The text is that of a program, in one style.
fn values(text: &str, attribute: &str) -> BTreeSet<String> {
    let rest = text.split(attribute).skip(1);
    let values = rest.filter_map(|rest| rest.split('"').next());
    values.map(|value| value.replace("&amp;", "&")).collect()
}

/// Whether a link leads out of the book.
fn leads_away(link: &str) -> bool {
    link.contains(':') || link.starts_with("//")
}

/// Returns the path of `file` as it is named in `page`.
fn beside(page: &Path, file: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(part) => path.push(part),
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn links_lead_to_files_and_their_anchors() {
        let directory = Scratch::temporary("html").unwrap();
        fs::create_dir(directory.join("docs")).unwrap();
        let index = "<a href=\"docs/a.html#b\"></a><a href=\"https://b.org\"></a><link href=\"x.css\">\
                     <a href=\"#top\"></a><h1 id=\"top\"></h1>";
        fs::write(directory.join("index.html"), index).unwrap();
        fs::write(directory.join("x.css"), "").unwrap();
        let page = "<h2 class=\"h\" id=\"b\"></h2><a href=\"../index.html\"></a>\
                    <a href=\"../index.html#c\"></a><a href=\"d.html\"></a><a href=\"#e\"></a>";
        fs::write(directory.join("docs/a.html"), page).unwrap();
        let broken = broken_links(&directory).unwrap();
        let expected = ["#e", "../index.html#c", "d.html"];
        let expected = expected.map(|link| format!("docs/a.html: the link {link} leads nowhere"));
        assert_eq!(broken, expected);
    }
}
