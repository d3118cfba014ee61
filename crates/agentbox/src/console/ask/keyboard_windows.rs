//! Consoles of Windows, which are not asked: what was typed before a question cannot be
//! dropped without code that this project does not allow, and would count as its answer.

use std::io;

fn unable() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "questions cannot be asked in a console of Windows; allow it with a rule in the \
         permissions file",
    )
}

pub(super) fn forget_typed() -> io::Result<()> {
    Err(unable())
}

pub(super) async fn line() -> io::Result<String> {
    std::future::ready(Err(unable())).await
}
