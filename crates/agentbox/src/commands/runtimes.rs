//! `agentbox runtimes`: the environments that containers can be created from.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backend_docker::{Daemon, Runtime, image};
use clap::Subcommand;
use tempfile::NamedTempFile;

use crate::app::App;
use crate::backend::docker::settings::DockerSettings;
use crate::exit::{self, Failure, environment, usage};
use crate::output;
use crate::progress;
use crate::signals::Interrupts;

/// Options of `runtimes`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the runtimes: those of this program, and those of the file that
    /// docker.runtimes names.
    List {
        /// Prints them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows what is in a runtime.
    Show {
        /// The runtime's name.
        name: String,
        /// Prints the Dockerfile that it is built from.
        #[arg(long)]
        dockerfile: bool,
    },
    /// Builds a runtime's image unless it is there, and prints its name.
    Build {
        /// The runtime's name.
        name: String,
        /// Gives the image this name too, such as that of a registry which a cluster pulls
        /// from.
        #[arg(long, value_name = "REF")]
        tag: Option<String>,
        /// Writes the image to this file, for docker load or ctr images import.
        #[arg(long = "output", value_name = "TAR")]
        file: Option<PathBuf>,
    },
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    let docker = DockerSettings::configured(&app.config.backends)?;
    let runtimes = docker.runtimes()?;
    match args.command {
        Action::List { json } => {
            let all: Vec<Runtime> = runtimes.iter().collect();
            if json {
                output::print_json(&all)?;
            } else {
                let rows = all.iter();
                let rows = rows.map(|one| (one.name.as_str(), one.description.clone()));
                output::print(&output::table(rows))?;
            }
        }
        Action::Show { name, dockerfile } => {
            let runtime = runtimes.get(&name)?;
            let text = if dockerfile {
                built_from(&runtime)?
            } else {
                shown(&runtime)?
            };
            output::print(&text)?;
        }
        Action::Build { name, tag, file } => {
            let runtime = runtimes.get(&name)?;
            let interrupts = Interrupts::watch()?;
            let options = docker.build_options()?;
            let daemon = docker.daemon()?;
            let build = async {
                let mut image = progress::build(daemon.clone(), runtime, options).await?;
                if let Some(tag) = tag {
                    image::tag(&daemon, &image, &tag).await?;
                    image = tag;
                }
                if let Some(file) = file {
                    save(&daemon, &image, &file).await?;
                }
                Ok::<_, Failure>(image)
            };
            output::print(&interrupts.unless(build).await??)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes an image to a file, which is there only when it is whole.
async fn save(daemon: &Daemon, image: &str, file: &Path) -> Result<(), Failure> {
    let cannot = |error: io::Error| {
        let shown = file.display();
        environment!("{shown} cannot be written: {error}; name another file with --output")
    };
    let directory = file.parent().filter(|above| !above.as_os_str().is_empty());
    let partial = NamedTempFile::new_in(directory.unwrap_or(Path::new("."))).map_err(cannot)?;
    image::save(daemon, image, partial.path()).await?;
    partial.persist(file).map_err(|error| cannot(error.error))?;
    Ok(())
}

fn built_from(runtime: &Runtime) -> Result<String, Failure> {
    let text = image::dockerfile(runtime, image::Builder::Auto)?;
    text.ok_or_else(|| {
        let (name, image) = (&runtime.name, runtime.image.as_deref().unwrap_or_default());
        usage!("{name} is the image {image} as it is; nothing is built for it").code(exit::FIXABLE)
    })
}

/// Formats a runtime as in a file of runtimes.
fn shown(runtime: &Runtime) -> Result<String, Failure> {
    let cannot = |error: toml::ser::Error| environment!("no TOML: {error}");
    let mut table = toml::Table::try_from(runtime).map_err(cannot)?;
    table.remove("name");
    let named = toml::Table::from_iter([(runtime.name.clone(), table.into())]);
    let all = toml::Table::from_iter([("runtimes".to_owned(), named.into())]);
    toml::to_string(&all).map_err(cannot)
}
