//! Converts tools and replies to protocol types.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::{Block, Definition, FailureClass, Reply};
use rmcp::model::{
    CallToolResult, ContentBlock, MetaObject, ResourceContents, Tool, ToolAnnotations,
};
use serde_json::Value;

use crate::settings::Settings;
use crate::{structured, uri};

/// The `_meta` key that holds the class of a failure.
const FAILURE: &str = "console-tools/failure";

/// Describes a tool to clients.
pub(crate) fn tool(definition: &Definition, settings: &Settings) -> Tool {
    let hints = &definition.annotations;
    let title = title(&definition.name);
    let annotations = ToolAnnotations::with_title(title.clone())
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let schema = definition.input_schema.as_object();
    let mut tool = Tool::new(
        definition.name.clone(),
        definition.description.clone(),
        Arc::new(schema.cloned().unwrap_or_default()),
    );
    tool.title = Some(title);
    tool.annotations = Some(annotations);
    if settings.structured {
        tool.output_schema = structured::schema_of(definition).map(Arc::new);
    }
    if definition.asks {
        tool.meta = Some(meta("console-tools/asks", true));
    }
    tool
}

fn meta(key: &str, value: impl Into<Value>) -> MetaObject {
    let mut meta = MetaObject::default();
    meta.0.insert(key.to_owned(), value.into());
    meta
}

/// Turns a tool name into a title: `read_file` becomes "Read file".
fn title(name: &str) -> String {
    let mut title = name.replace(['_', '-'], " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
}

/// Converts a reply to a protocol result. `path` is the requested file, if there was
/// one; `promised` says whether the tool declares an output schema.
pub(crate) fn result(
    mut reply: Reply,
    path: Option<&str>,
    promised: bool,
    settings: &Settings,
) -> CallToolResult {
    // Some clients that find structured data show nothing else, not even an image.
    let wanted = settings.structured && (promised || reply.blocks.is_empty());
    let structured = wanted.then(|| structured::of(&mut reply));
    let mut content = vec![ContentBlock::text(reply.text)];
    let blocks = reply.blocks.into_iter();
    content.extend(blocks.filter_map(|block| block_of(block, path)));
    let mut result = match reply.failure {
        Some(class) if is_marked(class, settings) => CallToolResult::error(content),
        _ => CallToolResult::success(content),
    };
    result.structured_content = structured;
    result.meta = reply.failure.map(|class| meta(FAILURE, class.as_str()));
    result
}

/// Returns `true` if a failure is marked with `isError`. Clients count such errors, and
/// some end a run at the second one, which could be the model's second typo. The text
/// tells the model what was wrong either way.
fn is_marked(class: FailureClass, settings: &Settings) -> bool {
    match class {
        FailureClass::Fixable | FailureClass::Refused => settings.mark_failures,
        _ => true,
    }
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

    fn failure(class: FailureClass) -> Reply {
        let mut reply = Reply::text("Error: no");
        reply.failure = Some(class);
        reply
    }

    #[test]
    fn what_a_model_can_answer_to_is_no_error() {
        let mut settings = Settings::default();
        for (class, marked) in [
            (FailureClass::Fixable, false),
            (FailureClass::Refused, false),
            (FailureClass::Environment, true),
        ] {
            for all in [false, true] {
                settings.mark_failures = all;
                let result = result(failure(class), None, false, &settings);
                assert_eq!(result.is_error, Some(marked || all), "{class:?}");
                let meta = result.meta.unwrap();
                assert_eq!(meta.0[FAILURE], class.as_str());
            }
        }
        let success = result(Reply::text("a"), None, false, &settings);
        assert_eq!((success.is_error, success.meta), (Some(false), None));
    }

    #[test]
    fn data_is_there_if_it_is_asked_for_and_hides_nothing() {
        let mut settings = Settings::default();
        let text = Reply::text("a").structured(serde_json::json!({"b": 1}));
        let picture = text.clone().block(Block::Image {
            media_type: "image/png".into(),
            data: b"\x89PNG"[..].into(),
        });
        let data = |reply: &Reply, promised, settings: &Settings| {
            result(reply.clone(), None, promised, settings).structured_content
        };
        assert_eq!(data(&text, true, &settings), None);
        settings.structured = true;
        let whole = serde_json::json!({"text": "a", "data": {"b": 1}});
        assert_eq!(data(&text, false, &settings), Some(whole.clone()));
        assert_eq!(data(&picture, false, &settings), None);
        assert_eq!(data(&picture, true, &settings), Some(whole));
        // A reply without data, such as one whose data was too large, still has its
        // text and is a success.
        let large = result(Reply::text("a"), None, true, &settings);
        assert_eq!(large.is_error, Some(false));
        let text = serde_json::json!({"text": "a"});
        assert_eq!(large.structured_content, Some(text));
    }
}
