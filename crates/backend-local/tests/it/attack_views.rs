//! Ways to get at what a view denies, by the shell and the usual programs, by Python and
//! by a compiled program. Each is refused in a view, and without one it succeeds unless
//! the confinement refuses it, which shows that the way is one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use backend_core::Sandbox as _;
use backend_core::ops::Command;

use crate::support::views::*;

/// Outcomes by the names of the ways.
type Outcomes = BTreeMap<String, bool>;

/// A script that tries every way of the shell, each in a shell of its own and with the
/// files restored before it, and prints a line for each.
fn script(place: &Place) -> String {
    let mut script = format!("R=$PWD; H={}; S=$PPID; export R H S\n", std::process::id());
    let restore = place.tools.join("restore.sh").display().to_string();
    for (number, (way, _)) in ways().into_iter().enumerate() {
        let file = place.tools.join(format!("way-{number}.sh"));
        fs::write(&file, way).unwrap();
        let file = file.display();
        write!(
            script,
            "test -e {restore} && . {restore}\n\
             found=$(timeout 20 sh {file} 2>&1 < /dev/null | tr -d '\\0' | tr -d '\\n')\n\
             case $found in *{SECRET}*) echo '{number} read';; *) echo '{number} refused';; esac\n\
             rm -rf new new2 d copy part* moved out*\n"
        )
        .unwrap();
    }
    script
}

/// The ways of the shell, and what is known about each.
fn ways() -> Vec<(&'static str, &'static str)> {
    let lines = include_str!("attack_views/ways.sh").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.split_once("  # ").unwrap_or((line, "")))
        .collect()
}

/// Restores the files in the backend's directory. Only where there is no view: what it
/// would write over is masked, and it contains what they hold.
fn put_restore(place: &Place) {
    let mut script = String::from("cd $R; rm -rf ./* .env .git 2>/dev/null\n");
    for name in DENIED {
        let above = name.rsplit_once('/').map_or(".", |(above, _)| above);
        writeln!(script, "mkdir -p {above}; printf %s {SECRET} > {name}").unwrap();
    }
    script += "mkdir -p fixed .git/hooks; for f in open.txt fixed/file conf/fixed.txt .git/config; \
               do printf open > $f; done\n\
               ln -s .env soft; ln -s secrets softdir; ln -s $R/a/b/x.pem absolute; \
               ln -s sub/dir/../../soft chain\n";
    fs::write(place.tools.join("restore.sh"), script).unwrap();
}

async fn try_all(place: &Place, line: &str, is_viewed: bool) -> String {
    let mut command = Command::new(line);
    if is_viewed {
        command = command.view(rules());
    }
    let outcome = place.backend.execute(command).await.unwrap();
    let said = outcome.stdout.text();
    assert!(
        outcome.status.success(),
        "{said}\n{}",
        outcome.stderr.text()
    );
    said
}

fn outcomes(said: &str, separator: char) -> Outcomes {
    let lines = said
        .lines()
        .map(|line| line.rsplit_once(separator).unwrap());
    lines
        .map(|(name, outcome)| (name.to_owned(), outcome == "read"))
        .collect()
}

/// Tries every way of the shell with a view or without.
async fn by_shell(is_viewed: bool) -> Outcomes {
    let place = Place::new(is_viewed);
    if !is_viewed {
        put_restore(&place);
    }
    let all = place.tools.join("all.sh");
    fs::write(&all, script(&place)).unwrap();
    let said = try_all(&place, &format!(". {}", all.display()), is_viewed).await;
    if is_viewed {
        // Nothing was changed either.
        for name in DENIED {
            assert_eq!(
                fs::read_to_string(place.inside.join(name)).unwrap(),
                SECRET,
                "{name}"
            );
        }
        assert_eq!(
            fs::read_to_string(place.inside.join("fixed/file")).unwrap(),
            "open"
        );
    }
    outcomes(&said, ' ')
}

