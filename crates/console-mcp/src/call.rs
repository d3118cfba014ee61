//! Tools and replies in the words of the protocol.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::{Block, Definition, Reply};
use rmcp::model::{
    CallToolResult, ContentBlock, MetaObject, ResourceContents, Tool, ToolAnnotations,
};
use serde_json::{Map, Value};

use crate::uri;

/// A tool as clients know it.
pub(crate) fn tool(definition: &Definition) -> Tool {
    let hints = &definition.annotations;
    let title = title(&definition.name);
    let annotations = ToolAnnotations::with_title(title.clone())
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let mut tool = Tool::new(
        definition.name.clone(),
        definition.description.clone(),
        Arc::new(object(&definition.input_schema)),
    );
    tool.title = Some(title);
    tool.annotations = Some(annotations);
    tool.output_schema = definition
        .output_schema
        .as_ref()
        .map(|schema| Arc::new(object(schema)));
    if definition.asks {
        let mut meta = MetaObject::default();
        meta.0
            .insert("console-tools/asks".to_owned(), Value::Bool(true));
        tool.meta = Some(meta);
    }
    tool
}

fn object(schema: &Value) -> Map<String, Value> {
    schema.as_object().cloned().unwrap_or_default()
}

/// `read_file` as a person reads it.
fn title(name: &str) -> String {
    let mut title = name.replace(['_', '-'], " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
}

/// A reply as clients get it. A failure is a result too: the model should read
/// it. `path` is the file that was asked for, if one was.
pub(crate) fn result(reply: Reply, path: Option<&str>, promised: bool) -> CallToolResult {
    let failed = !reply.is_success();
    let mut content = vec![ContentBlock::text(reply.text)];
    content.extend(
        reply
            .blocks
            .into_iter()
            .filter_map(|block| block_of(block, path)),
    );
    let mut result = match failed {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    // Clients refuse a success without the data that its tool promised.
    if promised && !failed && reply.structured.is_none() {
        result.is_error = Some(true);
        result.content.push(ContentBlock::text(
            "[the same as data would be too large; ask for less at a time]",
        ));
    }
    result.structured_content = reply.structured.filter(Value::is_object);
    result
}

fn block_of(block: Block, path: Option<&str>) -> Option<ContentBlock> {
    match block {
        Block::Image { media_type, data } => {
            Some(ContentBlock::image(STANDARD.encode(data), media_type))
        }
        Block::Document {
            media_type,
            data,
            name,
        } => {
            let path = path.unwrap_or(&name);
            let path = backend_core::VPath::root().join(path).ok()?;
            let blob = ResourceContents::blob(STANDARD.encode(data), uri::of(&path));
            Some(ContentBlock::resource(blob.with_mime_type(media_type)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles() {
        for (name, shown) in [
            ("read_file", "Read file"),
            ("ls", "Ls"),
            ("", ""),
            ("ä", "ä"),
        ] {
            assert_eq!(title(name), shown);
        }
    }

    #[test]
    fn a_promise_that_is_not_kept_is_no_success() {
        let kept = Reply::text("a").structured(serde_json::json!({"a": 1}));
        assert_eq!(result(kept, None, true).is_error, Some(false));
        assert_eq!(result(Reply::text("a"), None, false).is_error, Some(false));
        let broken = result(Reply::text("a"), None, true);
        assert_eq!(broken.is_error, Some(true));
        assert_eq!(broken.content.len(), 2);
    }
}
