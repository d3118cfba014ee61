//! Text about the tools for a system prompt.

use permissions::tool::Tool;

use crate::definition::Definitions;
use crate::options::{Options, Profile};

/// The file tools that the prompt mentions.
const FILES: &[&str] = &[
    "ls",
    "list_files",
    "glob",
    "grep",
    "read_file",
    "write_file",
    "edit_file",
    "hashline_edit",
    "delete_file",
    "move_file",
    "copy_file",
];

/// Returns a heading and a few sentences about the available tools, if there are any.
pub(crate) fn fragment(options: &Options, definitions: &Definitions) -> String {
    let there = |name: &&str| definitions.get(name).is_some();
    let files: Vec<&str> = FILES.iter().copied().filter(there).collect();
    let (runs, background) = (there(&"execute"), there(&"run_in_background"));
    let names = definitions.iter().map(|tool| tool.name.as_str());
    let is_custom = |name: &&str| name.parse::<Tool>().is_err();
    let custom: Vec<&str> = names.filter(is_custom).collect();

    let mut parts = Vec::new();
    if !files.is_empty() {
        parts.push(format!("Work with files through {}.", listed(&files)));
    }
    match (runs, background) {
        (true, true) => parts.push(
            "Run commands with `execute`, and those that keep running with `run_in_background`."
                .to_owned(),
        ),
        (true, false) => parts.push("Run commands with `execute`.".to_owned()),
        (false, true) => parts.push("Run commands with `run_in_background`.".to_owned()),
        (false, false) => {}
    }
    if !custom.is_empty() {
        parts.push(format!("There is also {}.", listed(&custom)));
    }
    if parts.is_empty() {
        return String::new();
    }
    let by_hash = there(&"hashline_edit");
    if by_hash {
        parts.push(
            "`read_file` shows each line as `number:hash|text`; \
             `hashline_edit` names lines by number and hash."
                .to_owned(),
        );
    }
    if definitions.iter().any(|definition| definition.asks) {
        parts.push("Some calls need approval.".to_owned());
    }
    parts.push("Each tool's description says how to use it.".to_owned());
    let heading = match options.profile {
        _ if by_hash => "## Console tools: edits by line hash",
        Profile::Filesystem => "## File tools",
        Profile::Coding | Profile::Lean => "## Console tools",
    };
    format!("{heading}\n\n{}", parts.join(" "))
}

fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, before)) if !before.is_empty() => {
            format!("{} and {last}", before.join(", "))
        }
        _ => quoted.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::{Annotations, Definition};

    fn prompt(names: &[&str], asks: bool) -> String {
        let definitions = names.iter().map(|name| {
            let mut definition = Definition::new(*name, "", json!({}), Annotations::of(&[]));
            definition.asks = asks;
            definition
        });
        fragment(
            &Options::default(),
            &Definitions::new(definitions.collect()),
        )
    }

    #[test]
    fn only_what_is_there_is_named() {
        assert_eq!(prompt(&[], false), "");
        assert_eq!(
            prompt(&["ls", "read_file", "edit_file", "execute"], false),
            "## Console tools\n\nWork with files through `ls`, `read_file` and `edit_file`. \
             Run commands with `execute`. Each tool's description says how to use it."
        );
        assert_eq!(
            prompt(&["read_file", "hashline_edit", "send_mail"], true),
            "## Console tools: edits by line hash\n\n\
             Work with files through `read_file` and `hashline_edit`. \
             There is also `send_mail`. `read_file` shows each line as `number:hash|text`; \
             `hashline_edit` names lines by number and hash. \
             Some calls need approval. \
             Each tool's description says how to use it."
        );
    }
}
