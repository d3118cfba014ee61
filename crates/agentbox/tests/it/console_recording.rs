//! The terminal session of the README: it is typed into a real console, and its picture is
//! what the terminal showed.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use avt::{Color, Line, Pen, Terminal};
use rexpect::session::{PtySession, spawn_command};

use crate::support::{TestDir, in_script};

/// Timeout in milliseconds.
const PATIENCE: u64 = 60_000;

const PROMPT: &str = "local> ";
const COLUMNS: usize = 88;
const ROWS: usize = 50;

/// The size of a character in the picture, and the space around the text.
const WIDTH: f32 = 8.4;
const HEIGHT: usize = 19;
const MARGIN: usize = 20;

/// The picture, which `UPDATE_TRANSCRIPTS=1` writes.
const PICTURE: &str = "docs/images/console.svg";

#[test]
fn the_session_in_the_readme_is_what_a_terminal_shows() {
    let readme = std::fs::read_to_string(in_repository("README.md")).unwrap();
    let (_, session) = readme.split_once("```text\n").unwrap();
    let (session, _) = session.split_once("```\n").unwrap();
    let (start, session) = session.split_once('\n').unwrap();

    let dir = TestDir::new();
    let output = play(&dir, session);
    let here = dir.path("").canonicalize().unwrap();
    let output = output.replace(here.to_str().unwrap(), "/home/you");

    let mut terminal = Terminal::new(COLUMNS, ROWS).unwrap();
    terminal.feed(format!("{start}\r\n").as_str());
    terminal.feed(output.as_str());
    let lines: Vec<&Line> = terminal.screen().visible_lines().collect();
    let count = session.lines().count() + 1;
    let shown: String = lines[..count]
        .iter()
        .map(|line| format!("{}\n", line.text().trim_end()))
        .collect();
    assert_eq!(shown, format!("{start}\n{session}"));

    let picture = picture(&lines[..count]);
    let path = in_repository(PICTURE);
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(&path, &picture).unwrap();
    }
    let drawn = std::fs::read_to_string(&path).unwrap();
    assert!(
        drawn == picture,
        "{PICTURE} shows something else; UPDATE_TRANSCRIPTS=1 draws it again"
    );
}

fn in_repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Types the lines of a session after their prompts. Returns all that the console wrote.
fn play(dir: &TestDir, session: &str) -> String {
    let script = format!("stty rows {ROWS} columns {COLUMNS}; exec \"$0\" \"$@\"");
    let mut shell = in_script(&dir.command(&[]), &script);
    shell.env("TERM", "xterm-256color");
    shell.stdin(Stdio::inherit()).stdout(Stdio::inherit());
    shell.stderr(Stdio::inherit());
    let mut terminal = spawn_command(shell, Some(PATIENCE)).unwrap();
    let mut output = String::new();
    sees(&mut terminal, PROMPT, &mut output);
    let mut lines = session.lines();
    while let Some(line) = lines.next() {
        let Some(line) = line.strip_prefix(PROMPT) else {
            continue;
        };
        terminal.send_line(line).unwrap();
        if line.ends_with("<<EOF") {
            // The console shows no prompt until the last of these lines.
            for line in lines.by_ref() {
                terminal.send_line(line).unwrap();
                if line == "EOF" {
                    break;
                }
            }
        }
        // Each key may draw the prompt again; this is only written once the line is done.
        sees(&mut terminal, "\x1b[?2004l", &mut output);
        sees(&mut terminal, "\x1b[?2004h", &mut output);
    }
    sees(&mut terminal, PROMPT, &mut output);
    terminal.send_control('d').unwrap();
    output + &terminal.exp_eof().unwrap()
}

/// Waits for a text, and adds the output up to its end.
#[track_caller]
fn sees(terminal: &mut PtySession, text: &str, output: &mut String) {
    match terminal.exp_string(text) {
        Ok(before) => output.extend([&before, text]),
        Err(error) => panic!("{text:?} did not come: {error}"),
    }
}

/// Draws the lines of a terminal.
fn picture(lines: &[&Line]) -> String {
    let width = (COLUMNS as f32).mul_add(WIDTH, 2.0 * MARGIN as f32);
    let height = lines.len() * HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"#1b1f27\"/>\n"
    );
    for (row, line) in lines.iter().enumerate() {
        let y = MARGIN + row * HEIGHT + 14;
        let mut column = 0;
        for cells in line.cells().chunk_by(|a, b| a.pen() == b.pen()) {
            let text: String = cells.iter().map(avt::Cell::char).collect();
            let x = (column as f32).mul_add(WIDTH, MARGIN as f32);
            column += cells.len();
            if text.trim().is_empty() {
                continue;
            }
            let text = text.trim_end();
            let length = text.chars().count() as f32 * WIDTH;
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y}\" textLength=\"{length:.1}\" xml:space=\"preserve\"{}>{}</text>",
                style(cells[0].pen()),
                escaped(text)
            )
            .unwrap();
        }
    }
    svg + "</svg>\n"
}

fn style(pen: &Pen) -> String {
    let color = match pen.foreground() {
        None => "#d8dee9",
        Some(Color::Indexed(1)) => "#f2777a",
        Some(Color::Indexed(2)) => "#99cc99",
        Some(Color::Indexed(6)) => "#66cccc",
        other => panic!("the picture has no color for {other:?}"),
    };
    let weight = if pen.is_bold() {
        " font-weight=\"bold\""
    } else {
        ""
    };
    format!(" fill=\"{color}\"{weight}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
