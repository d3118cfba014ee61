//! Calls of tools with JSON, for tests.

use serde_json::Value;

use crate::context::Context;
use crate::reply::{Reply, ToolError};
use crate::tool::Builtin;

/// Awaits a method that calls a tool: `run!(tree.text::<LsTool>, {"path": "src"})`.
macro_rules! run {
    ($fixture:ident.$method:ident::<$tool:ty>, $args:tt) => {
        $fixture.$method::<$tool>(serde_json::json!($args)).await
    };
}

/// A fixture that calls tools.
pub(crate) trait Calls: Sync {
    fn context(&self) -> Context;

    async fn try_call<T: Builtin>(&self, args: Value) -> Result<Reply, ToolError> {
        let args = serde_json::from_value(args).unwrap();
        T::run(&self.context(), args).await
    }

    async fn call<T: Builtin>(&self, args: Value) -> Reply {
        let reply = self.try_call::<T>(args).await.unwrap();
        assert!(reply.is_success());
        reply
    }

    async fn text<T: Builtin>(&self, args: Value) -> String {
        self.call::<T>(args).await.text
    }
}
