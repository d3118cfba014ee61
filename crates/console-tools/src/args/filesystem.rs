//! The arguments of the seven tools of the `filesystem` profile.
//!
//! Numbers are signed, so a negative one gets this profile's own message.

use schemars::JsonSchema;
use serde::Deserialize;

/// Default number of characters that `read_file` returns.
pub(crate) const MAX_READ_CHARS: i64 = 20_000;

fn max_read_chars() -> i64 {
    MAX_READ_CHARS
}

fn root() -> String {
    "/".to_owned()
}

fn everything() -> String {
    "**/*".to_owned()
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFileArgs {
    /// The file, as /mount/path.
    pub(crate) path: String,
    /// Maximum number of characters to return.
    #[serde(default = "max_read_chars")]
    pub(crate) max_chars: i64,
    /// How many characters to skip.
    #[serde(default)]
    pub(crate) offset: i64,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFileArgs {
    /// The file, as /mount/path.
    pub(crate) path: String,
    /// The whole content of the file.
    pub(crate) content: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFileArgs {
    /// The file, as /mount/path.
    pub(crate) path: String,
    /// The text to replace, exactly as in the file. It must occur only once.
    pub(crate) old_text: String,
    /// The text to put in its place.
    pub(crate) new_text: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFilesArgs {
    /// The directory, as /mount/path; / is every mount.
    #[serde(default = "root")]
    pub(crate) path: String,
    /// A glob relative to path: *, ?, [abc], [!abc], and ** for any directories.
    #[serde(default = "everything")]
    pub(crate) pattern: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteFileArgs {
    /// The file, as /mount/path.
    pub(crate) path: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveFileArgs {
    /// The file to move, as /mount/path.
    pub(crate) source: String,
    /// The new path, as /mount/path. It must not exist.
    pub(crate) destination: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CopyFileArgs {
    /// The file to copy, as /mount/path.
    pub(crate) source: String,
    /// The path of the copy, as /mount/path. It must not exist.
    pub(crate) destination: String,
}