#[tokio::test]
async fn the_shell_finds_no_way() {
    let (without, within) = (by_shell(false).await, by_shell(true).await);
    let ways = ways();
    assert!(ways.len() >= 100, "{}", ways.len());
    let mut wrong = Vec::new();
    for (number, (way, known)) in ways.iter().enumerate() {
        let [without, within] = [&without, &within].map(|all| all[&number.to_string()]);
        // A program may be missing, such as `xxd`.
        let is_missing = !without && !known.starts_with("never");
        if within || (without && known.starts_with("never")) {
            wrong.push(format!("{way}: without a view {without}, in one {within}"));
        } else if is_missing {
            println!("not tried, or refused without a view as well: {way}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let read = without.values().filter(|read| **read).count();
    assert!(read >= 85, "only {read} of them are ways without a view");
}

#[tokio::test]
async fn system_calls_find_no_way() {
    for (is_viewed, expected) in [(false, 30..=100), (true, 0..=0)] {
        let place = Place::new(is_viewed);
        let program = place.tools.join("ways.py");
        fs::write(&program, include_str!("attack_views/ways.py")).unwrap();
        let line = format!(
            "/usr/bin/python3 -B {} {SECRET} {} $PPID",
            program.display(),
            std::process::id()
        );
        let found = outcomes(&try_all(&place, &line, is_viewed).await, '\t');
        assert!(found.len() > 50, "{found:?}");
        let read: Vec<_> = found.iter().filter(|(_, read)| **read).collect();
        assert!(
            expected.contains(&read.len()),
            "viewed {is_viewed}: {read:?}"
        );
    }
}

#[tokio::test]
async fn a_compiled_program_finds_no_way() {
    for (is_viewed, expected) in [(false, 10..=20), (true, 0..=0)] {
        let place = Place::new(is_viewed);
        let (source, program) = (place.tools.join("ways.c"), place.tools.join("ways"));
        fs::write(&source, include_str!("attack_views/ways.c")).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let made = compiler
            .arg("-w")
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .status();
        let made = made.expect("these tests need a C compiler, as Rust does to link: install `cc`");
        assert!(made.success());
        let line = format!("{} {SECRET}", program.display());
        let found = outcomes(&try_all(&place, &line, is_viewed).await, '\t');
        assert!(found.len() >= 15, "{found:?}");
        let read: Vec<_> = found.iter().filter(|(_, read)| **read).collect();
        assert!(
            expected.contains(&read.len()),
            "viewed {is_viewed}: {read:?}"
        );
    }
}

/// A command in one view gets at nothing through the processes of another, which may
/// read it.
#[tokio::test]
async fn a_sibling_view_is_no_way() {
    let place = Place::new(true);
    let root = place.inside.display();
    let other = backend_core::ops::View::new(
        backend_core::search::Exclude::hide(["/nothing"]).unwrap(),
        backend_core::search::Exclude::none(),
    );
    let sleeper = Command::new("exec sleep 600");
    let mut numbers = Vec::new();
    for command in [sleeper.clone().view(other), sleeper] {
        let shell = place.backend.shell_start(command).await.unwrap();
        numbers.push(shell.pid);
    }
    for number in numbers {
        let number = number.unwrap();
        for line in [
            format!("cat /proc/{number}/root{root}/.env"),
            format!("cat /proc/{number}/cwd/.env"),
            format!("nsenter -t {number} -m cat {root}/.env"),
            format!("kill {number}"),
        ] {
            let outcome = place.run(&line).await;
            assert!(!outcome.status.success(), "{line}: {outcome:?}");
            assert!(!outcome.stdout.text().contains(SECRET), "{line}");
        }
    }
}

/// Commands that start while the host replaces files, in views that are fresh each time.
#[tokio::test]
async fn a_command_that_starts_during_changes_reads_nothing() {
    let place = Place::new(true);
    let busy = async {
        for number in 0..40 {
            put(&place.inside.join(format!("churn/{number}")), "x");
            let said = place.says("cat sub/dir/.env secrets/key a/b/x.pem").await;
            assert!(!said.contains(SECRET), "{said}");
        }
    };
    let fresh = async {
        for number in 0..40 {
            let names = [".env", "*.pem", "secrets/**", &format!("x{number}")].map(str::to_owned);
            let view = backend_core::ops::View::new(
                backend_core::search::Exclude::hide(names).unwrap(),
                backend_core::search::Exclude::none(),
            );
            let command = Command::new("cat .env sub/dir/.env secrets/key a/b/x.pem").view(view);
            let outcome = place.backend.execute(command).await.unwrap();
            assert!(!outcome.stdout.text().contains(SECRET), "{outcome:?}");
        }
    };
    tokio::join!(busy, fresh);
}
