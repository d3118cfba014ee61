//! Checks that tables of `docs/` say what the code says.

use std::collections::BTreeMap;

use backend_core::{Error, ErrorKind};
use console_tools::{Options, ToolError};

const TOOLS: &str = include_str!("../../docs/tools.md");
const LIMITS: &str = include_str!("../../docs/limits.md");
const ERRORS: &str = include_str!("../../docs/errors.md");

/// Returns the cells of each row of the table under this heading, by the first cell, a name.
fn table(page: &str, heading: &str) -> BTreeMap<String, Vec<String>> {
    let table = page.split_once(heading).expect("the table is there").1;
    let lines = table.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = lines.skip(1).take_while(|row| row.starts_with('|'));
    let cells = rows.map(|row| {
        let cells = row.trim_matches('|').split('|');
        let mut cells = cells.map(|cell| cell.trim().to_owned());
        let name = cells.next().expect("a first cell");
        (name.trim_matches('`').to_owned(), cells.collect())
    });
    cells.collect()
}

/// Returns the second cell of each row.
fn rows(page: &str, heading: &str) -> BTreeMap<String, String> {
    let rows = table(page, heading).into_iter();
    rows.map(|(name, cells)| (name, cells.into_iter().next().unwrap_or_default()))
        .collect()
}

#[test]
fn the_guide_shows_the_example() {
    let guide = include_str!("../../docs/custom-backend.md");
    let example = include_str!("../custom_backend.rs");
    let (_, code) = example.split_once("\n\n").expect("code after the header");
    assert!(
        guide.contains(&format!("```rust\n{code}```\n")),
        "copy the example's code"
    );
}

#[test]
fn the_table_of_options_is_true() {
    let mut options = serde_json::to_value(Options::default()).unwrap();
    let fields = options.as_object_mut().unwrap();
    fields.remove("limits");
    fields.remove("descriptions");
    let defaults = fields
        .iter()
        .map(|(name, value)| (name.clone(), format!("`{value}`")));
    assert_eq!(rows(TOOLS, "| option | default |"), defaults.collect());
}

#[test]
fn the_table_of_errors_is_true() {
    let mut documented = table(ERRORS, "## Kinds");
    // The message of a wrong name has all the right ones.
    let wrong = serde_json::from_str::<ErrorKind>("\"-\"").unwrap_err();
    let wrong = wrong.to_string();
    let (_, names) = wrong.split_once("one of ").expect("the names");
    for name in names.split('`').skip(1).step_by(2) {
        let kind: ErrorKind = serde_json::from_value(name.into()).unwrap();
        let cells = documented.remove(name).unwrap_or_default();
        let [_, _, later, class] = &cells[..] else {
            panic!("{name} is not documented: {cells:?}");
        };
        let error = Error::new(kind, "x");
        let is_later = if error.is_retryable() { "yes" } else { "no" };
        assert_eq!(later, is_later, "{name}");
        let given = ToolError::from(error).class();
        assert_eq!(*class, format!("`{given:?}`"), "{name}");
    }
    assert_eq!(documented, BTreeMap::new(), "kinds that there are not");
}

#[test]
fn the_limits_of_tools_are_true() {
    let limits = serde_json::to_value(Options::default().limits).unwrap();
    let limits = limits.as_object().unwrap().iter();
    let defaults = limits.map(|(name, value)| (name.clone(), shown(name, &value.to_string())));
    assert_eq!(rows(LIMITS, "## Tools"), defaults.collect());
}

#[test]
fn the_limits_with_names_are_true() {
    let core = include_str!("../../crates/backend-core/src/limits.rs");
    assert_eq!(rows(LIMITS, "## Every backend"), constants(core));
    let approval = include_str!("../../crates/permissions/src/approval/limits.rs");
    assert_eq!(
        rows(LIMITS, "## Questions and answers"),
        constants(approval)
    );
}

#[test]
fn the_limits_of_settings_are_true() {
    let state = constants(include_str!(
        "../../crates/backend-state/src/backend/builder.rs"
    ));
    let docker = constants(include_str!("../../crates/backend-docker/src/settings.rs"));
    let k8s = constants(include_str!("../../crates/backend-k8s/src/settings.rs"));
    let sessions = constants(include_str!("../../crates/sessions/src/builder.rs"));
    let mut of_builders = rows(LIMITS, "## Backends and sandboxes");
    for (setting, constants, name) in [
        ("StateBuilder::max_file_bytes", &state, "FILE_BYTES"),
        ("StateBuilder::max_total_bytes", &state, "TOTAL_BYTES"),
        ("DockerBuilder::memory", &docker, "DEFAULT_MEMORY"),
        ("DockerBuilder::pids_limit", &docker, "DEFAULT_PIDS"),
        ("K8sBuilder::memory", &k8s, "DEFAULT_MEMORY"),
        ("K8sBuilder::request_memory", &k8s, "DEFAULT_REQUEST_MEMORY"),
        ("K8sBuilder::request_cpus", &k8s, "DEFAULT_REQUEST_CPUS"),
        (
            "SessionManagerBuilder::idle_timeout",
            &sessions,
            "IDLE_TIMEOUT",
        ),
    ] {
        let documented = of_builders.remove(setting);
        assert_eq!(documented.as_ref(), constants.get(name), "{setting}");
    }
    of_builders.retain(|_, default| default != "none");
    assert_eq!(of_builders, BTreeMap::new(), "settings without a constant");
    let mcp = include_str!("../../crates/console-mcp/src/settings.rs");
    for (setting, default) in rows(LIMITS, "## MCP server") {
        let mut fields = mcp.lines().filter_map(|line| {
            let value = line.trim().strip_prefix(&*setting)?.strip_prefix(": ")?;
            value.strip_suffix(',')
        });
        let value = fields.next().expect("the setting has a default");
        assert_eq!(default, shown(&setting, value), "{setting}");
    }
}

/// Returns the public constants of a source file, as a page shows them.
fn constants(source: &str) -> BTreeMap<String, String> {
    let lines = source.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("pub const ")?.split_once(": ")?;
        let value = rest.split_once(" = ")?.1.strip_suffix(';')?;
        Some((name.to_owned(), shown(name, value)))
    });
    lines.collect()
}

/// Returns a value of the code as a page shows it: sizes with a unit, times in seconds.
fn shown(name: &str, code: &str) -> String {
    let name = name.to_lowercase();
    if let Some(text) = code.strip_prefix('"') {
        return format!("`{}`", text.trim_end_matches('"'));
    }
    for (of, unit) in [("from_secs(", "s"), ("from_millis(", "ms")] {
        if let Some((_, time)) = code.split_once(of) {
            return format!("{} {unit}", product(time.trim_end_matches(')')));
        }
    }
    if code.contains('.') {
        return code.to_owned();
    }
    let (all, less) = code.split_once(" - ").unwrap_or((code, "0"));
    let number = product(all) - product(less);
    let is_size = name.contains("bytes") || name.contains("memory");
    for (power, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if is_size && number.is_multiple_of(1 << power) {
            return format!("{} {unit}", number >> power);
        }
    }
    number.to_string()
}

fn product(code: &str) -> u64 {
    let factors = code.split(" * ").map(|factor| factor.replace('_', ""));
    factors
        .map(|factor| factor.parse::<u64>().expect("a number"))
        .product()
}
