//! Files that outlive their container: a named volume of Docker, in one container after
//! another.
//!
//! Run it with `cargo run --example volume_persistence -- IMAGE`, for example with
//! `python:3.12-slim`. It needs a Docker daemon, and removes the containers but not the
//! volume `agentbox-example`: run it again, and it counts on.
//!
//! Look at `visit`: the container is purged each time, with everything in it but the
//! directory where the volume is. For sessions of many users, an engine does this with a
//! directory for each: see `DockerEngineBuilder::root`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use backend_core::ops::{Command, StopMode};
use backend_core::{BackendExt as _, Sandbox as _};
use backend_docker::{Daemon, DockerBuilder, DockerSandbox, Volume};
use sandbox_wire::agent::AgentBinary;

/// The directory where commands start, and where the volume is.
const WORKSPACE: &str = "/workspace";

/// Describes a container of this image.
fn container(image: &str) -> Result<DockerBuilder, Box<dyn Error>> {
    let builder = DockerSandbox::builder()
        .daemon(Daemon::from_env()?)
        .image(image);
    // Without an agent binary beside this program, the image's shell is used instead.
    Ok(match AgentBinary::locate_from_env()? {
        Some(agent) => builder.agent(agent),
        None => builder,
    })
}

/// Adds a line in a new container. Returns all lines, and whether a file outside of the
/// volume was found from an earlier container.
pub(crate) async fn visit(
    container: DockerBuilder,
    volume: &str,
) -> Result<(usize, bool), Box<dyn Error>> {
    let sandbox = container.volume(Volume::named(volume, WORKSPACE)).build()?;
    let work = async {
        let line = "echo visited >> visits.txt; ls /tmp/outside 2>/dev/null; touch /tmp/outside";
        let found = sandbox.execute(Command::new(line)).await?;
        let visits = sandbox.read_to_string("visits.txt").await?;
        Ok::<_, backend_core::Error>((visits.lines().count(), !found.stdout.text().is_empty()))
    };
    let visits = work.await;
    // Removes the container whatever happened, and leaves the volume.
    sandbox.stop(StopMode::Purge).await?;
    Ok(visits?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some(image) = std::env::args().nth(1) else {
        println!("This needs Docker; name an image: volume_persistence IMAGE");
        return Ok(());
    };
    for _ in 0..2 {
        let (visits, outside) = visit(container(&image)?, "agentbox-example").await?;
        println!("a new container: visit {visits}; a file outside of the volume: {outside}");
        assert!(!outside);
    }
    println!("To remove the files: docker volume rm agentbox-example");
    Ok(())
}
