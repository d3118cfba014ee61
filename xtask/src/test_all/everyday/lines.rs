//! Extracts command lines from the files of a package.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;

/// Maximum length. Longer lines are programs, not commands.
const MAX_BYTES: usize = 500;

/// Words that begin or end a construct of several lines.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "function", "select", "in", "{", "}", "(", ")", ";;",
];

/// Adds the command lines in all files below `directory`.
pub(super) fn of_directory(directory: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            of_directory(&entry.path(), found)?;
        } else if kind.is_file()
            && let Some(read) = reader(&entry.file_name().to_string_lossy())
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            found.extend(read(&text).into_iter().filter_map(|line| plain(&line)));
        }
    }
    Ok(())
}

/// Returns the reader for a file of this name, if it may contain commands.
fn reader(name: &str) -> Option<fn(&str) -> Vec<String>> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    match (name, extension) {
        ("package.json", _) => Some(package_json),
        (_, Some("sh" | "bash")) => Some(script),
        (_, Some("yml" | "yaml")) => Some(workflow),
        (_, Some("mk")) => Some(makefile),
        _ if name.starts_with("Makefile") || name == "GNUmakefile" => Some(makefile),
        _ if name.starts_with("Dockerfile") => Some(dockerfile),
        _ => None,
    }
}

/// Returns a trimmed line, if it can stand alone.
fn plain(line: &str) -> Option<String> {
    let line = line.trim();
    let first = line.split_whitespace().next()?;
    let last = line.split_whitespace().next_back()?;
    let keyword = KEYWORDS.contains(&first) || KEYWORDS.contains(&last);
    let program = |c: char| c.is_ascii_alphanumeric() || "_./-=\"$".contains(c);
    let opens = ["|", "&&", "||", "\\", "{", "(", ";;"]
        .iter()
        .any(|end| line.ends_with(end));
    // An unclosed quote belongs to text that spans several lines.
    let quotes = |quote: char| line.matches(quote).count().is_multiple_of(2);
    let is_line = !keyword
        && !opens
        && quotes('\'')
        && quotes('"')
        && first.starts_with(|c: char| c.is_ascii_alphabetic() || "./_".contains(c))
        && first.chars().all(program)
        && !line.contains("<<")
        && line.len() <= MAX_BYTES;
    is_line.then(|| line.to_owned())
}

/// Returns the lines, with those that end in a backslash joined to the next.
fn joined(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        match line.strip_suffix('\\') {
            Some(line) => {
                open.push_str(line);
                open.push(' ');
            }
            None => lines.push(std::mem::take(&mut open) + line),
        }
    }
    lines
}

fn package_json(text: &str) -> Vec<String> {
    let package: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = package
        .get("scripts")
        .and_then(|scripts| scripts.as_object());
    let scripts = scripts.into_iter().flat_map(|scripts| scripts.values());
    scripts
        .filter_map(|script| script.as_str().map(str::to_owned))
        .collect()
}

/// Returns the lines of a shell script outside here-documents.
fn script(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut until: Option<String> = None;
    for line in joined(text) {
        if let Some(end) = &until {
            if line.trim() == end {
                until = None;
            }
            continue;
        }
        if let Some((_, tag)) = line.split_once("<<") {
            let tag = tag.trim_start_matches(['-', ' ', '\'', '"', '\\']);
            let end = tag.find(|c: char| !c.is_alphanumeric() && c != '_');
            let tag = tag.get(..end.unwrap_or(tag.len())).unwrap_or_default();
            until = (!tag.is_empty()).then(|| tag.to_owned());
        }
        if !line.trim_start().starts_with('#') {
            lines.push(line);
        }
    }
    lines
}

/// Returns the recipes of a Makefile. Variables of make are replaced by their names.
fn makefile(text: &str) -> Vec<String> {
    let recipes = joined(text);
    let recipes = recipes.iter().filter_map(|line| line.strip_prefix('\t'));
    recipes
        .filter_map(|line| expanded(line.trim_start_matches(['@', '-', '+', ' ', '\t'])))
        .collect()
}

