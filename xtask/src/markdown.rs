//! Fenced code blocks and links in Markdown.

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

/// Returns the lines outside fenced code, with their index.
pub(crate) fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let fences = fences(text);
    let is_prose = move |index| !fences.iter().any(|fence| fence.lines.contains(&index));
    let lines = text.lines().enumerate();
    lines.filter(move |(index, _)| is_prose(*index))
}

/// Returns the targets of `[text](target)`, `![text](target)` and `[label]: target` in
/// one line.
pub(crate) fn link_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut is_code = false;
    let mut rest = line;
    while let Some(index) = rest.find(['`', ']']) {
        let is_backtick = rest[index..].starts_with('`');
        rest = &rest[index + 1..];
        if is_backtick {
            is_code = !is_code;
        } else if let Some(link) = rest.strip_prefix('(').filter(|_| !is_code) {
            targets.extend(link.split_once(')').map(|(target, _)| destination(target)));
        }
    }
    if let Some(definition) = line.strip_prefix('[') {
        targets.extend(
            definition
                .split_once("]: ")
                .map(|(_, target)| destination(target)),
        );
    }
    targets
}

/// Returns a target without its title and without angle brackets.
fn destination(target: &str) -> &str {
    let target = target.trim();
    match target
        .strip_prefix('<')
        .and_then(|target| target.split_once('>'))
    {
        Some((target, _)) => target,
        None => target.split_whitespace().next().unwrap_or_default(),
    }
}

/// Whether a target is not a web address, an anchor in the same file, or an item that
/// rustdoc resolves.
pub(crate) fn is_relative(target: &str) -> bool {
    !target.starts_with('#') && !target.contains(':')
}

/// Returns the path of `target` from the root of the repository, or `None` if it is
/// outside.
pub(crate) fn resolve(dir: &str, target: &str) -> Option<String> {
    let (path, _) = target.split_once('#').unwrap_or((target, ""));
    let mut parts: Vec<&str> = if path.starts_with('/') {
        Vec::new()
    } else {
        dir.split('/').collect()
    };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().filter(|part| !part.is_empty())?),
            _ => parts.push(part),
        }
    }
    Some(
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("/"),
    )
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
