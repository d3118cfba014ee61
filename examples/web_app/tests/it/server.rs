//! The program under test.

use std::path::Path;

use examples::web::tester::{self, Server};
use tempfile::TempDir;
use tokio::process::Command;

/// Returns the program with its data in this directory.
pub(crate) fn program(data: &Path) -> Command {
    tester::program(env!("CARGO_BIN_EXE_web_app"), data)
}

/// Starts the program with local sandboxes.
pub(crate) async fn start(data: &Path, options: &[&str]) -> Server {
    let mut program = program(data);
    Server::launch(program.args(["--backend", "local"]).args(options)).await
}

/// Starts a server with new data, which lasts as long as the directory.
pub(crate) async fn server() -> (TempDir, Server) {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]).await;
    (data, server)
}
