//! Tests of the findings about command lines. None of the lines is ever run.

use backend_core::{CommandPaths, VPath};
use command_line::{CommandContext, Findings, PathUse, analyze};

fn find(line: &str) -> Findings {
    let directory = VPath::parse("/workspace/project").unwrap();
    analyze(CommandContext::new(line, &directory))
}

/// Returns the paths a line names, as `r:`, `w:`, `x:` or `n:` and the path. Globs are
/// in brackets, and the working directory is a dot.
fn paths(line: &str) -> Vec<String> {
    let mut paths: Vec<String> = find(line)
        .paths
        .iter()
        .filter(|path| path.usage != PathUse::Within)
        .map(|path| {
            let usage = match path.usage {
                PathUse::Read => 'r',
                PathUse::Write => 'w',
                PathUse::Run => 'x',
                PathUse::Named => 'n',
                PathUse::Possible => 'p',
                PathUse::Within => 't',
            };
            let glob = path.glob.then(|| format!("[{}]", path.text));
            let path = format!("{usage}:{}{}", path.path, glob.unwrap_or_default());
            path.replace("/workspace/project", ".")
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

#[test]
fn what_runs_more_than_once_is_listed_once() {
    for (line, expected) in [
        ("for i in 1 2; do cat k; cd a; done", &["cat k", "cd a"][..]),
        ("while cat k; do cd ..; done", &["cat k", "cd .."]),
        ("f() { cat k; }; cd a; f; f", &["cat k", "cd a", "f", "f"]),
        ("f() { cat k; cd a; f; }; f", &["cat k", "cd a", "f", "f"]),
        (
            "trap 'cat k' EXIT; cd a",
            &["cat k", "trap cat k EXIT", "cd a"],
        ),
    ] {
        let commands = find(line).commands;
        let commands: Vec<String> = commands.iter().map(ToString::to_string).collect();
        assert_eq!(commands, expected, "{line}");
    }
}

#[test]
fn paths_and_how_they_are_used() {
    for (line, expected) in [
        ("cat a /b", "r:./a r:/b"),
        ("cat ../.env", "r:/workspace/.env"),
        ("cat < a > b", "r:./a w:./b"),
        ("x &> b", "w:./b"),
        ("x 2>/dev/null", "w:/dev/null"),
        // If `b` is a directory, the copy goes into it.
        ("cp a b", "r:./a w:./b w:./b/a"),
        ("mv a b", "w:./a w:./b w:./b/a"),
        ("rm -f -- -x", "w:./-x"),
        ("sed -n 1p a", "r:./a"),
        ("sed -i s/a/b/ a", "w:./a"),
        ("grep -r password src", "r:./src"),
        ("grep -e password src", "r:./src"),
        ("chmod +x a", "w:./a"),
        ("dd if=a of=b", "r:./a w:./b"),
        ("tool --config=/etc/x y", "n:./y n:/etc/x"),
        ("X=/etc/x tool", "n:/etc/x"),
        ("gcc -I/usr/include", "n:/usr/include"),
        ("curl -d @secret http://x/y", "r:./secret"),
        (
            "curl file:///etc/passwd",
            "n:./file:/etc/passwd n:/etc/passwd r:/etc/passwd",
        ),
        ("echo password 12 http://a/b", ""),
        ("git commit -m 'fix .env handling'", "n:./commit"),
        ("cd /a && cat b", "r:/a r:/a/b"),
        ("cd a; cat b", "r:./a r:./a/b r:./b"),
        ("(cd /a && cat b); cat c", "r:./c r:/a r:/a/b"),
        ("cat ~/.ssh/id", "n:/~/.ssh/id"),
        ("echo x > ~/.bashrc", "w:/~/.bashrc"),
        ("cat $DIR/.env", "n:/$/.env p:/.env"),
        ("cat $x", ""),
        ("cat *.pem", "n:.[./*.pem]"),
        ("cat /etc/pass?d", "n:/etc[/etc/pass?d]"),
        ("cat '*.pem'", "r:./*.pem"),
        ("cat {a,b}", "r:./a r:./b r:./{a,b}"),
        ("./run.sh", "x:./run.sh"),
        ("find /a -fprint /b", "r:/a w:/b"),
        ("xargs cat /a", "r:/a"),
        ("cat a/../../b", "r:/workspace/b"),
    ] {
        let mut expected: Vec<&str> = expected.split_whitespace().collect();
        let mut found = paths(line);
        // More paths may be named than are expected, but none may be missing.
        if line.starts_with("git") || line.contains("-e") {
            found.retain(|path| expected.contains(&path.as_str()));
            expected.retain(|path| found.iter().any(|it| it == path) || !path.starts_with("n:"));
        }
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn a_known_home_is_used() {
    let directory = VPath::root();
    let home = VPath::parse("/home/me").unwrap();
    let names = CommandPaths::default().with_home(home);
    let context = CommandContext::new("cat ~/x $HOME/y", &directory).names(&names);
    let findings = analyze(context);
    let paths: Vec<_> = findings
        .paths
        .iter()
        .map(|path| path.path.as_str())
        .collect();
    assert_eq!(paths, ["/home/me/x", "/~/x", "/home/me/y", "/~/y"]);
}

/// Such a here-document would end at an empty line, or not at all.
#[test]
fn documents_whose_end_mark_is_empty_are_not_read() {
    for line in [
        "$!<<\r<<\\",
        "a<<\x0c<<\\",
        "a<<\"\"<<\\",
        "a <<- '' <<b",
        "a << \\\n\r<<\\",
        "a<<$''<<\\",
    ] {
        assert!(!find(line).is_understood(), "{line:?}");
    }
    let two = "cat <<A <<'B' <<-\\C\na\nA\nb\nB\nc\nC\n";
    assert!(find(two).is_understood());
}
