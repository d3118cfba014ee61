//! Decoding of daemons' responses, including malformed ones.

use proptest::prelude::*;

use super::*;

fn read(lines: &[&str]) -> (ProgressReader, Vec<BuildEvent>) {
    let mut reader = ProgressReader::default();
    let mut events = Vec::new();
    for line in lines {
        reader.line(line.as_bytes(), &mut |event| events.push(event));
    }
    reader.flush(&mut |event| events.push(event));
    (reader, events)
}

fn log(line: &str) -> BuildEvent {
    BuildEvent::Log {
        line: line.to_owned(),
    }
}

fn step(number: u32, total: u32, name: &str, cached: bool) -> BuildEvent {
    BuildEvent::Step {
        number,
        total,
        name: name.to_owned(),
        cached,
    }
}

/// A field of a protocol-buffer message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 0x80);
    [&[number << 3 | 2, length], content].concat()
}

fn status(message: &[u8]) -> String {
    let aux = STANDARD.encode(message);
    format!(r#"{{"id":"moby.buildkit.trace","aux":"{aux}"}}"#)
}

fn vertex(name: &str, started: bool, cached: bool) -> String {
    let mut vertex = field(1, b"sha256:1");
    vertex.extend(field(3, name.as_bytes()));
    if cached {
        vertex.extend([4 << 3, 1]);
    }
    if started {
        vertex.extend(field(5, &[8, 1]));
    }
    status(&field(1, &vertex))
}

fn output(text: &str) -> String {
    let mut log = field(1, b"sha256:1");
    log.extend([3 << 3, 1]);
    log.extend(field(4, text.as_bytes()));
    status(&field(3, &log))
}

#[test]
fn buildkits_status_becomes_steps_and_lines() {
    let lines = [
        vertex("[internal] load remote build context", true, false),
        vertex("[1/3] FROM docker.io/library/x", false, false),
        vertex("[1/3] FROM docker.io/library/x", true, false),
        vertex("[1/3] FROM docker.io/library/x", true, false),
        vertex("[stage-0 2/3] RUN a", false, true),
        output("one\ntw"),
        output("o\r\n\n\tthree"),
        r#"{"id":"moby.image.id","aux":{"ID":"sha256:2"}}"#.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (reader, events) = read(&lines);
    let expected = [
        step(1, 3, "FROM docker.io/library/x", false),
        step(2, 3, "RUN a", true),
        log("one"),
        log("two"),
        log(" three"),
    ];
    assert_eq!(events, expected);
    assert!(reader.built && reader.failure.is_none());
    assert_eq!(reader.last_lines(), ["one", "two", " three"]);
}

#[test]
fn the_total_is_of_this_build() {
    let mut reader = ProgressReader::new(Some(4));
    let mut events = Vec::new();
    let line = vertex("[1/3] FROM x", true, false);
    reader.line(line.as_bytes(), &mut |event| events.push(event));
    assert_eq!(events, [step(1, 4, "FROM x", false)]);
}

#[test]
fn the_classic_builders_text_becomes_steps_and_lines() {
    let (reader, events) = read(&[
        r#"{"stream":"Step 1/2 : FROM x"}"#,
        r#"{"stream":"\n"}"#,
        r#"{"stream":" ---\u003e 0123\n"}"#,
        r#"{"stream":"Step 2/2 : RUN [\"a\"]\n"}"#,
        r#"{"stream":"\u001b[91mred\u001b[0m\n"}"#,
        r#"{"aux":{"ID":"sha256:2"}}"#,
        r#"{"stream":"Successfully built 2\n"}"#,
    ]);
    let expected = [
        step(1, 2, "FROM x", false),
        log(" ---> 0123"),
        step(2, 2, "RUN [\"a\"]", false),
        log("red"),
        log("Successfully built 2"),
    ];
    assert_eq!(events, expected);
    assert!(reader.built);
}

#[test]
fn a_failure_is_kept_with_the_end_of_the_log() {
    let mut lines: Vec<String> = (0..50)
        .map(|n| format!(r#"{{"stream":"line {n}\n"}}"#))
        .collect();
    lines.push(r#"{"errorDetail":{"message":"exit 1"},"error":"exit\u001b[2J 1\n"}"#.to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (reader, events) = read(&lines);
    assert_eq!(events.len(), 50);
    assert_eq!(reader.failure.as_deref(), Some("exit 1"));
    assert!(!reader.built);
    assert_eq!(reader.last_lines().len(), KEPT_LINES);
    assert_eq!(reader.last_lines().last(), Some(&"line 49"));
}

#[test]
fn long_lines_are_cut() {
    let endless = "é".repeat(3 * LONGEST_LINE);
    let (reader, events) = read(&[&format!(r#"{{"stream":"{endless}"}}"#)]);
    assert_eq!(events.len(), 1);
    let BuildEvent::Log { line } = &events[0] else {
        panic!("{events:?}");
    };
    assert!(line.len() <= LONGEST_LINE + '…'.len_utf8() && line.ends_with('…'));
    assert!(reader.last_lines()[0].len() <= KEPT_WIDTH);
}

#[test]
fn errors_of_the_interface_are_read() {
    assert_eq!(message(br#"{"message":"no such thing"}"#), "no such thing");
    assert_eq!(
        message(b"404 page\x1b[2J not found\n"),
        "404 page not found"
    );
}

proptest! {
    #[test]
    fn no_answer_is_too_odd(line in any::<Vec<u8>>(), status_bytes in any::<Vec<u8>>()) {
        let mut reader = ProgressReader::default();
        let mut check = |event: BuildEvent| {
            assert!(!event.to_string().chars().any(char::is_control), "{event:?}");
        };
        reader.line(&line, &mut check);
        reader.line(status(&status_bytes).as_bytes(), &mut check);
        reader.line(status(&[&[10u8, 200, 1][..], &status_bytes].concat()).as_bytes(), &mut check);
        reader.flush(&mut check);
    }
}
