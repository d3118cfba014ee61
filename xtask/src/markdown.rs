//! Fenced code blocks in Markdown.

use std::ops::Range;

/// A fenced block. An unclosed one extends to the end of the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fence<'a> {
    /// The lines of the block including both fences, counted from 0.
    pub(crate) lines: Range<usize>,
    /// The text after the opening fence.
    pub(crate) info: &'a str,
    /// The lines between the fences.
    pub(crate) code: Vec<&'a str>,
}

/// Returns all fenced blocks of a text, in order.
pub(crate) fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((start, line)) = lines.next() {
        let Some((marker, info)) = opening(line) else {
            continue;
        };
        let mut code = Vec::new();
        let mut end = start + 1;
        for (index, line) in lines.by_ref() {
            end = index + 1;
            if line.trim() == marker {
                break;
            }
            code.push(line);
        }
        found.push(Fence {
            lines: start..end,
            info,
            code,
        });
    }
    found
}

/// Returns the backticks or tildes that open a block in `line`, and the text after
/// them.
fn opening(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let n_signs = line.chars().take_while(|c| *c == sign).count();
    let (marker, info) = line.split_at(n_signs);
    (n_signs >= 3).then(|| (marker, info.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_place_their_words_and_their_code() {
        let text =
            "# T\n\n```rust,no_run\nfn a() {}\n\n```\n~~~\n```\n~~~\n  ````md\n```\n  ````\n";
        let found = fences(text);
        let parts: Vec<_> = found
            .iter()
            .map(|fence| (fence.lines.clone(), fence.info, fence.code.join("\n")))
            .collect();
        let expected = [
            (2..6, "rust,no_run", "fn a() {}\n".to_owned()),
            (6..9, "", "```".to_owned()),
            (9..12, "md", "```".to_owned()),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn an_open_block_goes_to_the_end() {
        let found = fences("``\n```\na\nb");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].lines, 1..4);
        assert_eq!(found[0].code, ["a", "b"]);
    }
}
