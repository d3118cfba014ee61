//! Scales a picture down, off the caller's thread and within limits.
//!
//! Pictures come from untrusted files. So they are processed one at a time, each on a
//! separate thread: allocation is limited, a panicking decoder takes nothing with it,
//! and a slow one does not block other calls.

use std::io::Cursor;

use bytes::Bytes;
use futures_channel::oneshot;
use futures_util::lock::{Mutex, MutexGuard};
use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{
    AnimationDecoder as _, DynamicImage, ImageDecoder, ImageFormat, ImageReader, ImageResult,
    Limits,
};

use super::{ImageKind, Picture, ScaleError};

/// Maximum size of the decoded pixels of a picture, in bytes.
const DECODED_BYTES: u64 = 256 * 1024 * 1024;

/// Longest edge of a picture that is decoded at all.
const DECODED_EDGE: u32 = 32_768;

/// Largest file of an animation that is shown unchanged, however many pixels it has.
/// Scaling it would leave only one frame.
const ANIMATION_BYTES: usize = 5 * 1024 * 1024;

/// Quality of a scaled JPEG, out of 100.
const JPEG_QUALITY: u8 = 85;

/// Limits the whole process to one picture at a time.
static SCALING: Mutex<()> = Mutex::new(());

/// Scales a picture down if its longest edge exceeds `max_edge` and it can be decoded.
pub(crate) async fn scale(
    data: Bytes,
    kind: ImageKind,
    max_edge: u32,
) -> Result<Picture, ScaleError> {
    let lock = SCALING.lock().await;
    let (answer, scaled) = oneshot::channel();
    let work = data.clone();
    std::thread::Builder::new()
        .name("picture".to_owned())
        .spawn(move || {
            // The lock is held until the work ends, even if the caller stops waiting.
            let _lock: MutexGuard<'static, ()> = lock;
            let _ = answer.send(scale_here(work, kind, max_edge));
        })
        .map_err(|_| ScaleError::NoThread)?;
    // No answer means that the decoder panicked.
    scaled
        .await
        .unwrap_or_else(|_| Ok(Picture::unchanged(data, None)))
}

/// Does the work of [`scale`] on this thread.
pub(super) fn scale_here(
    data: Bytes,
    kind: ImageKind,
    max_edge: u32,
) -> Result<Picture, ScaleError> {
    let Ok((width, height)) = reader(&data, kind).into_dimensions() else {
        return Ok(Picture::unchanged(data, None));
    };
    let size = Some((width, height));
    if width.max(height) <= max_edge {
        return Ok(Picture::unchanged(data, size));
    }
    let pixels = u64::from(width) * u64::from(height);
    if width.max(height) > DECODED_EDGE || pixels > DECODED_BYTES / 4 {
        return Err(ScaleError::Pixels(width, height));
    }
    if is_animated(&data, kind) {
        return if data.len() <= ANIMATION_BYTES {
            Ok(Picture::unchanged(data, size))
        } else {
            Err(ScaleError::Animation(width, height))
        };
    }
    match shrink(&data, kind, max_edge.max(1)) {
        Ok((smaller, shown)) => Ok(Picture {
            data: smaller.into(),
            size: Some(shown),
            original: size,
        }),
        Err(_) => Ok(Picture::unchanged(data, size)),
    }
}

fn reader(data: &[u8], kind: ImageKind) -> ImageReader<Cursor<&[u8]>> {
    ImageReader::with_format(Cursor::new(data), format(kind))
}

pub(super) const fn format(kind: ImageKind) -> ImageFormat {
    match kind {
        ImageKind::Png => ImageFormat::Png,
        ImageKind::Jpeg => ImageFormat::Jpeg,
        ImageKind::Gif => ImageFormat::Gif,
        ImageKind::WebP => ImageFormat::WebP,
    }
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_image_width = Some(DECODED_EDGE);
    limits.max_image_height = Some(DECODED_EDGE);
    limits.max_alloc = Some(DECODED_BYTES);
    limits
}

/// Returns `true` if the file is known to have more than one frame.
fn is_animated(data: &[u8], kind: ImageKind) -> bool {
    let cursor = Cursor::new(data);
    match kind {
        ImageKind::Jpeg => false,
        ImageKind::Png => PngDecoder::with_limits(cursor, limits())
            .and_then(|decoder| decoder.is_apng())
            .unwrap_or(false),
        ImageKind::WebP => WebPDecoder::new(cursor).is_ok_and(|decoder| decoder.has_animation()),
        ImageKind::Gif => GifDecoder::new(cursor).is_ok_and(|mut decoder| {
            decoder.set_limits(limits()).is_ok() && decoder.into_frames().take(2).count() > 1
        }),
    }
}

/// Decodes, resizes with the aspect ratio kept, and encodes in the same format.
fn shrink(data: &[u8], kind: ImageKind, max_edge: u32) -> ImageResult<(Vec<u8>, (u32, u32))> {
    let mut reader = reader(data, kind);
    reader.limits(limits());
    let mut decoder = reader.into_decoder()?;
    let mut limits = limits();
    limits.reserve(decoder.total_bytes())?;
    decoder.set_limits(limits)?;
    // Viewers show the rotated picture, and the output has no orientation tag.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture = picture.resize(max_edge, max_edge, FilterType::CatmullRom);
    picture.apply_orientation(orientation);
    let mut out = Cursor::new(Vec::new());
    match kind {
        ImageKind::Jpeg => {
            let encoder = JpegEncoder::new_with_quality(&mut out, JPEG_QUALITY);
            match &picture {
                DynamicImage::ImageLuma8(_) => picture.write_with_encoder(encoder)?,
                _ => DynamicImage::from(picture.to_rgb8()).write_with_encoder(encoder)?,
            }
        }
        _ => picture.write_to(&mut out, format(kind))?,
    }
    Ok((out.into_inner(), (picture.width(), picture.height())))
}
