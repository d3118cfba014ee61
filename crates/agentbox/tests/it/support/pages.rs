//! Transcripts in pages of `docs/`.

use std::path::Path;

/// Returns the lines of each `console` block of a page.
pub(crate) fn transcripts(page: &str) -> Vec<Vec<String>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = std::fs::read_to_string(docs.join(page)).unwrap();
    let blocks = text.split("```console\n").skip(1);
    let lines = |block: &str| {
        block
            .split("```")
            .next()
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    };
    blocks.map(lines).collect()
}
