//! Records successive calls of a tool as text, for snapshots.

use std::fmt::Write as _;
use std::sync::Arc;

use backend_core::Backend;
use console_tools::{Chat, Toolset};
use permissions::Policy;
use permissions::approval::ApproveAll;
use regex::Regex;
use serde_json::{Value, json};

use super::valid;

/// Successive calls, recorded as text.
pub(crate) struct Script {
    pub(crate) chat: Chat,
    text: String,
    tool: &'static str,
    succeeded: bool,
}

impl Script {
    pub(crate) fn on(backend: Arc<dyn Backend>, mut options: Value) -> Self {
        options["include_file_operations"] = json!(true);
        let toolset = Toolset::builder(backend)
            .options(serde_json::from_value(options).unwrap())
            .policy(Policy::allow_all())
            .approver(ApproveAll);
        Self {
            chat: toolset.build().unwrap().conversation("c"),
            text: String::new(),
            tool: "",
            succeeded: false,
        }
    }

    pub(crate) fn of(mut self, tool: &'static str) -> Self {
        self.tool = tool;
        self
    }

    /// Calls the tool that the script is about.
    pub(crate) async fn call(&mut self, arguments: Value) {
        self.call_other(self.tool, arguments).await;
    }

    /// Makes several calls, one after the other.
    pub(crate) async fn calls(&mut self, calls: impl IntoIterator<Item = Value>) {
        for arguments in calls {
            self.call(arguments).await;
        }
    }

    /// Calls several tools, one after the other.
    pub(crate) async fn calls_of(
        &mut self,
        calls: impl IntoIterator<Item = (&'static str, Value)>,
    ) {
        for (tool, arguments) in calls {
            self.call_other(tool, arguments).await;
        }
    }

    pub(crate) async fn call_other(&mut self, tool: &str, arguments: Value) {
        let definitions = self.chat.definitions().await.unwrap();
        let _ = writeln!(self.text, ">>> {tool} {arguments}");
        let reply = self.chat.call(tool, arguments).await;
        let schema = definitions
            .get(tool)
            .expect("it is offered")
            .output_schema();
        match reply.failure {
            Some(class) => {
                let _ = writeln!(self.text, "({class:?}) {}\n", reply.text);
                assert_eq!(reply.structured, None, "{}", reply.text);
                assert!(reply.text.starts_with("Error: "), "{}", reply.text);
                assert!(reply.text.len() < 8_000, "{}", reply.text.len());
            }
            None => {
                self.succeeded |= tool == self.tool;
                let _ = writeln!(self.text, "{}\n", reply.text);
                let schema = schema.as_ref().expect("every tool says what its data is");
                let data = reply.structured.expect("a success has data");
                let problems = valid::problems(schema, &data);
                assert!(problems.is_empty(), "{tool}: {problems:?}");
            }
        }
    }

    /// Returns the text, with varying parts masked.
    pub(crate) fn end(self) -> String {
        assert!(self.succeeded, "no call of {} succeeded", self.tool);
        let pid = Regex::new(r"\(pid \d+\)").unwrap();
        pid.replace_all(&self.text, "(pid PID)")
            .trim_end()
            .to_owned()
    }
}
