//! How a program ended, as the cluster says it: JSON of a `Status`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

/// The exit codes of shells for a program that is missing, and for one that cannot be
/// run.
const NOT_FOUND: i32 = 127;
const NOT_RUNNABLE: i32 = 126;

/// Bytes that are kept of a message.
const MESSAGE_BYTES: usize = 4 * 1024;

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// It exited. The code also stands for a signal: 128 plus its number.
    Exited(i32),
    /// It could not be run, which the exit code and the message say as a shell would.
    NotRun(i32, String),
    /// The cluster failed, or does not say how the program ended.
    Failed(String),
}

/// Reads a status.
pub(super) fn parse(json: &[u8]) -> Ended {
    let Ok(status) = serde_json::from_slice::<Status>(json) else {
        let start = json.get(..json.len().min(MESSAGE_BYTES)).unwrap_or(json);
        return Ended::Failed(String::from_utf8_lossy(start).into_owned());
    };
    match status.status.as_deref() {
        Some("Success") => return Ended::Exited(0),
        Some("Failure") => {}
        _ => return Ended::Failed("it has no outcome".to_owned()),
    }
    if status.reason.as_deref() == Some("NonZeroExitCode") {
        let causes = status.details.and_then(|details| details.causes);
        let mut causes = causes.unwrap_or_default().into_iter();
        let code = causes.find(|cause| cause.reason.as_deref() == Some("ExitCode"));
        let code = code.and_then(|cause| cause.message?.parse::<u8>().ok());
        return match code {
            Some(code) => Ended::Exited(code.into()),
            None => Ended::Failed("its exit code is missing".to_owned()),
        };
    }
    let mut message = status.message.unwrap_or_default();
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    match exit_code(&message) {
        Some(code) => Ended::NotRun(code, message),
        None => Ended::Failed(message),
    }
}

/// Returns the exit code for the message of a container runtime that could not run a
/// program; `None` if the message is about something else.
fn exit_code(message: &str) -> Option<i32> {
    let is_about_a_program = [
        "unable to start container process",
        "starting container process caused",
        "failed to start exec",
        "error finding executable",
    ];
    if !is_about_a_program.iter().any(|part| message.contains(part)) {
        return None;
    }
    let missing = ["executable file not found", "no such file or directory"];
    let refused = ["permission denied", "exec format error", "is a directory"];
    let has = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    if has(&missing) {
        Some(NOT_FOUND)
    } else {
        has(&refused).then_some(NOT_RUNNABLE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(status: &serde_json::Value) -> Ended {
        parse(status.to_string().as_bytes())
    }

    fn exited(message: &str) -> Ended {
        let causes = json!([{"reason": "Other"}, {"reason": "ExitCode", "message": message}]);
        read(&json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": "command terminated with non-zero exit code",
            "details": {"causes": causes},
        }))
    }

    #[test]
    fn exit_codes() {
        assert_eq!(
            read(&json!({"metadata": {}, "status": "Success"})),
            Ended::Exited(0)
        );
        for code in [1, 7, 126, 137, 255] {
            assert_eq!(exited(&code.to_string()), Ended::Exited(code));
        }
        for wrong in ["", "-1", "256", "x", "1.5", "99999999999999999999"] {
            assert!(matches!(exited(wrong), Ended::Failed(_)), "{wrong}");
        }
    }

    #[test]
    fn a_program_that_cannot_be_run_ends_as_in_a_shell() {
        let refused = |text: &str| {
            let start = "error executing command in container: failed to exec in container: failed to start exec \"1\"";
            let message = format!("{start}: unable to start container process: {text}: unknown");
            read(&json!({"status": "Failure", "reason": "InternalError", "message": message}))
        };
        for (text, wanted) in [
            ("exec: \"x\": executable file not found in $PATH", 127),
            ("exec: \"/x\": stat /x: no such file or directory", 127),
            ("exec: \"/etc/passwd\": permission denied", 126),
            ("exec /x: exec format error", 126),
        ] {
            let ended = refused(text);
            assert!(
                matches!(&ended, Ended::NotRun(code, said) if *code == wanted && said.contains(text))
            );
        }
        assert!(matches!(
            refused("no space left on device"),
            Ended::Failed(_)
        ));
    }

    #[test]
    fn failures_of_the_cluster_are_no_exit_codes() {
        for message in [
            "error dialing backend: dial tcp: connect: no such file or directory",
            "container not found (\"sandbox\")",
            "",
        ] {
            let status = json!({"status": "Failure", "code": 500, "message": message});
            assert_eq!(read(&status), Ended::Failed(message.to_owned()));
        }
    }

    #[test]
    fn garbage_is_no_exit_code() {
        for garbage in [
            "",
            "{",
            "[]",
            "null",
            "7",
            "{}",
            r#"{"status":"Fine"}"#,
            r#"{"status":7}"#,
        ] {
            assert!(
                matches!(parse(garbage.as_bytes()), Ended::Failed(_)),
                "{garbage}"
            );
        }
        let long = json!({"status": "Failure", "message": "ä".repeat(MESSAGE_BYTES)});
        let Ended::Failed(message) = read(&long) else {
            panic!("no failure");
        };
        assert!(message.len() <= MESSAGE_BYTES);
    }

    proptest! {
        #[test]
        fn only_a_success_is_zero(
            status in "Success|Failure|success|",
            reason in "NonZeroExitCode|InternalError|",
            code in "[0-9]{0,4}",
            message in ".{0,80}",
        ) {
            let causes = json!([{"reason": "ExitCode", "message": code}]);
            let ended = read(&json!({
                "status": status, "reason": reason, "message": message,
                "details": {"causes": causes},
            }));
            match ended {
                Ended::Exited(0) => prop_assert!(
                    status == "Success" || code.parse::<u8>() == Ok(0)
                ),
                Ended::Exited(exit) => prop_assert_eq!(code.parse::<i32>(), Ok(exit)),
                Ended::NotRun(exit, _) => prop_assert!(exit == 126 || exit == 127),
                Ended::Failed(_) => prop_assert_ne!(status, "Success"),
            }
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let ended = parse(&bytes);
            prop_assert!(matches!(ended, Ended::Failed(said) if said.len() <= 3 * MESSAGE_BYTES));
        }
    }
}
