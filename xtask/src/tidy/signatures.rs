//! The plain signatures of async traits. For a method under `#[async_trait]`, rustdoc
//! shows a boxed future with extra lifetimes. So the doc of each public trait repeats
//! its async methods as written, in a `text` block, and this rule checks that both
//! agree.

use crate::tidy::files::TextFile;
use crate::tidy::findings::Finding;
use crate::tidy::sources::is_test_source;

/// Reports every public async trait whose doc does not list its methods.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    if is_test_source(&file.path) {
        return Vec::new();
    }
    let lines: Vec<_> = file.text.lines().collect();
    let found = lines.iter().enumerate().filter_map(|(index, line)| {
        let name = line.strip_prefix("pub trait ")?;
        let doc = doc_of_async_trait(&lines[..index])?;
        let written = signatures(lines[index..].iter().take_while(|line| **line != "}"));
        if shown(&doc) == written {
            return None;
        }
        let name = name.split([':', ' ', '<']).next().unwrap_or_default();
        let message = format!(
            "the doc of `{name}` needs a `text` block with its async methods:\n{}",
            written.join("\n")
        );
        Some(Finding::error(&file.path, message).at(index))
    });
    found.collect()
}

/// Returns the doc comment at the end of `before`, or `None` if there is no
/// `#[async_trait]` with it.
fn doc_of_async_trait<'a>(before: &[&'a str]) -> Option<Vec<&'a str>> {
    let above = before.iter().rev();
    let above = above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
    let (doc, attributes): (Vec<_>, Vec<_>) = above.partition(|line| line.starts_with("///"));
    attributes.contains(&"#[async_trait]").then(|| {
        let doc = doc.into_iter().rev();
        doc.map(|line| line.trim_start_matches("///")).collect()
    })
}

/// Returns the signatures in the `text` blocks of a doc comment.
fn shown(doc: &[&str]) -> Vec<String> {
    let mut inside = false;
    signatures(doc.iter().filter(|line| {
        let line = line.trim();
        if line.starts_with("```") {
            inside = line == "```text";
        }
        inside
    }))
}

/// Returns every `async fn` on one line, without its body.
fn signatures<'a>(lines: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in lines.map(|line| line.trim()) {
        if line.starts_with("async fn ") {
            found.push(String::new());
            is_open = true;
        }
        if !is_open {
            continue;
        }
        let Some(signature) = found.last_mut() else {
            continue;
        };
        if !signature.is_empty() && !signature.ends_with('(') && !line.starts_with(')') {
            signature.push(' ');
        }
        is_open = !line.ends_with([';', '{']);
        signature.push_str(line.trim_end_matches([';', '{']).trim_end());
        if !is_open {
            *signature = format!("{};", signature.replace(",)", ")"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::findings::shown;
    use crate::tidy::text_file;

    fn found(doc: &str) -> Vec<String> {
        let text = format!(
            "/// A door.\n{doc}#[async_trait]\npub trait Door: Send {{\n    /// Opens.\n    \
             async fn open(\n        &self,\n        key: Key,\n    ) -> Result<()>;\n\n    \
             fn id(&self) -> u8;\n\n    async fn shut(&self) {{\n        self.id();\n    }}\n}}\n"
        );
        shown(&check(&text_file("crates/a/src/door.rs", &text)))
    }

    const BOTH: &str = "async fn open(&self, key: Key) -> Result<()>;\nasync fn shut(&self);";

    #[test]
    fn the_doc_has_every_async_method() {
        let block = |body: &str| {
            let body = body.replace('\n', "\n/// ");
            format!("///\n/// ```text\n/// {body}\n/// ```\n")
        };
        assert_eq!(found(&block(BOTH)), [""; 0]);
        let wrapped = "async fn open(\n    &self,\n    key: Key,\n) -> Result<()>;\n\
                       async fn shut(&self);";
        assert_eq!(found(&block(wrapped)), [""; 0]);
        let message = format!(
            "crates/a/src/door.rs:3: error: the doc of `Door` needs a `text` block with its \
             async methods:\n{BOTH}"
        );
        assert_eq!(found(""), [message]);
        let first = BOTH.lines().next().unwrap_or_default();
        assert_eq!(found(&block(first)).len(), 1);
        assert_eq!(
            found(&block(&BOTH.replace("key: Key", "key: &Key"))).len(),
            1
        );
        assert_eq!(found(&block(BOTH).replace("text", "ignore")).len(), 1);
    }

    #[test]
    fn other_traits_need_none() {
        let private = "#[async_trait]\npub(crate) trait Door {\n    async fn open(&self);\n}\n";
        let plain = "pub trait Door {\n    async fn open(&self);\n}\n";
        let of_tests = "#[async_trait]\npub trait Door {\n    async fn open(&self);\n}\n";
        for (path, text) in [
            ("crates/a/src/door.rs", private),
            ("crates/a/src/door.rs", plain),
            ("crates/a/tests/it/door.rs", of_tests),
        ] {
            assert_eq!(check(&text_file(path, text)), []);
        }
    }
}
