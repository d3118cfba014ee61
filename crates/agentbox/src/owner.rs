//! The owners of sessions: the names of clients' tokens.

use sessions::SessionId;

/// The owner of sessions of clients whose token has no name.
pub(crate) const UNNAMED: &str = "mcp";

/// Maximum length of a name. A session's id begins with it and has room for more.
pub(crate) const MAX_NAME: usize = 32;

/// Whether a text can be a client's name. It has no point: after one, an id of a session
/// can have more.
pub(crate) fn is_name(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.len() <= MAX_NAME
        && text.bytes().all(rest)
        && text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// Whether clients with a name may have a session: the one of that name, and those whose ids
/// begin with it and a point.
pub(crate) fn may_have(name: &str, id: &SessionId) -> bool {
    let rest = id.as_str().strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
