//! `--log`: the log on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::exit::{Failure, usage};

/// The default filter: replies have the refusals, responses the errors of clients.
const DEFAULT: &str = "warn,permissions=error,rmcp::service=error";

/// Starts the log at a level, or at levels by module: `warn,backend_local=debug`.
pub(crate) fn start(filter: Option<&str>) -> Result<(), Failure> {
    let text = filter.unwrap_or(DEFAULT);
    let filter = read(text).ok_or_else(|| {
        usage!(
            "{text:?} is not a valid log level or filter; use off, error, warn, info, debug or trace, \
             or something like warn,backend_local=debug"
        )
    })?;
    // A log in a file should not have colours.
    let colours = std::io::stderr().is_terminal()
        && anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colours);
    let log = tracing_subscriber::registry().with(lines).with(filter);
    // An existing logger stays.
    let _ = log.try_init();
    Ok(())
}

/// Parses a filter. A word alone must be a level, not the name of a module.
fn read(text: &str) -> Option<Targets> {
    let alone = |part: &&str| !part.contains('=');
    let mut words = text.split(',').filter(alone);
    let level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let levels = words.all(|word| level(word.trim()));
    text.parse().ok().filter(|_| levels)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn levels_and_filters() {
        for good in [
            "off",
            "info",
            "warn,backend_local=debug",
            "console_tools=trace",
        ] {
            assert!(read(good).is_some(), "{good}");
        }
        for bad in ["", "bananas", "backend_local=loud", "warn,backend_local"] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
