//! `shell`, `forward` and `watch` with containers.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::Child;

use backend_testkit::processes;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::containers::{Containers, Foreign};
use crate::support::pages::transcripts;
use crate::support::terminal::Terminal;

/// Starts a shell in a container: a new one, or that of `backend`.
fn start<'c>(containers: &'c Containers, backend: &[&str], command: &str) -> Terminal<'c> {
    let program = containers.command(backend);
    Terminal::start(&containers.dir, &program, &format!("shell {command}"))
}

fn interrupt(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Reads a line.
fn line(out: &mut impl std::io::BufRead) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn a_shell_is_one_in_the_container() {
    let containers = Containers::new("shell");
    let mut terminal = start(&containers, &[], "-- env PS1='ready> ' sh");
    terminal.sees("ready> ");
    // The typed line differs from the line that it prints.
    terminal.types("echo in=$((40+2)); stty size\r");
    terminal.sees("stty size");
    terminal.sees("in=42\r\n33 99\r\n");
    terminal.sees("ready> ");
    // It is another machine than this one.
    terminal.types("test -e /bin/busybox && ls /bin | wc -l > /workspace/n; echo s'e'en\r");
    terminal.sees("seen");
    terminal.sees("ready> ");

    let wait = "until [ \"$(stty size)\" = '44 111' ]; do sleep 0.05; done; echo re'siz'ed\r";
    terminal.types(wait);
    terminal.resize(44, 111);
    terminal.sees("resized");
    terminal.sees("ready> ");

    let token = processes::token();
    terminal.types(&format!("echo be'g'un; sleep {token}\r"));
    terminal.sees("begun\r\n");
    terminal.control('c');
    terminal.sees("ready> ");
    processes::gone(&token);
    // Neither the program nor the shell was interrupted.
    terminal.types("echo still $((1+1))\r");
    terminal.sees("still 2");
    terminal.types("exit 7\r");
    terminal.ends(7);
    assert_eq!(containers.names(), [""; 0]);
}

/// Removes what moves the cursor: the shell of the image asks where it is.
fn plain(shown: &str) -> String {
    let mut plain = String::new();
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        let end = after.find(|char: char| char.is_ascii_alphabetic());
        rest = &after[end.map_or(after.len(), |end| end + 1)..];
    }
    plain.push_str(rest);
    plain.replace('\r', "")
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn the_transcript_of_terminals_is_accurate() {
    const PROMPT: &str = "/workspace $ ";
    let [transcript] = &transcripts("terminals.md")[..] else {
        panic!("one transcript");
    };
    let [command, lines @ .., question, code] = &transcript[..] else {
        panic!("a conversation");
    };
    assert_eq!(command, "$ agentbox --backend docker:busybox shell");
    assert_eq!(question, "$ echo $?");
    let containers = Containers::new("transcript");
    let mut terminal = start(&containers, &[], "");
    let mut shown = String::new();
    for (number, line) in lines.iter().enumerate() {
        if let Some(typed) = line.strip_prefix(PROMPT) {
            let before = terminal.sees(PROMPT);
            // The image's shell greets.
            shown += if number > 0 { &before } else { "" };
            shown += PROMPT;
            terminal.types(&format!("{typed}\r"));
        } else if line == "^C" {
            terminal.control('c');
        } else {
            // Printed before the next key is typed.
            shown += &terminal.sees(&format!("{line}\r\n"));
            shown += &format!("{line}\n");
        }
    }
    shown += &terminal.ends(code.parse().unwrap());
    assert_eq!(plain(&shown).trim(), lines.join("\n"));
    assert_eq!(containers.names(), [""; 0]);
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn enter_tilde_dot_leaves_and_no_container_stays() {
    let containers = Containers::new("leave");
    let token = processes::token();
    let command = format!(
        "-- sh -c 'trap \"\" INT HUP TERM; stty raw; setsid sleep {token} & echo ready; sleep {token}'"
    );
    let mut terminal = start(&containers, &[], &command);
    terminal.sees("ready");
    assert_eq!(containers.names().len(), 1);
    terminal.types("\r~.");
    let rest = terminal.ends(0);
    assert!(rest.contains("you left the shell"), "{rest}");
    processes::none(&token);
    assert_eq!(containers.names(), [""; 0]);
}

/// A container that was there before stays, and nothing of the shell runs in it.
#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn leaving_leaves_nothing_in_a_container_of_others() {
    let containers = Containers::new("attached");
    let foreign = Foreign::start("attached", "sleep 4326", "true");
    let backend = format!("docker:attach={}", foreign.name);
    let token = processes::token();
    let typed = format!("trap '' HUP TERM; setsid sleep {token} & sleep {token} & echo be'g'un\r");
    for code in [0, 5] {
        let mut terminal = start(&containers, &["--backend", &backend], "-- env PS1='> ' sh");
        terminal.sees("> ");
        terminal.types(&typed);
        terminal.sees("begun\r\n");
        terminal.sees("> ");
        terminal.types(if code == 0 { "\r~." } else { "exit 5\r" });
        terminal.ends(code);
        // The agent ends what ignores to be asked after a moment.
        processes::gone(&token);
        foreign.has_only_its_program();
    }
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn a_program_that_is_told_to_end_restores_the_terminal() {
    let containers = Containers::new("told");
    let token = processes::token();
    let command = format!("-- sh -c 'echo ready; sleep {token}; :'");
    let mut terminal = start(&containers, &[], &command);
    terminal.sees("ready");
    let is_program = |pid: &i32| {
        let path = std::fs::read_link(format!("/proc/{pid}/exe"));
        path.is_ok_and(|path| path.ends_with("agentbox"))
    };
    let program = processes::survivors(&token).into_iter().find(is_program);
    kill_process(Pid::from_raw(program.unwrap()).unwrap(), Signal::TERM).unwrap();
    terminal.ends(143);
    processes::gone(&token);
    assert_eq!(containers.names(), [""; 0]);
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn a_port_of_a_container_without_network_is_reached() {
    let containers = Containers::new("forward");
    // The port in hexadecimal.
    let listens = "cat /proc/net/tcp* | grep -q :10E7";
    let foreign = Foreign::start("forward", "nc -ll -p 4327 -e cat", listens);
    let backend = format!("docker:attach={}", foreign.name);
    let mut child = containers
        .command(&["forward", &backend, "4327:0"])
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let said = line(&mut out);
    let address = said.split(' ').next().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{said}");
    let mut stream = TcpStream::connect(address).unwrap();
    let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut writer = stream.try_clone().unwrap();
    let written = sent.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&written).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == sent);
    interrupt(child);
    foreign.has_only_its_program();
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn changes_in_a_container_are_printed() {
    let containers = Containers::new("watch");
    let foreign = Foreign::start("watch", "sleep 4328", "mkdir /tree");
    let backend = format!("docker:attach={}", foreign.name);
    let arguments = ["watch", "--backend", &backend, "/tree"];
    let mut child = containers.command(&arguments).spawn().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap());
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let note = line(&mut notes);
    assert!(note.starts_with("agentbox: watching /tree"), "{note}");
    // A command that the program knows nothing of.
    foreign.run("mkdir /tree/d; : > /tree/d/a; mv /tree/d/a /tree/b; rm /tree/b");
    let mut told = Vec::new();
    while told.last().is_none_or(|line| line != "deleted /tree/b\n") {
        told.push(line(&mut out));
        assert_ne!(told.last().unwrap(), "", "{told:?}");
    }
    assert_eq!(told[0], "created /tree/d\n");
    interrupt(child);
    foreign.has_only_its_program();
}
