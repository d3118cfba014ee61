//! Tests that pin the messages.

use super::*;

fn paths(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// Writes pairs of a refusal, by its constructor, and its text.
macro_rules! refusals {
    ($($name:ident($($argument:expr),*) => $text:expr;)+) => {
        [$((Refusal::$name($($argument),*), $text)),+]
    };
}

#[test]
fn own_texts_say_what_is_allowed() {
    let problem = backend_core::VPath::parse("..").unwrap_err();
    for (refusal, text) in refusals! {
        rule(Op::Read, "/.env", "Protect sensitive files") =>
            "read of '/.env' is not allowed: Protect sensitive files";
        rule(Op::Execute, "rm -rf /", "") => "execute of 'rm -rf /' is not allowed";
        command_path(Op::Write, "/etc/passwd", "") =>
            "the command names '/etc/passwd', which may not be touched (write)";
        invalid_path("..", problem, paths(&["/data"])) =>
            "the path '..' climbs above the root; use fewer '..'; readable: /data";
        outside("/x", paths(&["/a", "/b"])) =>
            "'/x' lies outside what can be read; readable: /a, /b";
        outside("/x", Vec::new()) => "'/x' lies outside what can be read; readable: none";
        read_only("/x", paths(&["/a"])) => "'/x' is read-only; writable: /a";
        mount_root("/data") =>
            "'/data' is a mount or contains one, so it cannot be deleted or moved; delete or move its contents";
        suffix("/a.bin", ".bin", paths(&[".md", ""])) =>
            "files with the suffix '.bin' are not allowed here ('/a.bin'); allowed: .md, no suffix";
        suffix("/a", "", Vec::new()) =>
            "files with no suffix are not allowed here ('/a'); allowed: none";
        too_large("/a", 11, 10) =>
            "'/a' has 11 bytes, more than the 10 that are allowed here; use a smaller file";
        declined("write /a", "not today") => "write /a was not approved: not today";
        approval_required("write /a", "no approver is available") =>
            "write /a needs approval, and no approver is available";
    } {
        assert_eq!(refusal.to_string(), text);
        let error = Error::from(refusal.clone());
        assert_eq!(error.kind(), refusal.kind());
        assert_eq!(Refusal::of(&error), Some(&refusal));
    }
}

#[test]
fn hostile_and_long_targets_are_escaped_and_cut() {
    let hostile = format!("/\u{1b}[2J\n{}", "x".repeat(100_000));
    for refusal in [
        Refusal::rule(Op::Read, &hostile, ""),
        Refusal::command_path(Op::Read, &hostile, ""),
        Refusal::outside(&hostile, vec!["/a".to_owned(); 10_000]),
        Refusal::read_only(&hostile, Vec::new()),
        Refusal::mount_root(&hostile),
        Refusal::suffix(&hostile, &hostile, Vec::new()),
        Refusal::too_large(&hostile, 2, 1),
    ] {
        let text = refusal.to_string();
        assert!(
            text.len() < 1_000 && !text.contains(['\u{1b}', '\n']),
            "{text}"
        );
    }
    let many = Refusal::outside("/x", vec!["/a".to_owned(); 23]).to_string();
    assert!(many.ends_with(", /a and 3 more"), "{many}");
}

#[test]
fn filesystem_texts() {
    let problem = backend_core::VPath::parse("..").unwrap_err();
    for (refusal, text) in refusals! {
        outside("/x", paths(&["/a", "/b"])) =>
            "Cannot access '/x': path is outside sandbox.\nReadable paths: /a, /b";
        outside("/x", Vec::new()) =>
            "Cannot access '/x': path is outside sandbox.\nReadable paths: none";
        invalid_path("..", problem, paths(&["/a"])) =>
            "Cannot access '..': path is outside sandbox.\nReadable paths: /a";
        invalid_path( "/a/.agentbox-tmp-1", backend_core::VPath::parse("/a/.agentbox-tmp-1").unwrap_err(), paths(&["/a"])) =>
            "Cannot use this path: the name '.agentbox-tmp-1' is reserved for files that are \
             being written; choose another";
        read_only("/x", paths(&["/a"])) =>
            "Cannot write to '/x': path is read-only.\nWritable paths: /a";
        read_only("/x", Vec::new()) =>
            "Cannot write to '/x': path is read-only.\nWritable paths: none";
        suffix("/a.bin", ".bin", paths(&[".md", ".TXT"])) =>
            "Cannot access '/a.bin': suffix '.bin' not allowed.\nAllowed suffixes: .md, .TXT";
        suffix("/a.bin", ".bin", Vec::new()) =>
            "Cannot access '/a.bin': suffix '.bin' not allowed.\nAllowed suffixes: any";
        too_large("/a", 1_234_567, 999) =>
            "Cannot read '/a': file too large (1,234,567 bytes).\nMaximum allowed: 999 bytes";
        declined("write_file", "") => "Approval denied for write_file: no reason given";
        declined("write_file", "User denied") => "Approval denied for write_file: User denied";
        rule(Op::Write, "/a", "") => "Blocked write: blocked by policy";
    } {
        assert_eq!(refusal.filesystem_text(), text);
    }
    assert_eq!(
        Refusal::declined("write /a", "").filesystem_text_for("write_file"),
        "Approval denied for write_file: no reason given"
    );
    assert_eq!(
        Refusal::rule(Op::Write, "/a", "why").filesystem_text_for("write_file"),
        "Blocked write_file: why"
    );
    for refusal in [
        Refusal::mount_root("/a"),
        Refusal::command_path(Op::Read, "/a", ""),
        Refusal::approval_required("x", "y"),
    ] {
        assert_eq!(refusal.filesystem_text(), refusal.to_string());
    }
}

#[test]
fn console_texts() {
    let why = "Approval required but no callback";
    for (refusal, console) in refusals! {
        rule(Op::Read, "/.env", "Protect sensitive files") =>
            "Permission denied for read on '/.env': Protect sensitive files";
        rule(Op::Execute, "a\n\u{1b}", "") => r"Permission denied for execute on 'a\n\u{1b}'";
        declined("write on '/a'", "") => "Permission denied: write on '/a' was not approved";
        declined("write on '/a'", "no") => "Permission denied: write on '/a' was not approved: no";
        approval_required("write on '/a'", why) =>
            "Permission denied: write on '/a' needs approval, and Approval required but no callback";
    } {
        assert_eq!(refusal.console_text(), console);
    }
}

#[test]
fn what_is_not_permitted_says_so_in_the_words_that_models_know() {
    for refusal in [
        Refusal::rule(Op::Read, "/a", "x"),
        Refusal::command_path(Op::Read, "/.env", "x"),
        Refusal::outside("/x", Vec::new()),
        Refusal::read_only("/x", Vec::new()),
        Refusal::mount_root("/a"),
        Refusal::suffix("/a", "", Vec::new()),
        Refusal::declined("x", ""),
        Refusal::approval_required("x", "y"),
    ] {
        let text = refusal.console_text();
        assert!(text.starts_with("Permission denied"), "{text}");
    }
    for fixable in [
        Refusal::too_large("/a", 2, 1),
        Refusal::invalid_path(
            "a\0",
            backend_core::VPath::parse("\0").unwrap_err(),
            Vec::new(),
        ),
    ] {
        assert_eq!(fixable.console_text(), fixable.to_string());
    }
}

#[test]
fn thousands_are_grouped_from_the_right() {
    for (number, text) in [
        (0, "0"),
        (999, "999"),
        (1_000, "1,000"),
        (12_345, "12,345"),
        (123_456, "123,456"),
        (u64::MAX, "18,446,744,073,709,551,615"),
    ] {
        assert_eq!(thousands(number), text);
    }
}