/// Returns a recipe as make would pass it to the shell, or `None` if it calls a
/// function.
fn expanded(line: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let mut chars = after.chars();
        match chars.next()? {
            '$' => text.push('$'),
            open @ ('(' | '{') => {
                let close = if open == '(' { ')' } else { '}' };
                let (name, _) = chars.as_str().split_once(close)?;
                if name.contains([' ', '$', ':']) {
                    return None;
                }
                text.push_str(&name.to_ascii_lowercase());
                chars = chars.as_str().get(name.len() + 1..)?.chars();
            }
            _ => text.push_str("file"),
        }
        rest = chars.as_str();
    }
    text.push_str(rest);
    Some(text)
}

/// Returns the `RUN` instructions of a Dockerfile.
fn dockerfile(text: &str) -> Vec<String> {
    let lines = joined(text);
    let runs = lines.iter().filter_map(|line| line.strip_prefix("RUN "));
    runs.map(str::to_owned).collect()
}

/// Returns the commands of a CI file: after `run:`, and in lists of scripts.
fn workflow(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut block: Option<(usize, bool)> = None;
    for line in joined(text) {
        let indent = line.len() - line.trim_start().len();
        let content = line.trim();
        if let Some((outer, list)) = block {
            let inside = indent > outer || list && indent == outer && content.starts_with("- ");
            if inside || content.is_empty() {
                lines.push(content.strip_prefix("- ").unwrap_or(content).to_owned());
                continue;
            }
            block = None;
        }
        let key = content.strip_prefix("- ").unwrap_or(content);
        match key.split_once(':').map(|(key, value)| (key, value.trim())) {
            Some(("run", "|" | "|-" | ">" | ">-")) => block = Some((indent, false)),
            Some(("run", value)) if !value.is_empty() => lines.push(value.to_owned()),
            Some(("script" | "before_install" | "install" | "before_script", "")) => {
                block = Some((indent, true));
            }
            _ => {}
        }
    }
    lines
        .into_iter()
        .map(|line| {
            let parts = line.split("${{").enumerate().map(|(at, part)| match at {
                0 => part.to_owned(),
                _ => part
                    .split_once("}}")
                    .map_or(String::new(), |(_, rest)| format!("x{rest}")),
            });
            parts.collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Vec<String> {
        let lines = reader(name).unwrap()(text);
        lines.iter().filter_map(|line| plain(line)).collect()
    }

    #[test]
    fn commands_are_found_in_files() {
        for (name, text, expected) in [
            (
                "package.json",
                r#"{"scripts": {"a": "rm -f x && tsc"}}"#,
                &["rm -f x && tsc"][..],
            ),
            (
                "a.sh",
                "#!/bin/sh\nif true; then\n  ls \\\n -l\nfi\n",
                &["ls   -l"],
            ),
            ("a.sh", "cat <<'EOF'\nnot me\nEOF\npwd\n", &["pwd"]),
            (
                "Makefile",
                "a: b\n\t@$(CC) -o $@ $$HOME\n",
                &["cc -o file $HOME"],
            ),
            ("Makefile", "a:\n\trm $(wildcard *.o)\n", &[]),
            ("x.mk", "\techo 'a\n", &[]),
            (
                "ci.yml",
                "- run: make x\n  run: |\n    ls\n    pwd\nother: x\n",
                &["make x", "ls", "pwd"],
            ),
            (
                "ci.yml",
                "script:\n- make ${{ a }}\n- ls\nx: y\n",
                &["make x", "ls"],
            ),
            (
                "Dockerfile",
                "FROM x\nRUN apt-get update\n",
                &["apt-get update"],
            ),
        ] {
            assert_eq!(read(name, text), expected, "{name}");
        }
        assert!(reader("a.py").is_none());
    }
}
