//! The server that the protocol's conformance suite runs against.
//!
//! The suite calls its own tools by name. Here they are tools of the host, so their
//! replies take the same path as those of every other tool.
//!
//! ```text
//! conformance ADDRESS
//! ```

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backend_core::{BackendExt as _, Error};
use backend_state::StateBackend;
use console_mcp::{Client, Connect, HttpSettings, Settings, serve_http};
use console_tools::{
    Annotations, Block, Context, Definition, Reply, ToolError, ToolHandler, ToolResult, Toolset,
};
use permissions::Op;
use permissions::tool::{ToolSetting, ToolSettings};
use serde_json::{Value, json};

/// An image of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\
    \xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// One of the suite's tools.
#[derive(Debug, Clone, Copy)]
enum Fixture {
    Text,
    Image,
    Resource,
    Mixed,
    Error,
    Logging,
    Progress,
    Elicitation,
    Schema,
}

const ALL: [Fixture; 9] = [
    Fixture::Text,
    Fixture::Image,
    Fixture::Resource,
    Fixture::Mixed,
    Fixture::Error,
    Fixture::Logging,
    Fixture::Progress,
    Fixture::Elicitation,
    Fixture::Schema,
];

/// The tool that asks the user.
const ASKS: &str = "test_elicitation";

impl Fixture {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "test_simple_text",
            Self::Image => "test_image_content",
            Self::Resource => "test_embedded_resource",
            Self::Mixed => "test_multiple_content_types",
            Self::Error => "test_error_handling",
            Self::Logging => "test_tool_with_logging",
            Self::Progress => "test_tool_with_progress",
            Self::Elicitation => ASKS,
            Self::Schema => "json_schema_2020_12_tool",
        }
    }

    fn schema(self) -> Value {
        let text = json!({"type": "string"});
        match self {
            Self::Elicitation => json!({"type": "object", "properties": {"message": text}}),
            Self::Schema => json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {"type": "object",
                    "properties": {"street": text, "city": text}}},
                "properties": {"name": text, "address": {"$ref": "#/$defs/address"}},
                "additionalProperties": false,
            }),
            _ => json!({"type": "object", "properties": {}}),
        }
    }
}

fn image() -> Block {
    Block::Image {
        media_type: "image/png".into(),
        data: PIXEL.into(),
    }
}

fn document() -> Block {
    Block::Document {
        media_type: "application/pdf".into(),
        data: b"%PDF-1.4"[..].into(),
        name: "document.pdf".to_owned(),
    }
}

#[async_trait]
impl ToolHandler for Fixture {
    fn definition(&self) -> Definition {
        let hints = Annotations::of(&[Op::Read]);
        Definition::new(
            self.name(),
            "A tool of the conformance suite.",
            self.schema(),
            hints,
        )
    }

    fn operations(&self) -> &'static [Op] {
        &[Op::Read]
    }

    async fn call(&self, context: &Context, _arguments: Value) -> ToolResult {
        let reply = Reply::text("This is a simple text response for testing.");
        Ok(match self {
            Self::Text | Self::Elicitation | Self::Schema => reply,
            Self::Image => reply.block(image()),
            Self::Resource => reply.block(document()),
            Self::Mixed => reply.block(image()).block(document()),
            Self::Error => {
                let text = "This tool intentionally returns an error for testing";
                return Err(ToolError::environment(text));
            }
            Self::Logging | Self::Progress => {
                for line in ["started\n", "processing\n", "completed\n"] {
                    if let Some(observer) = &context.observer {
                        observer.output(line.as_bytes());
                    }
                    // Output that comes faster is sent in one message.
                    tokio::time::sleep(Duration::from_millis(400)).await;
                }
                reply
            }
        })
    }
}

#[derive(Debug)]
struct Fixtures;

#[async_trait]
impl Connect for Fixtures {
    async fn connect(&self, _: &Client) -> backend_core::Result<Toolset> {
        let backend = StateBackend::new();
        backend.write_file("/notes.md", "# Notes\n").await?;
        let asks = ToolSetting::action(permissions::Action::Ask);
        let settings = ToolSettings::default().with_custom(ASKS, asks);
        let mut builder = Toolset::builder(Arc::new(backend)).tool_settings(settings);
        for fixture in ALL {
            builder = builder.handler(Arc::new(fixture));
        }
        builder
            .build()
            .map_err(|error| Error::internal(error.to_string()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:0".to_owned());
    // The suite also poses as a web page of the server, so the port has to be known.
    let address = std::net::TcpListener::bind(address)?.local_addr()?;
    let ready = |address| {
        let _ = writeln!(std::io::stderr(), "http://{address}/mcp");
    };
    let mut http = HttpSettings::without_token(address);
    http.origins = vec![
        format!("http://{address}"),
        format!("http://localhost:{}", address.port()),
    ];
    let mut settings = Settings::default();
    // The suite calls a tool that does not exist, and expects an error.
    settings.mark_failures = true;
    Ok(serve_http(
        Arc::new(Fixtures),
        settings,
        http,
        ready,
        std::future::pending(),
    )
    .await?)
}
