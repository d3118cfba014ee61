//! PostgreSQL's `jsonb` accepts every document and returns it unchanged.
//!
//! `cargo xtask test-all --only postgres` starts a server and runs this.
use std::process::Command;

use backend_state::Snapshot;
use bytes::Bytes;

mod needs_postgres {
    use super::*;

    /// Passes a document through a `jsonb` value.
    fn through_jsonb(json: &str) -> Vec<u8> {
        // The tag does not occur in any document of this test. The result is in hex
        // digits, because psql does not print every character.
        let query = format!(
            "select encode(convert_to(($agentbox${json}$agentbox$::jsonb)::text, 'UTF8'), 'hex')"
        );
        let output = Command::new("psql")
            .args(["--no-psqlrc", "--tuples-only", "--no-align", "--command"])
            .arg(query)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let digits = str::from_utf8(output.stdout.trim_ascii()).unwrap();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    #[test]
    #[ignore = "needs PostgreSQL: cargo xtask test-all --only postgres"]
    fn every_kind_of_content_comes_back() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let every_control: String = (0..32).filter_map(char::from_u32).collect();
        let files = [
            ("/text", Bytes::from("plain\r\n\"quoted\" \\ 🦀 \u{2028}\n")),
            ("/empty", Bytes::new()),
            ("/nul", Bytes::from("a\0b")),
            ("/bytes", Bytes::from(every_byte)),
            ("/controls", Bytes::from(every_control)),
            ("/not a character", Bytes::from("\u{ffff}\u{10ffff}")),
            ("/odd\n\"name\"\t\u{1}", Bytes::from("x")),
        ];
        let snapshot = Snapshot::from_files(files).unwrap();
        let json = snapshot.to_json().unwrap();
        let again = Snapshot::from_json(through_jsonb(&json)).unwrap();
        for (before, after) in snapshot.iter().zip(again.iter()) {
            assert_eq!(after, before);
        }
        assert_eq!(again, snapshot);
    }

    #[test]
    #[ignore = "needs PostgreSQL: cargo xtask test-all --only postgres"]
    fn a_nul_would_be_refused() {
        // The reason for the base64 mark.
        let refused = Command::new("psql")
            .args(["--no-psqlrc", "--command"])
            .arg(r#"select '{"a": "\u0000"}'::jsonb"#)
            .output()
            .unwrap();
        assert!(!refused.status.success());
    }
}
