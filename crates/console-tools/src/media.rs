//! Pictures and documents: what they are, and making them smaller.
//!
//! What a file is, its first bytes say; its name says only what it should be.

#[cfg(feature = "images")]
mod scale;

use backend_core::text::{SNIFF_BYTES, is_binary_for_search};
use bytes::Bytes;

#[cfg(feature = "images")]
pub(crate) use scale::scale;

/// A picture that is fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Its file, in the format it had.
    pub(crate) data: Bytes,
    /// Width and height; `None` if it does not decode.
    pub(crate) size: Option<(u32, u32)>,
    /// Width and height before it was made smaller.
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

/// Why a picture cannot be shown.
#[cfg_attr(
    not(feature = "images"),
    expect(dead_code, reason = "nothing is scaled")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaleError {
    /// It has more pixels than are decoded.
    Pixels(u32, u32),
    /// It is a large animation with too many pixels.
    Animation(u32, u32),
    /// The system has no thread for it.
    NoThread,
}

/// Shows a picture as it is, whatever its size.
#[cfg(not(feature = "images"))]
pub(crate) async fn scale(data: Bytes, _: ImageKind, _: u32) -> Result<Picture, ScaleError> {
    std::future::ready(Ok(Picture::unchanged(data, None))).await
}

/// What a file is that is not shown as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// A picture in one of the formats that models see.
    Image(ImageKind),
    /// A PDF document.
    Pdf,
}

/// The formats of pictures that models see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageKind {
    Png,
    Jpeg,
    Gif,
    WebP,
}

impl Media {
    /// What the file is that begins with `head`: [`SNIFF_BYTES`] of it, or all.
    pub(crate) fn sniff(head: &[u8]) -> Option<Self> {
        let head = head.get(..SNIFF_BYTES).unwrap_or(head);
        if head.starts_with(b"%PDF-") {
            return Some(Self::Pdf);
        }
        let kind = ImageKind::sniff(head)?;
        // Prose may begin with "GIF89a" or "RIFF"; a picture is never plain text.
        let is_prose = str::from_utf8(head).is_ok() && !is_binary_for_search(head);
        (!is_prose).then_some(Self::Image(kind))
    }

    /// What a file of this name should be.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Image(ImageKind::Png)),
            "jpg" | "jpeg" => Some(Self::Image(ImageKind::Jpeg)),
            "gif" => Some(Self::Image(ImageKind::Gif)),
            "webp" => Some(Self::Image(ImageKind::WebP)),
            "pdf" => Some(Self::Pdf),
            _ => None,
        }
    }

    /// Its media type.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Image(ImageKind::Png) => "image/png",
            Self::Image(ImageKind::Jpeg) => "image/jpeg",
            Self::Image(ImageKind::Gif) => "image/gif",
            Self::Image(ImageKind::WebP) => "image/webp",
            Self::Pdf => "application/pdf",
        }
    }

    /// The word for it at the beginning of a sentence.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Image(_) => "Image",
            Self::Pdf => "Document",
        }
    }
}

impl ImageKind {
    /// The format that begins with `head`.
    fn sniff(head: &[u8]) -> Option<Self> {
        match head {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::WebP),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;
