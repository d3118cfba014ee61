//! The arguments of the tools that run commands.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// Distinguishes `null` from a missing field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteArgs {
    /// The command line, run by `sh -c`.
    pub(crate) command: String,
    /// Seconds that the command may run, at most 86400; null for no limit.
    /// Default: {execute_seconds}.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Option<i64>", range(min = 1, max = 86400))]
    pub(crate) timeout: Option<Option<i64>>,
    /// The directory to run it in. Default: the working directory.
    pub(crate) directory: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunInBackgroundArgs {
    /// The command line, run by `sh -c`.
    pub(crate) command: String,
    /// The directory to run it in. Default: the working directory.
    pub(crate) directory: Option<String>,
    /// Run it in a terminal of 24 rows and 80 columns, for programs that need one, such
    /// as editors. read_output then shows the screen, and write_input takes keys.
    #[serde(default)]
    pub(crate) terminal: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadOutputArgs {
    /// The shell's id, such as `bg_1`.
    pub(crate) shell_id: String,
    /// Seconds to wait for output or the shell's end if there is nothing new yet,
    /// at most 600. Default: 0.
    #[schemars(range(min = 0, max = 600))]
    pub(crate) wait_seconds: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteInputArgs {
    /// The shell's id, such as `bg_1`.
    pub(crate) shell_id: String,
    /// The text, passed on exactly: end it with a newline if the command reads
    /// lines. May be empty with `keys` or `close`.
    #[serde(default)]
    pub(crate) input: String,
    /// Keys to press in a terminal after the text, by name: Enter, Tab, Escape, Up,
    /// PageDown, F1, Ctrl-C, Alt-x and the like.
    #[serde(default)]
    pub(crate) keys: Vec<String>,
    /// Close the standard input afterwards, so that the command reads the end of its
    /// input. In a terminal: press Ctrl-D.
    #[serde(default)]
    pub(crate) close: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KillShellArgs {
    /// The shell's id, such as `bg_1`.
    pub(crate) shell_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListShellsArgs {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_timeout_differs_from_none_given() {
        let timeout = |json: &str| {
            let args: ExecuteArgs = serde_json::from_str(json).unwrap();
            args.timeout
        };
        assert_eq!(timeout(r#"{"command":"x"}"#), None);
        assert_eq!(timeout(r#"{"command":"x","timeout":null}"#), Some(None));
        assert_eq!(timeout(r#"{"command":"x","timeout":5}"#), Some(Some(5)));
    }
}
