//! Connects to a socket of the host that is mounted in the sandbox: it is faster than the
//! streams that a service carries.

use std::io;
use std::path::Path;

use backend_core::Result;
use sandbox_wire::Token;
use tokio::net::UnixStream;

use crate::stdio::{Input, Output};

/// Reads the token from standard input, and shows it to the host. Returns `None` if that
/// cannot be reached: the standard streams are still there.
pub(crate) async fn connect(path: &Path, input: &mut Input) -> Result<Option<(Input, Output)>> {
    // Every command can read the arguments and the variables of a program, but not this.
    let token = Token::read_line(input).await?;
    let connected = async {
        let mut stream = UnixStream::connect(path).await?;
        token.present(&mut stream).await?;
        io::Result::Ok(stream)
    };
    let Ok(stream) = connected.await else {
        return Ok(None);
    };
    let (reader, writer) = stream.into_split();
    Ok(Some((Box::new(reader), Box::new(writer))))
}
