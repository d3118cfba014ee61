//! Stage `postgres`: tests `backend-state` with a real PostgreSQL.
//!
//! The stage starts its own server: a new cluster in a temporary directory that listens
//! only on a socket there, and is removed when the stage ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::scratch::Scratch;
use crate::test_all::cargo::{cargo, run_tests};
use crate::test_all::stage::{Ctx, Outcome};
use crate::workspace::Workspace;

/// Debian's directory for the programs of servers, with one subdirectory per version.
const SERVERS: &str = "/usr/lib/postgresql";

/// The user to run the server as if we are root, because it refuses to run as root.
const SERVER_USER: &str = "postgres";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let Some(programs) = newest_server(Path::new(SERVERS)) else {
        return Ok(Outcome::Skipped(format!("no server in {SERVERS}")));
    };
    let server = Server::start(&ctx.workspace, programs)?;
    let mut command = cargo(
        ctx,
        "test",
        &["--test", "it", "--", "--ignored", "needs_postgres"],
    )?;
    command.env("PGHOST", &*server.directory);
    command.envs([
        ("PGUSER", "postgres"),
        ("PGDATABASE", "postgres"),
        ("PGCLIENTENCODING", "UTF8"),
    ]);
    Ok(run_tests(&mut command)?.outcome())
}

/// Returns the directory with the programs of the newest server, if there is one.
fn newest_server(servers: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(servers).ok()?.filter_map(Result::ok);
    let programs = versions.map(|version| version.path().join("bin"));
    programs
        .filter(|programs| programs.join("pg_ctl").is_file())
        .max()
}

/// A running server. It is stopped and removed on drop.
#[derive(Debug)]
struct Server<'w> {
    workspace: &'w Workspace,
    programs: PathBuf,
    directory: Scratch,
    is_root: bool,
}

impl<'w> Server<'w> {
    fn start(workspace: &'w Workspace, programs: PathBuf) -> Result<Self> {
        let user = process::output(workspace.command("id")?.arg("-u"))?;
        let directory = Scratch::temporary("pg")?;
        let server = Self {
            workspace,
            programs,
            directory,
            is_root: user.trim() == "0",
        };
        if server.is_root {
            let mut chown = workspace.command("chown")?;
            process::run(chown.arg(SERVER_USER).arg(&*server.directory))?;
        }
        let data = server.directory.join("data");
        let mut initdb = server.command("initdb")?;
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8"]);
        initdb.args(["--locale=C", "--no-sync", "-D"]);
        process::output(initdb.arg(&data))?;
        let options = format!("-k {} -c listen_addresses=", server.directory.display());
        let log = server.directory.join("log");
        let mut start = server.command("pg_ctl")?;
        start.args(["-w", "-o", &options, "-l"]).arg(log);
        process::run(start.arg("-D").arg(&data).arg("start"))?;
        Ok(server)
    }

    /// Creates a command for a program of the server, run by a user that the server
    /// accepts.
    fn command(&self, program: &str) -> Result<Command> {
        let program = self.programs.join(program);
        if !self.is_root {
            return self.workspace.command(program);
        }
        let mut command = self.workspace.command("runuser")?;
        command.args(["-u", SERVER_USER, "--"]).arg(program);
        // The user may have no access to the current directory.
        command.current_dir(&*self.directory);
        Ok(command)
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let data = self.directory.join("data");
        let stopped = self.command("pg_ctl").and_then(|mut stop| {
            stop.args(["-w", "-m", "immediate", "-D"]).arg(&data);
            process::run(stop.arg("stop"))
        });
        if let Err(error) = stopped {
            eprintln!("error: cannot stop PostgreSQL: {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_servers_there_is_no_newest() {
        assert_eq!(newest_server(Path::new("/nonexistent")), None);
    }
}
