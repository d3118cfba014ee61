//! Ways to get at what a view denies, by the shell and the usual programs, by Python and
//! by a compiled program. Each is refused in a view, and without one it succeeds unless
//! the confinement refuses it, which shows that the way is one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use backend_core::ops::{Command, View};
use backend_core::search::Exclude;
use backend_core::{Error, ErrorKind, Sandbox as _};

use crate::support::views::*;

/// Outcomes by the names of the ways.
type Outcomes = BTreeMap<String, bool>;

/// Parts of the ways of the shell that are tried at the same time, in places of their own.
const PARTS: usize = 6;

/// A script that tries every way of one part, each in a shell of its own and with the
/// files restored before it, and prints a line for each.
fn script(place: &Place, part: usize) -> String {
    let mut script = format!("R=$PWD; H={}; S=$PPID; export R H S\n", std::process::id());
    let restore = place.tools.join("restore.sh").display().to_string();
    let ways = ways().into_iter().enumerate();
    for (number, (way, _)) in ways.skip(part).step_by(PARTS) {
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
    let parts = (0..PARTS).map(|part| part_by_shell(is_viewed, part));
    let parts = futures::future::join_all(parts).await;
    parts.into_iter().flatten().collect()
}

async fn part_by_shell(is_viewed: bool, part: usize) -> Outcomes {
    let place = Place::new(is_viewed);
    if !is_viewed {
        put_restore(&place);
    }
    let all = place.tools.join("all.sh");
    fs::write(&all, script(&place, part)).unwrap();
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
    if Place::viewed().is_none() {
        return;
    }
    let (without, within) = tokio::join!(by_shell(false), by_shell(true));
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
    if Place::viewed().is_none() {
        return;
    }
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
    if Place::viewed().is_none() {
        return;
    }
    for (is_viewed, expected) in [(false, 25..=60), (true, 0..=0)] {
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
        let line = format!(
            "{} {} $PPID {SECRET}",
            program.display(),
            std::process::id()
        );
        let found = outcomes(&try_all(&place, &line, is_viewed).await, '\t');
        assert!(found.len() >= 70, "{found:?}");
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
    let Some(place) = Place::viewed() else { return };
    let root = place.inside.display();
    let other = View::new(hide(&["/nothing"]), Exclude::none());
    let sleeper = Command::new("exec sleep 600");
    let mut numbers = Vec::new();
    // The second is in a view of the same rules, in another backend.
    let Some(second) = Place::viewed() else {
        return;
    };
    for (place, command) in [
        (&place, sleeper.clone().view(other)),
        (&place, sleeper.clone()),
        (&second, sleeper.view(rules())),
    ] {
        let shell = place.backend.shell_start(command).await.unwrap();
        numbers.push(shell.pid);
    }
    for number in numbers {
        let number = number.unwrap();
        for line in [
            format!("cat /proc/{number}/root{root}/.env"),
            format!("cat /proc/{number}/cwd/.env"),
            format!("nsenter -t {number} -m cat {root}/.env"),
            format!("nsenter --mount=/proc/{number}/ns/mnt cat {root}/.env"),
            format!("cat /proc/{number}/task/{number}/root{root}/.env"),
            format!("cd /proc/{number}/cwd && cat .env"),
            format!("cat /proc/{number}/fd/* /proc/{number}/environ"),
            format!("ln -s /proc/{number}/cwd/.env x{number}; cat x{number}"),
            format!("kill {number}"),
        ] {
            let outcome = place.run(&line).await;
            assert!(!outcome.status.success(), "{line}: {outcome:?}");
            assert!(!outcome.stdout.text().contains(SECRET), "{line}");
        }
    }
}

/// Lines that try some of the ways while others change what they go through.
const AGAIN_AND_AGAIN: &[&str] = &[
    "cat .env sub/dir/.env secrets/key a/b/x.pem conf/only.txt",
    "cat soft softdir/key absolute chain /proc/self/cwd/.env $PWD/sub/dir/.env",
    "for p in /proc/[0-9]*; do cat $p/cwd/.env $p/root$PWD/.env; done",
    "ln .env hard$$; cat hard$$; mv sub moved$$; cat moved$$/dir/.env; mv moved$$ sub",
    "ln -s $PWD/secrets to$$; cat to$$/key; umount -l secrets; cat secrets/more/key; rm to$$",
    "(cat .env &) ; cd sub/dir && cat .env; cd ../../secrets && cat key",
];

/// Commands that start, in kept views and in fresh ones, while the host replaces files and
/// a command in another view moves directories and swaps links.
#[tokio::test]
async fn a_command_that_starts_during_changes_reads_nothing() {
    let Some(place) = Place::viewed() else { return };
    let place = &place;
    let beside = View::new(hide(&[".env", "*.pem", "secrets/**"]), Exclude::none());
    let mover = Shell::start_with(place, beside, None).await;
    mover
        .tell(
            "while [ ! -e stop ]; do ln -sfn secrets s; mv sub sub2; ln -sfn open.txt soft; \
             mv sub2 sub; ln -sfn .env soft; mv a a2; mkdir -p a/b; rm -rf a; mv a2 a; done \
             2> /dev/null",
        )
        .await;
    let refused = |error: &Error| {
        let said = error.to_string();
        // Not started is as good as not read.
        let kinds = [ErrorKind::PermissionDenied, ErrorKind::Unavailable];
        assert!(kinds.contains(&error.kind()), "{said}");
        true
    };
    let try_it = async |line: &str, view: View| {
        let command = Command::new(line).view(view);
        match place.backend.execute(command).await {
            Ok(outcome) => {
                let said = outcome.stdout.text() + &outcome.stderr.text();
                assert!(!said.contains(SECRET), "{line}: {said}");
                false
            }
            Err(error) => refused(&error),
        }
    };
    let busy = async {
        let mut failed = 0;
        for number in 0..48 {
            put(&place.inside.join(format!("churn/{number}")), "x");
            let line = AGAIN_AND_AGAIN[number % AGAIN_AND_AGAIN.len()];
            failed += usize::from(try_it(line, rules()).await);
        }
        failed
    };
    let fresh = async {
        let mut failed = 0;
        for number in 0..48 {
            let own = format!("x{number}");
            let denied = [".env", "*.pem", "secrets/**", "/conf/only.txt", &own];
            let view = View::new(hide(&denied), Exclude::none());
            let line = AGAIN_AND_AGAIN[number % AGAIN_AND_AGAIN.len()];
            failed += usize::from(try_it(line, view).await);
        }
        failed
    };
    let (busy, fresh) = tokio::join!(busy, fresh);
    println!("of 96 commands {} did not start", busy + fresh);
    assert!(busy + fresh < 96);
    fs::write(place.inside.join("stop"), "").unwrap();
}
