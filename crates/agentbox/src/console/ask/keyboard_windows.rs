//! Windows consoles, where no questions are asked. Input typed before a question could
//! not be discarded without unsafe code, which this project forbids, and would count as
//! its answer.

use std::io;

fn unable() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "questions cannot be asked in a console of Windows; allow it with a rule in the \
         permissions file",
    )
}

pub(super) fn discard_input() -> io::Result<()> {
    Err(unable())
}

pub(super) async fn read_answer() -> io::Result<String> {
    std::future::ready(Err(unable())).await
}
