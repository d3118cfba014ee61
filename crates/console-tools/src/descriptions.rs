//! The descriptions of the tools, as sent to the model.
//!
//! A description is sent with every request, so each word costs. The lean profile says
//! what a tool does and what is surprising about it. The coding profile adds what it
//! returns and how to use it well.

mod console;
mod filesystem;

use std::sync::Arc;

use permissions::tool::Tool;
use serde_json::Value;

use crate::options::{EditFormat, Options, Profile};
use crate::tool::Definition;

/// The texts about a tool. Placeholders in braces are replaced with numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Text {
    /// The effect of the tool.
    summary: &'static str,
    /// Surprising behaviour.
    usage: &'static str,
    /// Advice for using it well.
    coding: &'static str,
    /// The result.
    returns: &'static str,
}

/// Sets the description of a tool and its arguments for the profile and options in use.
pub(crate) fn describe(definition: &mut Definition, tool: Tool, options: &Options) {
    definition.description = description(tool, options);
    definition.blocks = media_note(tool, options).is_some();
    // Tools of all options share a schema that says the same for all of them.
    if has_placeholder(&definition.input_schema) {
        fill(Arc::make_mut(&mut definition.input_schema), options);
    }
}

/// Returns the description of a tool for the profile and options in use.
pub(crate) fn description(tool: Tool, options: &Options) -> String {
    let text = match options.profile {
        Profile::Coding | Profile::Lean => console::text(tool, options.edit_format),
        Profile::Filesystem => filesystem::text(tool),
    };
    let coding = options.profile == Profile::Coding;
    let mut parts = vec![text.summary, text.usage];
    if tool == Tool::Execute && options.include_background {
        parts.push("For commands that keep running use run_in_background.");
    }
    parts.extend(media_note(tool, options));
    if coding {
        parts.extend([text.returns, text.coding]);
    }
    parts.retain(|part| !part.is_empty());
    let text = parts.join(" ");
    if text.contains('{') {
        filled(&text, options)
    } else {
        text
    }
}

/// Returns `true` if a text in a schema has a brace, as placeholders do.
fn has_placeholder(schema: &Value) -> bool {
    match schema {
        Value::String(text) => text.contains('{'),
        Value::Array(items) => items.iter().any(has_placeholder),
        Value::Object(parts) => parts.values().any(has_placeholder),
        _ => false,
    }
}

/// Fills the numbers of the options into the descriptions of a schema's fields.
/// Recurses as deep as the schema of the type, which is bounded.
fn fill(schema: &mut Value, options: &Options) {
    let Some(parts) = schema.as_object_mut() else {
        return;
    };
    for (name, part) in parts {
        match (name.as_str(), part) {
            ("description", Value::String(text)) if text.contains('{') => {
                *text = filled(text, options);
            }
            ("properties", Value::Object(fields)) => {
                fields.values_mut().for_each(|field| fill(field, options));
            }
            ("items", items) => fill(items, options),
            _ => {}
        }
    }
}

/// Describes the formats besides text that `read_file` shows.
fn media_note(tool: Tool, options: &Options) -> Option<&'static str> {
    let reads = tool == Tool::ReadFile && options.profile != Profile::Filesystem;
    match (reads, options.image_support, options.document_support) {
        (true, true, true) => Some("Pictures and PDF files are shown as such."),
        (true, true, false) => Some("Pictures are shown as such."),
        (true, false, true) => Some("PDF files are shown as such."),
        _ => None,
    }
}

fn filled(text: &str, options: &Options) -> String {
    let limits = &options.limits;
    let ends = if options.continues_in_background() {
        "continues as a background shell"
    } else {
        "is ended"
    };
    let edit = match options.edit_format {
        EditFormat::Hashline => Tool::HashlineEdit,
        EditFormat::StrReplace => Tool::EditFile,
    };
    let ignore_hidden = options.default_ignore_hidden.to_string();
    text.replace("{edit}", edit.name())
        .replace("{ends}", ends)
        .replace("{ignore_hidden}", &ignore_hidden)
        .replace("{read_lines}", &limits.read_lines.to_string())
        .replace("{glob_files}", &limits.glob_files.to_string())
        .replace("{grep_results}", &limits.grep_results.to_string())
        .replace("{grep_line_chars}", &limits.grep_line_chars.to_string())
        .replace("{execute_seconds}", &limits.execute_seconds.to_string())
        .replace("{output_bytes}", &limits.output_bytes.to_string())
        .replace("{ls_entries}", &limits.ls_entries.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(profile: Profile) -> usize {
        let options = Options {
            profile,
            include_file_operations: true,
            ..Options::default()
        };
        let wanted = |tool: &&Tool| crate::toolset::is_enabled(**tool, &options);
        let all = Tool::ALL.iter().filter(wanted);
        all.map(|tool| description(*tool, &options).split_whitespace().count())
            .sum()
    }

    #[test]
    fn every_tool_has_a_text_and_no_brace_is_left() {
        for profile in [Profile::Coding, Profile::Lean, Profile::Filesystem] {
            for edit_format in [EditFormat::StrReplace, EditFormat::Hashline] {
                let options = Options {
                    profile,
                    edit_format,
                    image_support: true,
                    timeout_to_background: true,
                    ..Options::default()
                };
                for tool in Tool::ALL {
                    if !crate::toolset::is_enabled(*tool, &options) {
                        continue;
                    }
                    let text = description(*tool, &options);
                    assert!(text.ends_with('.'), "{tool}: {text}");
                    assert!(!text.contains(['{', '}']), "{tool}: {text}");
                    assert!(!text.contains("  "), "{tool}: {text}");
                }
            }
        }
    }

    #[test]
    fn the_lean_profile_is_lean() {
        let (coding, lean) = (words(Profile::Coding), words(Profile::Lean));
        assert!(lean * 3 < coding * 2, "{lean} of {coding} words");
        assert!(coding < 900, "{coding} words");
        assert!(words(Profile::Filesystem) < 250);
    }

    #[test]
    fn options_show() {
        let mut options = Options::default();
        let read = |options: &Options| description(Tool::ReadFile, options);
        assert!(!read(&options).contains("Pictures"));
        options.image_support = true;
        assert!(read(&options).contains("Pictures are shown"));
        options.edit_format = EditFormat::Hashline;
        assert!(read(&options).contains("number:hash|"));
        options.limits.execute_seconds = 7;
        let execute = |options: &Options| description(Tool::Execute, options);
        assert!(execute(&options).contains("is ended after 7 seconds"));
        options.timeout_to_background = true;
        assert!(execute(&options).contains("continues as a background shell after 7 seconds"));
        // Without background tools the model could not follow it.
        options.include_background = false;
        assert!(execute(&options).contains("is ended after 7 seconds"));
        assert!(!execute(&options).contains("background"));
    }
}
