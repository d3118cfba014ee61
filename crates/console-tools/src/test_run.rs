//! Calls of tools with JSON, for tests.

/// Awaits a method that calls a tool: `run!(tree.text::<LsTool>, {"path": "src"})`.
macro_rules! run {
    ($fixture:ident.$method:ident::<$tool:ty>, $args:tt) => {
        $fixture.$method::<$tool>(serde_json::json!($args)).await
    };
}
