//! Compares `docs/options.md` with the settings that there are.
//!
//! `UPDATE_REFERENCE=1` in the environment rewrites the tables. Meanings, examples and the
//! defaults of sandboxes stay as they are written there; a new setting gets an empty meaning,
//! with which the test fails.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::CommandFactory as _;
use toml::{Table, Value};

use super::Cli;
use crate::config::{Config, Setting, default_table, settings};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");

/// Begins the comment above a table, which ends with the beginning of the keys in it.
const MARK: &str = "<!-- settings: ";

/// The settings with flags: the key, the command that has the flag, the flag.
const FLAGS: &[(&str, &str, &str)] = &[
    ("backend", "", "backend"),
    ("config", "", "config"),
    ("edit_format", "", "edit-format"),
    ("local.allowed_directories", "", "allow-dir"),
    ("log", "", "log"),
    ("mcp.http", "mcp", "http"),
    ("mcp.mark_failures", "mcp", "mark-failures"),
    ("mcp.no_token", "mcp", "no-token"),
    ("mcp.origins", "mcp", "origin"),
    ("mcp.structured", "mcp", "structured"),
    ("mcp.token_file", "mcp", "token-file"),
    ("mcp.workspaces", "mcp", "workspaces"),
    ("permissions", "", "permissions"),
    ("profile", "", "profile"),
    ("require_enforcement", "", "require-enforcement"),
    ("run.timeout", "run", "timeout"),
];

/// The cells of a row that the page alone knows.
#[derive(Debug, Clone, Default)]
struct Written {
    default: String,
    example: String,
    meaning: String,
}

/// Returns what is written about each setting.
fn written(page: &str) -> BTreeMap<String, Written> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let (key, _) = row.split_once('`')?;
        let cells = row.strip_suffix(" |")?.split(" | ").skip(1);
        let mut cells = cells.map(|cell| cell.trim().to_owned());
        let mut next = || cells.next().unwrap_or_default();
        let written = Written {
            default: next(),
            example: next(),
            meaning: next(),
        };
        Some((key.to_owned(), written))
    })
    .collect()
}

/// Whether a table contains a setting.
fn is_in(key: &str, prefix: &str) -> bool {
    let (table, _) = key.rsplit_once('.').unwrap_or_default();
    match prefix.strip_suffix('.') {
        Some(wanted) => table == wanted,
        None => ["", "mcp", "run"].contains(&table),
    }
}

fn row(setting: &Setting, defaults: &Table, written: Option<&Written>) -> String {
    let Setting { key, variable, .. } = setting;
    let flag = FLAGS.iter().find(|(of, ..)| of == key);
    let flag = flag.map_or(String::new(), |(.., flag)| format!(" `--{flag}`"));
    let mut cells = written.cloned().unwrap_or_default();
    if let Some(same) = &setting.alias_of {
        if cells.meaning.is_empty() {
            cells.meaning = format!("the same as `{same}`");
        }
    } else if key.starts_with("options.") {
        let value = key
            .split('.')
            .try_fold(None, |above: Option<&Value>, part| {
                let table = above.map_or(Some(defaults), Value::as_table)?;
                Some(Some(table.get(part)?))
            });
        cells.default = match value.flatten() {
            Some(Value::Table(table)) if table.is_empty() => "none".to_owned(),
            Some(value) => format!("`{value}`"),
            None => String::new(),
        };
    }
    let Written {
        default,
        example,
        meaning,
    } = cells;
    format!("| `{key}`{flag}<br>`{variable}` | {default} | {example} | {meaning} |")
}

/// Renders the page with tables that are right.
fn rendered(page: &str) -> String {
    let (written, settings, defaults) = (written(page), settings(), default_table());
    let mut text = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let _ = writeln!(text, "{line}");
        let Some(prefix) = line.strip_prefix(MARK) else {
            continue;
        };
        let prefix = prefix.trim_end_matches("-->").trim();
        for _ in 0..2 {
            let _ = writeln!(text, "{}", lines.next().unwrap_or_default());
        }
        while lines.next_if(|line| line.starts_with('|')).is_some() {}
        for setting in settings.iter().filter(|one| is_in(&one.key, prefix)) {
            let row = row(setting, &defaults, written.get(&setting.key));
            let _ = writeln!(text, "{row}");
        }
    }
    text
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the test can write its page anew"
)]
fn the_page_of_options_is_current() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let current = rendered(&page);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(PAGE, &current).unwrap();
    } else {
        assert!(
            page == current,
            "run this test with UPDATE_REFERENCE=1 and look at the change"
        );
    }
    for Setting { key, .. } in settings() {
        let shown = written(&current);
        let shown = shown.get(&key);
        let shown = shown.unwrap_or_else(|| panic!("{key} is in no table of docs/options.md"));
        let is_said = !shown.meaning.is_empty() || key.starts_with("options.");
        assert!(is_said, "docs/options.md does not say what {key} means");
    }
}

#[test]
fn every_flag_of_the_page_exists() {
    let cli = Cli::command();
    for (key, command, flag) in FLAGS {
        let of = match *command {
            "" => &cli,
            command => cli.find_subcommand(command).unwrap(),
        };
        let is_there = of.get_arguments().any(|one| one.get_long() == Some(flag));
        assert!(is_there, "{key}: --{flag}");
    }
}

#[test]
fn every_example_of_the_page_is_accepted() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut file = String::new();
    for (key, written) in written(&page) {
        if let Some(example) = written.example.strip_prefix('`') {
            let _ = writeln!(file, "{key} = {}", example.trim_end_matches('`'));
        }
    }
    assert!(file.lines().count() > 100, "{file}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    std::fs::write(&path, &file).unwrap();
    let config = Config::load(Table::new(), Some(path), std::iter::empty());
    let config = config.unwrap_or_else(|error| panic!("{error}\n{file}"));
    assert_eq!(config.run.timeout, Some(600.0));
    assert_eq!(config.mcp.max_sessions, Some(64));
}
