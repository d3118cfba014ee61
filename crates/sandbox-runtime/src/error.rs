//! The errors of this crate. They name no backend: its caller adds it.

use backend_core::{Error, ErrorKind, Quoted};

/// The error for an invalid runtime or file of runtimes.
pub(crate) fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message.into())
}

/// The error for a runtime with this name.
pub(crate) fn of_runtime(name: &str, problem: &str) -> Error {
    config(format!("runtime {}: {problem}", Quoted::new(name)))
}

/// The error for a name that no runtime has.
pub(crate) fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.into_iter().collect();
    config(format!(
        "no runtime is called {}; choose one of {}",
        Quoted::new(name),
        known.join(", ")
    ))
}
