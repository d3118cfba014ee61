//! Transcripts and files in pages of `docs/`.

use std::path::Path;

/// Returns the lines of each `console` block of a page.
pub(crate) fn transcripts(page: &str) -> Vec<Vec<String>> {
    let lines = |block: String| block.lines().map(str::to_owned).collect();
    blocks(page, "console").into_iter().map(lines).collect()
}

/// Returns each block of a page in this language.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = std::fs::read_to_string(docs.join(page)).unwrap();
    let begin = format!("```{language}\n");
    let blocks = text.split(&begin).skip(1);
    let content = |block: &str| block.split("```").next().unwrap().to_owned();
    blocks.map(content).collect()
}
