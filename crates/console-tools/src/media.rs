//! Pictures and documents: what they are, and making them smaller.
//!
//! What a file is, its first bytes say; its name says only what it should be.

mod scale;

use backend_core::text::{SNIFF_BYTES, is_binary_for_search};
use image::ImageFormat;

pub(crate) use scale::{ScaleError, scale};

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
        let kind = match image::guess_format(head).ok()? {
            ImageFormat::Png => ImageKind::Png,
            ImageFormat::Jpeg => ImageKind::Jpeg,
            ImageFormat::Gif => ImageKind::Gif,
            ImageFormat::WebP => ImageKind::WebP,
            _ => return None,
        };
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
    const fn format(self) -> ImageFormat {
        match self {
            Self::Png => ImageFormat::Png,
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Gif => ImageFormat::Gif,
            Self::WebP => ImageFormat::WebP,
        }
    }
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;
