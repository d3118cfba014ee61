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

/// Builds a runtime's image unless it exists, shows the progress, and returns the
/// image's name.
pub(crate) async fn build(
    daemon: Daemon,
    runtime: Runtime,
    options: BuildOptions,
) -> Result<String, Failure> {
    let mut display = ProgressDisplay::new(&runtime.name);
    let mut build = image::build(&daemon, &runtime, &options)?;
    while let Some(event) = build.next().await {
        match event {
            BuildEvent::Pulling { image } => display.pulling(&image),
            BuildEvent::Step {
                number,
                total,
                name,
                ..
            } => display.step(number, total, &name),
            BuildEvent::Log { line } => display.line(&line),
            _ => {}
        }
    }
    Ok(build.finish().await?)
}

/// The progress display.
struct ProgressDisplay {
    name: String,
    /// Created when there is something to show.
    bar: Option<ProgressBar>,
    on_terminal: bool,
}

impl ProgressDisplay {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            bar: None,
            on_terminal: std::io::stderr().is_terminal(),
        }
    }

    fn pulling(&mut self, image: &str) {
        let image = one_line(image);
        if self.on_terminal {
            let bar = self.bar.get_or_insert_with(|| bar(&self.name));
            bar.set_message(format!("pulling {image}"));
        } else {
            output::note(&format!("agentbox: pulling {image}"));
        }
    }

    fn step(&mut self, number: u32, of: u32, what: &str) {
        let what = one_line(what);
        if !self.on_terminal {
            let name = &self.name;
            output::note(&format!(
                "agentbox: building {name}, step {number}/{of}: {what}"
            ));
            return;
        }
        let bar = self.bar.get_or_insert_with(|| bar(&self.name));
        bar.set_length(u64::from(of));
        bar.set_position(u64::from(number.saturating_sub(1)));
        bar.set_message(what);
    }

    /// Shows a line of a step's output briefly. It is not kept.
    fn line(&mut self, line: &str) {
        let line = one_line(line);
        if let Some(bar) = &self.bar
            && !line.is_empty()
        {
            bar.set_message(line);
        }
    }
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
