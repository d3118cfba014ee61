//! Shows the progress of a build: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal as _;
use std::time::Duration;

use backend_docker::image::{self, BuildEvent, BuildOptions};
use backend_docker::{Daemon, Runtime};
use futures::StreamExt as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::exit::Failure;
use crate::output;
use crate::terminal::safe::sanitized;

/// Interval at which the bar moves.
const TICK: Duration = Duration::from_millis(120);

/// Builds a runtime's image unless it exists. Returns the image's name.
pub(crate) async fn build(
    daemon: Daemon,
    runtime: Runtime,
    options: BuildOptions,
) -> Result<String, Failure> {
    let on_terminal = std::io::stderr().is_terminal();
    let mut shown: Option<ProgressBar> = None;
    let mut build = image::build(&daemon, &runtime, &options)?;
    while let Some(event) = build.next().await {
        match event {
            BuildEvent::Pulling { image } => {
                let text = format!("pulling {}", one_line(&image));
                if on_terminal {
                    let bar = shown.get_or_insert_with(|| bar(&runtime.name));
                    bar.set_message(text);
                } else {
                    output::note(&format!("agentbox: {text}"));
                }
            }
            BuildEvent::Step {
                number,
                total,
                name,
                ..
            } => {
                let (runtime, step) = (&runtime.name, one_line(&name));
                if on_terminal {
                    let bar = shown.get_or_insert_with(|| bar(runtime));
                    bar.set_length(u64::from(total));
                    bar.set_position(u64::from(number.saturating_sub(1)));
                    bar.set_message(step);
                } else {
                    output::note(&format!(
                        "agentbox: building {runtime}, step {number}/{total}: {step}"
                    ));
                }
            }
            // A line of a step's output is shown briefly, and not kept.
            BuildEvent::Log { line } => {
                let line = one_line(&line);
                if let Some(bar) = shown.as_ref().filter(|_| !line.is_empty()) {
                    bar.set_message(line);
                }
            }
            _ => {}
        }
    }
    Ok(build.finish().await?)
}

fn bar(name: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        .with_finish(ProgressFinish::AndClear);
    let style = ProgressStyle::with_template("{prefix} {bar:24} {pos}/{len} {elapsed} {wide_msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.set_prefix(format!("building {name}"));
    bar.enable_steady_tick(TICK);
    bar
}

/// Returns the text without control characters, on one line.
fn one_line(text: &str) -> String {
    let text: Vec<&str> = text.split_whitespace().collect();
    sanitized(&text.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_build_cannot_draw_on_the_terminal() {
        assert_eq!(one_line("a\r\n\u{1b}[2J  b\n"), "a \u{fffd}[2J b");
    }
}
