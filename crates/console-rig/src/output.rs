//! Converts a tool's reply to rig's output.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::{Block, FailureClass, Reply};
use rig_core::message::{ImageMediaType, MimeType as _, ToolResultContent};
use rig_core::tool::{ToolErrorKind, ToolExecutionError, ToolOutput};

/// Converts the reply. The model reads its text either way. The kind of a failure is
/// for rig's hooks.
pub(crate) fn of(reply: Reply) -> Result<ToolOutput, ToolExecutionError> {
    match reply.failure {
        None => ToolOutput::content(content(reply)),
        Some(FailureClass::Refused) => Err(ToolExecutionError::refused(reply.text)),
        Some(FailureClass::Fixable) => Err(ToolExecutionError::new(
            ToolErrorKind::InvalidArgs,
            reply.text,
        )),
        Some(_) => Err(ToolExecutionError::other(reply.text)),
    }
}

fn content(reply: Reply) -> Vec<ToolResultContent> {
    let blocks = reply.blocks.iter().map(block);
    std::iter::once(ToolResultContent::text(reply.text))
        .chain(blocks)
        .collect()
}

fn block(block: &Block) -> ToolResultContent {
    match block {
        Block::Image { media_type, data } => {
            let kind = ImageMediaType::from_mime_type(media_type);
            ToolResultContent::image_base64(STANDARD.encode(data), kind, None)
        }
        Block::Document {
            media_type,
            data,
            name,
        } => ToolResultContent::text(format!(
            "({name}, {media_type}, {} bytes: a tool's result cannot hold documents here)",
            data.len()
        )),
        _ => ToolResultContent::text("(something that a tool's result cannot hold here)"),
    }
}

#[cfg(test)]
mod tests {
    use console_tools::ToolError;

    use super::*;

    #[test]
    fn text_and_pictures_are_content() {
        let picture = Block::Image {
            media_type: "image/png".into(),
            data: b"\x89PNG".as_slice().into(),
        };
        let document = Block::Document {
            media_type: "application/pdf".into(),
            data: b"%PDF-".as_slice().into(),
            name: "a.pdf".to_owned(),
        };
        let output = of(Reply::text("two").block(picture).block(document)).unwrap();
        let note = "(a.pdf, application/pdf, 5 bytes: a tool's result cannot hold documents here)";
        assert_eq!(
            output.as_content(),
            [
                ToolResultContent::text("two"),
                ToolResultContent::image_base64("iVBORw==", Some(ImageMediaType::PNG), None),
                ToolResultContent::text(note),
            ]
        );
        assert_eq!(of(Reply::text("")).unwrap().as_text(), Some(""));
    }

    #[test]
    fn a_failure_keeps_its_kind_and_its_text() {
        for (error, kind, refusal) in [
            (ToolError::fixable("x"), ToolErrorKind::InvalidArgs, false),
            (
                ToolError::refused("x"),
                ToolErrorKind::PermissionDenied,
                true,
            ),
            (ToolError::environment("x"), ToolErrorKind::Other, false),
        ] {
            let error = of(error.into()).unwrap_err();
            assert_eq!((error.kind(), error.is_refusal()), (kind, refusal));
            assert_eq!(error.model_feedback(), Some("Error: x"));
        }
    }
}
