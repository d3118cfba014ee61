//! [`Disposal`]: the end of machines whose owners are gone.

use std::collections::BTreeSet;
use std::sync::Mutex;

use backend_core::Result;
use backend_core::ops::StopMode;
use backend_core::sync::lock;
use sandbox_wire::engine;

/// The action to take on a machine when its owner is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposal {
    /// Remove it.
    Remove,
    /// Stop it and keep it.
    Stop,
    /// Leave it alone: it has a name, and other programs can use it.
    Keep,
}

impl Disposal {
    /// Returns the text that [`of`](Self::of) reads.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Stop => "stop",
            Self::Keep => "keep",
        }
    }

    /// Reads a machine's label. Those with an unknown value, or none, are kept.
    pub fn of(label: Option<&String>) -> Self {
        match label.map(String::as_str) {
            Some("remove") => Self::Remove,
            Some("stop") => Self::Stop,
            _ => Self::Keep,
        }
    }

    /// Returns how the machine is stopped; `None` if it is left alone.
    pub fn stop_mode(self) -> Option<StopMode> {
        match self {
            Self::Remove => Some(StopMode::Purge),
            Self::Stop => Some(StopMode::Keep),
            Self::Keep => None,
        }
    }
}

/// Disposes of leftover machines in the background, once for each `place` that has some.
/// `reap` returns their number, and `what` is the word for them, such as `containers`.
pub fn reap_once(
    place: String,
    what: &'static str,
    reap: impl Future<Output = Result<usize>> + Send + 'static,
) {
    static DONE: Mutex<BTreeSet<(&str, String)>> = Mutex::new(BTreeSet::new());
    if !lock(&DONE).insert((what, place)) {
        return;
    }
    let reap = async move {
        match reap.await {
            Ok(0) => {}
            Ok(reaped) => tracing::info!("{reaped} leftover {what} were reaped"),
            Err(error) => tracing::warn!("leftover {what} were not reaped: {}", error.chain()),
        }
    };
    if let Ok(handle) = engine::handle() {
        backend_run::spawn(handle, reap);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use backend_core::Error;

    use super::*;

    #[test]
    fn what_is_not_understood_is_kept() {
        for (disposal, mode) in [
            (Disposal::Remove, Some(StopMode::Purge)),
            (Disposal::Stop, Some(StopMode::Keep)),
            (Disposal::Keep, None),
        ] {
            assert_eq!(Disposal::of(Some(&disposal.as_str().to_owned())), disposal);
            assert_eq!(disposal.stop_mode(), mode);
        }
        assert_eq!(Disposal::of(Some(&"burn".to_owned())), Disposal::Keep);
        assert_eq!(Disposal::of(None), Disposal::Keep);
    }

    /// Without an async runtime of the caller. A failure is not repeated: every start would
    /// wait for it again.
    #[test]
    fn leftovers_are_reaped_once_for_each_place() {
        let (sender, reaped) = mpsc::channel();
        let reap = |name: &'static str, result: Result<usize>| {
            let sender = sender.clone();
            async move {
                sender.send(name).unwrap();
                result
            }
        };
        let refused = Err(Error::unavailable("it does not answer"));
        reap_once("here".into(), "machines", reap("first", refused));
        reap_once("here".into(), "machines", reap("again", Ok(1)));
        reap_once("here".into(), "volumes", reap("of another kind", Ok(0)));
        reap_once("there".into(), "machines", reap("elsewhere", Ok(2)));
        drop(sender);
        // Ends when all of them have ended.
        let mut reaped: Vec<_> = reaped.iter().collect();
        reaped.sort_unstable();
        assert_eq!(reaped, ["elsewhere", "first", "of another kind"]);
    }
}
