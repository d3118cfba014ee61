//! Detects pictures and documents, and scales pictures down.
//!
//! The format is detected from the first bytes of a file. The name only says what it
//! should be.

#[cfg(feature = "images")]
mod scale;

use backend_core::text::{SNIFF_BYTES, is_binary_for_search};
use bytes::Bytes;

#[cfg(feature = "images")]
pub(crate) use scale::scale;

/// A picture ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    /// The file, in its original format.
    pub(crate) data: Bytes,
    /// Width and height, or `None` if the picture cannot be decoded.
    pub(crate) size: Option<(u32, u32)>,
    /// Width and height before scaling.
    pub(crate) original: Option<(u32, u32)>,
}

impl Picture {
    fn unchanged(data: Bytes, size: Option<(u32, u32)>) -> Self {
        Self {
            data,
            size,
            original: None,
        }
    }
}

/// The reason a picture cannot be shown.
#[cfg_attr(
    not(feature = "images"),
    expect(dead_code, reason = "nothing is scaled")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaleError {
    /// It has more pixels than may be decoded.
    Pixels(u32, u32),
    /// It is a large animation with too many pixels.
    Animation(u32, u32),
    /// The system could not start a thread.
    NoThread,
}

/// Returns a picture unchanged, whatever its size.
#[cfg(not(feature = "images"))]
pub(crate) async fn scale(data: Bytes, _: ImageKind, _: u32) -> Result<Picture, ScaleError> {
    std::future::ready(Ok(Picture::unchanged(data, None))).await
}

/// A file format that is not shown as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// A picture in one of the formats that models accept.
    Image(ImageKind),
    /// A PDF document.
    Pdf,
}

/// The picture formats that models accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageKind {
    Png,
    Jpeg,
    Gif,
    WebP,
}

impl Media {
    /// Detects the format of a file from its first [`SNIFF_BYTES`].
    pub(crate) fn sniff(head: &[u8]) -> Option<Self> {
        let head = head.get(..SNIFF_BYTES).unwrap_or(head);
        if head.starts_with(b"%PDF-") {
            return Some(Self::Pdf);
        }
        let kind = ImageKind::sniff(head)?;
        // Prose may begin with "GIF89a" or "RIFF", but a picture is never plain text.
        let is_prose = str::from_utf8(head).is_ok() && !is_binary_for_search(head);
        (!is_prose).then_some(Self::Image(kind))
    }

    /// Returns the format that a file name suggests.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        Some(Self::Image(match &*extension.to_ascii_lowercase() {
            "png" => ImageKind::Png,
            "jpg" | "jpeg" => ImageKind::Jpeg,
            "gif" => ImageKind::Gif,
            "webp" => ImageKind::WebP,
            "pdf" => return Some(Self::Pdf),
            _ => return None,
        }))
    }

    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Image(ImageKind::Png) => "image/png",
            Self::Image(ImageKind::Jpeg) => "image/jpeg",
            Self::Image(ImageKind::Gif) => "image/gif",
            Self::Image(ImageKind::WebP) => "image/webp",
            Self::Pdf => "application/pdf",
        }
    }

    /// Returns the noun for it, capitalized to start a sentence.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Image(_) => "Image",
            Self::Pdf => "Document",
        }
    }
}

impl ImageKind {
    fn sniff(head: &[u8]) -> Option<Self> {
        match head {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ if head.starts_with(b"RIFF") && head.get(8..12) == Some(&b"WEBP"[..]) => {
                Some(Self::WebP)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
