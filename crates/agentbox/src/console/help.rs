//! Help about the console and its tools.

use console_tools::Definitions;

use super::language::{self, SHORT_NAMES};
use super::schema::{self, Field};
use super::show::Screen;
use crate::terminal::{BOLD, CYAN, DIM, safe, wrap};

const EXAMPLES: &[(&str, &str)] = &[
    (
        "read src/main.rs --offset 10",
        "fields in order, or by name: --field value, field=value",
    ),
    (
        "edit a.txt 'old text' new",
        "quotes as in a shell; --replace-all sets a flag",
    ),
    (
        "write a.txt <<EOF",
        "text on lines of its own, up to the line EOF",
    ),
    (
        "run --timeout 60 cargo test",
        "the rest of the line is the command; so is !cargo test",
    ),
    ("glob {\"pattern\": \"*.rs\"}", "JSON, as a model writes it"),
    (
        "!vim a.txt",
        "full-screen programs get your terminal; shell CMD gives it to any, shell alone opens one",
    ),
    (
        "attach bg_1",
        "your terminal for a background shell; Enter ~ . leaves it running",
    ),
];

const KEYS: &str = "\
help TOOL tells a tool's fields, tools lists the tools. Tab completes, the arrow keys \
bring earlier lines back.
Ctrl-C cancels, twice leaves; Ctrl-D and quit leave.";

fn short(tool: &str, tools: &Definitions) -> String {
    let mut names: Vec<&str> = SHORT_NAMES.iter().map(|(short, _)| *short).collect();
    names.retain(|short| *short != tool && language::full_name(short, tools) == tool);
    names.join(", ")
}

/// Lists the tools, one per line.
pub(crate) fn list(tools: &Definitions, screen: Screen) -> String {
    table(tools, screen, screen.width())
}

fn table(tools: &Definitions, screen: Screen, width: Option<usize>) -> String {
    let rows = tools.iter().map(|tool| (tool, short(&tool.name, tools)));
    let rows: Vec<_> = rows.collect();
    let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let name_width = widest(&mut rows.iter().map(|(tool, _)| tool.name.len()));
    let short_width = widest(&mut rows.iter().map(|(_, short)| short.len()));
    let column = 2 + name_width + 2 + short_width + 2;
    let line = |(tool, short): &(&console_tools::Definition, String)| {
        let name = screen.paint(BOLD, &tool.name);
        let gap = " ".repeat(name_width - tool.name.len() + 2);
        let asks = if tool.asks { " (asks)" } else { "" };
        let about = format!("{}{asks}", safe::text(first_sentence(&tool.description)));
        wrap::beside(&format!("  {name}{gap}{short}"), column, &about, width)
    };
    if rows.is_empty() {
        return "No tool is offered here.\n".to_owned();
    }
    rows.iter().map(line).collect()
}

pub(crate) fn all(all: &Definitions, screen: Screen) -> String {
    let width = screen.width();
    let mut text = "Type a tool's name and its fields:\n".to_owned();
    let widest = EXAMPLES.iter().map(|(typed, _)| typed.len()).max();
    let column = widest.unwrap_or(0) + 4;
    for (typed, about) in EXAMPLES {
        text.push_str(&wrap::beside(&format!("  {typed}"), column, about, width));
    }
    let keys = wrap::lines(KEYS, width);
    format!("{text}{keys}\n\n{}", list(all, screen))
}

/// Returns the help of a tool, or `None` if there is no such tool.
pub(crate) fn tool(name: &str, tools: &Definitions, screen: Screen) -> Option<String> {
    let definition = tools.get(language::full_name(name, tools))?;
    let fields = schema::fields(definition);
    let mut usage = definition.name.clone();
    for field in fields.iter().filter(|field| field.is_positional()) {
        usage.push(' ');
        usage.push_str(&field.usage());
    }
    let mut text = screen.paint(BOLD, &usage);
    let short = short(&definition.name, tools);
    if !short.is_empty() {
        text.push_str(&screen.paint(DIM, &format!("   ({short})")));
    }
    text = wrap::lines(&text, screen.width());
    text.push('\n');
    for field in &fields {
        text.push_str(&about(field, screen));
    }
    text.push('\n');
    let description = safe::text(definition.description.trim_end());
    text.push_str(&wrap::lines(&description, screen.width()));
    text.push('\n');
    Some(text)
}

fn about(field: &Field, screen: Screen) -> String {
    let mut kind = if field.choices.is_empty() {
        field.kind.name()
    } else {
        field.choices.join(" | ")
    };
    if field.required {
        kind.push_str(", required");
    }
    // Most descriptions mention the default themselves.
    if let Some(default) = &field.default
        && !field.description.contains("Default:")
    {
        kind.push_str(&format!(", default {default}"));
    }
    let name = screen.paint(CYAN, &format!("--{}", field.name.replace('_', "-")));
    let kind = screen.paint(DIM, &safe::text(&kind));
    let description = safe::text(&field.description.replace('\n', " "));
    let text = format!("  {name}  {kind}\n      {description}\n");
    wrap::lines(&text, screen.width())
}

/// Returns the first sentence of a description, on one line.
pub(crate) fn first_sentence(text: &str) -> &str {
    let line = text.trim_start().lines().next().unwrap_or_default();
    match line.find(". ") {
        Some(end) => line.get(..=end).unwrap_or(line),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::super::language::tests::tools;
    use super::*;

    const PLAIN: Screen = Screen::new(false, false);

    #[test]
    fn every_tool_and_field_is_explained() {
        let tools = tools();
        let overview = all(&tools, PLAIN);
        for definition in tools.iter() {
            assert!(
                overview.contains(&format!("  {} ", definition.name)),
                "{overview}"
            );
            let text = tool(&definition.name, &tools, PLAIN).unwrap();
            for field in schema::fields(definition) {
                assert!(
                    text.contains(&format!("--{}", field.name.replace('_', "-"))),
                    "{text}"
                );
                assert!(!field.description.is_empty(), "{text}");
            }
        }
        let text = tool("read", &tools, PLAIN).unwrap();
        assert!(
            text.starts_with("read_file PATH [OFFSET] [LIMIT]   (read, cat)\n"),
            "{text}"
        );
        assert!(text.contains("--path  text, required"), "{text}");
        assert_eq!(tool("nothing", &tools, PLAIN), None);
    }

    #[test]
    fn the_table_is_aligned_at_every_width() {
        let tools = tools();
        let coloured = Screen::new(false, true);
        for width in [None, Some(120), Some(80), Some(40), Some(10)] {
            let text = table(&tools, PLAIN, width);
            let starts = tools.iter().map(|tool| {
                let about = first_sentence(&tool.description);
                let word = about.split(' ').next().unwrap();
                let mut lines = text.lines();
                let mine = lines.find(|line| line.starts_with(&format!("  {} ", tool.name)));
                match mine {
                    Some(line) if width.is_none_or(|width| width >= 80) => {
                        line.rfind(&format!("  {word}"))
                    }
                    _ => None,
                }
            });
            let starts: std::collections::BTreeSet<Option<usize>> = starts.collect();
            assert_eq!(starts.len(), 1, "{width:?}: {starts:?}\n{text}");
            let longest = text.lines().map(|line| line.chars().count()).max();
            let fits = width.is_none_or(|width| width < 40 || longest.unwrap() <= width);
            assert!(fits, "{width:?}: {text}");
            let colours = table(&tools, coloured, width);
            assert_eq!(colours.replace("\x1b[1m", "").replace("\x1b[0m", ""), text);
        }
    }
}
