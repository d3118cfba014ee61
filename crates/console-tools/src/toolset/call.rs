//! Runs a single call: any input results in a [`Reply`].

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use backend_core::Quoted;
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::chat::Chat;
use super::environment::OfferedTools;
use super::registered_tool::RegisteredTool;
use crate::arguments::{self, Arguments};
use crate::context::Observer;
use crate::reply::{FailureClass, Reply, ToolError, ToolResult, fixable};

const TARGET: &str = "console_tools";

/// Maximum length of a name that is compared with those of the tools.
const NAME_BYTES: usize = 64;

impl Chat {
    /// Calls a tool. The reply reports every outcome: nothing that a model, a tool or a
    /// backend does ends a run. To cancel a call, drop the future.
    ///
    /// `arguments` is the JSON that the model wrote, or a [`serde_json::Value`].
    pub async fn call<'a>(&self, name: &str, arguments: impl Into<Arguments<'a>>) -> Reply {
        self.call_with(name, arguments.into(), None).await
    }

    /// Calls a tool and passes the output of commands to `observer` as it arrives.
    pub async fn call_observed<'a>(
        &self,
        name: &str,
        arguments: impl Into<Arguments<'a>>,
        observer: Arc<dyn Observer>,
    ) -> Reply {
        self.call_with(name, arguments.into(), Some(observer)).await
    }

    async fn call_with(
        &self,
        name: &str,
        arguments: Arguments<'_>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Reply {
        let shown = beginning(name);
        let session = &*self.caller().session;
        let span = tracing::debug_span!(target: TARGET, "tool_call", tool = ?shown, session);
        let started = Instant::now();
        let result = AssertUnwindSafe(self.try_call(name, arguments, observer))
            .catch_unwind()
            .instrument(span.clone())
            .await;
        let reply = self.reply(name, result);
        span.in_scope(|| {
            let elapsed = started.elapsed();
            let outcome = reply.failure.map_or("success", FailureClass::as_str);
            tracing::debug!(target: TARGET, outcome, ?elapsed, "called");
        });
        reply
    }

    /// Converts a result, or a panic, into the reply for the model.
    pub(super) fn reply(&self, name: &str, result: std::thread::Result<ToolResult>) -> Reply {
        let result = result.unwrap_or_else(|_| {
            let (shown, session) = (beginning(name), &*self.caller().session);
            tracing::error!(target: TARGET, tool = ?shown, session, "the tool panicked");
            let text = format!("{} crashed; try a different approach", Quoted::new(shown));
            Err(ToolError::environment(text))
        });
        let options = self.options();
        Reply::for_profile(options.profile, result).within(options.limits.reply_bytes)
    }

    async fn try_call(
        &self,
        name: &str,
        arguments: Arguments<'_>,
        observer: Option<Arc<dyn Observer>>,
    ) -> ToolResult {
        let arguments = arguments::read(arguments, self.options().limits.argument_bytes)?;
        let environment = self.environment().await?;
        let entry = self.entry(name, &environment.tools)?;
        let mut gate = self.gate(&environment, entry);
        gate.observer = observer;
        entry.runner.call(entry, &gate, arguments).await
    }

    /// Returns the tool of this name, if it is offered.
    pub(super) fn entry(
        &self,
        name: &str,
        tools: &OfferedTools,
    ) -> Result<&RegisteredTool, ToolError> {
        let inner = &self.toolset().0;
        let found = inner.index.get(name).copied();
        let offered = found.filter(|index| tools.offers(*index));
        let entry = offered.and_then(|index| inner.entries.get(index));
        entry.ok_or_else(|| match found {
            Some(_) => not_offered(name, tools),
            None => unknown(name, tools),
        })
    }
}

/// Returns the significant part of a name.
fn beginning(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES)]
}

fn not_offered(name: &str, tools: &OfferedTools) -> ToolError {
    let name = Quoted::new(name);
    let tools = the_tools(tools);
    ToolError::refused(format!(
        "Permission denied: {name} is not offered here; {tools}"
    ))
}

fn unknown(name: &str, tools: &OfferedTools) -> ToolError {
    let nearest = nearest(name, tools);
    let meant = match nearest.as_slice() {
        [] => String::new(),
        nearest => format!(" (did you mean {}?)", nearest.join(" or ")),
    };
    let name = Quoted::new(name);
    fixable!("there is no tool {name}{meant}; {}", the_tools(tools))
}

fn the_tools(tools: &OfferedTools) -> String {
    let names: Vec<&str> = tools.definitions.iter().map(|tool| &*tool.name).collect();
    if names.is_empty() {
        "no tools are available here; answer without one".to_owned()
    } else {
        format!("call one of {}", names.join(", "))
    }
}

/// Returns the tools with the most similar names, at most three.
fn nearest<'t>(name: &str, tools: &'t OfferedTools) -> Vec<&'t str> {
    let name = beginning(name).to_ascii_lowercase();
    // By edit distance it would be write_file, which discards the rest of the file.
    let twin = match name.as_str() {
        "edit_file" => "hashline_edit",
        "hashline_edit" => "edit_file",
        _ => "",
    };
    if let Some(twin) = tools.definitions.get(twin) {
        return vec![&twin.name];
    }
    let mut near: Vec<(usize, &str)> = tools
        .definitions
        .iter()
        .map(|tool| (distance(&name, &tool.name), &*tool.name))
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(2))
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

fn distance(one: &str, two: &str) -> usize {
    strsim::generic_levenshtein(&one.as_bytes().to_vec(), &two.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances() {
        for (one, two, far) in [
            ("", "", 0),
            ("", "ls", 2),
            ("ls", "", 2),
            ("reed_file", "read_file", 1),
            ("grep", "grpe", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, two), far, "{one} {two}");
        }
    }
}
