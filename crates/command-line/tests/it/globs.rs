//! Compares bracket expressions with the shells of this machine.

use std::process::Command;

use backend_core::VPath;
use command_line::glob::glob_could_name;
use command_line::{CommandContext, analyze};

/// Contents of the brackets, combined in every order.
const TOKENS: &str = r#"n x a-z - ! ^ ] [ \] "!" 'n' "-" [:alpha:] [:x:] [.n.] [=n=]"#;

fn patterns() -> Vec<String> {
    let mut inner = vec![String::new()];
    let mut from = 0;
    for _ in 0..3 {
        let starts = inner.get(from..).unwrap_or_default().to_vec();
        from = inner.len();
        for start in starts {
            inner.extend(TOKENS.split(' ').map(|token| format!("{start}{token}")));
        }
    }
    inner.iter().map(|inner| format!(".e[{inner}]v")).collect()
}

/// Returns the names that each pattern expands to, or `None` if that shell is not
/// installed.
fn expanded(shell: &str, patterns: &[String], directory: &std::path::Path) -> Option<Vec<String>> {
    let script: String = patterns
        .iter()
        .map(|pattern| format!("printf '%s ' {pattern}; echo\n"))
        .collect();
    let file = directory.join("script");
    std::fs::write(&file, script).unwrap();
    let output = Command::new(shell)
        .arg(&file)
        .current_dir(directory)
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn what_a_shell_expands_a_bracket_to_is_named() {
    let directory = tempfile::tempdir().unwrap();
    for name in [".env", ".e]v", ".e^v", ".e-v", ".e!v"] {
        std::fs::write(directory.path().join(name), "").unwrap();
    }
    let patterns = patterns();
    let working_dir = VPath::parse("/w").unwrap();
    let mut wrong = Vec::new();
    for shell in ["bash", "dash", "sh"] {
        let Some(lines) = expanded(shell, &patterns, directory.path()) else {
            continue;
        };
        assert_eq!(lines.len(), patterns.len(), "{shell}");
        for (pattern, line) in patterns.iter().zip(lines) {
            let command = format!("cat {pattern}");
            let findings = analyze(CommandContext::new(&command, &working_dir));
            for name in line
                .split(' ')
                .filter(|name| name.ends_with('v') && name.len() == 4)
            {
                let path = format!("/w/{name}");
                let is_named = findings.paths.iter().any(|named| {
                    if named.glob {
                        glob_could_name(&named.text, &path)
                    } else {
                        named.path.as_str() == path
                    }
                });
                if !is_named && findings.is_understood() {
                    wrong.push(format!("{shell}: {pattern} is {name}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
