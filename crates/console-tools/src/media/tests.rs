//! Tests of pictures and documents.

use std::io::Cursor;

use bytes::Bytes;
use futures::executor::block_on;
use image::codecs::gif::GifEncoder;
use image::{DynamicImage, Frame, ImageFormat, RgbaImage};
use proptest::prelude::*;

use super::scale::scale_here;
use super::*;

const KINDS: [ImageKind; 4] = [
    ImageKind::Png,
    ImageKind::Jpeg,
    ImageKind::Gif,
    ImageKind::WebP,
];

fn picture(kind: ImageKind, width: u32, height: u32) -> Bytes {
    let mut out = Cursor::new(Vec::new());
    let picture = DynamicImage::new_rgb8(width, height);
    picture
        .write_to(&mut out, super::scale::format(kind))
        .unwrap();
    out.into_inner().into()
}

fn animation(width: u32, height: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = GifEncoder::new(&mut out);
    let frames = (0..3).map(|_| Frame::new(RgbaImage::new(width, height)));
    encoder.encode_frames(frames).unwrap();
    drop(encoder);
    out
}

#[test]
fn the_first_bytes_say_what_it_is() {
    for kind in KINDS {
        let data = picture(kind, 3, 2);
        assert_eq!(Media::sniff(&data), Some(Media::Image(kind)));
    }
    assert_eq!(Media::sniff(b"%PDF-1.7\n"), Some(Media::Pdf));
    for text in [
        "",
        "%PDF",
        "GIF89a in prose",
        "RIFFabcdWEBP",
        "BM",
        "P6 1 1",
        "<svg/>",
    ] {
        assert_eq!(Media::sniff(text.as_bytes()), None, "{text}");
    }
    assert_eq!(Media::sniff(b"BM\0\0\0\0"), None);
}

#[test]
fn names_say_what_it_should_be() {
    for (name, media_type) in [
        ("a.PNG", Some("image/png")),
        ("a.b.jpg", Some("image/jpeg")),
        ("a.jpeg", Some("image/jpeg")),
        (".gif", Some("image/gif")),
        ("a.webp", Some("image/webp")),
        ("a.pdf", Some("application/pdf")),
        ("pdf", None),
        ("a.svg", None),
    ] {
        assert_eq!(
            Media::of_name(name).map(Media::media_type),
            media_type,
            "{name}"
        );
    }
}

#[test]
fn large_pictures_are_made_smaller_in_their_format() {
    for kind in KINDS {
        let data = picture(kind, 300, 90);
        let same = block_on(scale(data.clone(), kind, 300)).unwrap();
        assert_eq!((same.data, same.size), (data.clone(), Some((300, 90))));
        assert_eq!(same.original, None);
        let small = block_on(scale(data, kind, 100)).unwrap();
        assert_eq!(small.size, Some((100, 30)), "{kind:?}");
        assert_eq!(small.original, Some((300, 90)));
        assert_eq!(Media::sniff(&small.data), Some(Media::Image(kind)));
        let decoded = image::load_from_memory(&small.data).unwrap();
        assert_eq!((decoded.width(), decoded.height()), (100, 30));
    }
}

#[test]
fn transparency_and_depth_survive() {
    let mut out = Cursor::new(Vec::new());
    let picture = DynamicImage::new_rgba16(40, 40);
    picture.write_to(&mut out, ImageFormat::Png).unwrap();
    let small = scale_here(out.into_inner().into(), ImageKind::Png, 20).unwrap();
    let decoded = image::load_from_memory(&small.data).unwrap();
    assert_eq!(decoded.color(), image::ColorType::Rgba16);
}

#[test]
fn a_turned_picture_stays_turned() {
    let mut data = picture(ImageKind::Jpeg, 300, 90).to_vec();
    // An EXIF segment after the start marker: rotate by 90 degrees.
    let note =
        b"\xff\xe1\x00\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    data.splice(2..2, note.iter().copied());
    let small = scale_here(data.into(), ImageKind::Jpeg, 100).unwrap();
    assert_eq!(small.size, Some((30, 100)));
}

#[test]
fn an_animation_keeps_its_frames() {
    let data: Bytes = animation(60, 30).into();
    let shown = scale_here(data.clone(), ImageKind::Gif, 20).unwrap();
    assert_eq!((shown.data, shown.size), (data, Some((60, 30))));
    let mut large = animation(60, 30);
    large.resize(6 * 1024 * 1024, 0);
    let refused = scale_here(large.into(), ImageKind::Gif, 20);
    assert_eq!(refused, Err(ScaleError::Animation(60, 30)));
}

#[test]
fn a_bomb_is_not_decoded() {
    // A header that claims 60,000 by 60,000 pixels, and little else.
    let mut data = picture(ImageKind::Png, 1, 1).to_vec();
    data[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
    data[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
    let crc = crc32(&data[12..29]);
    data[29..33].copy_from_slice(&crc.to_be_bytes());
    let refused = scale_here(data.clone().into(), ImageKind::Png, 1_568);
    assert_eq!(refused, Err(ScaleError::Pixels(60_000, 60_000)));
    // An undecodable picture is returned unchanged.
    let cut = picture(ImageKind::Png, 300, 300).slice(..40);
    let same = scale_here(cut.clone(), ImageKind::Png, 100).unwrap();
    assert_eq!(same.data, cut);
}

fn crc32(data: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
            1 => (crc >> 1) ^ 0xedb8_8320,
            _ => crc >> 1,
        })
    };
    !data.iter().fold(u32::MAX, step)
}

#[test]
fn one_who_goes_away_leaves_the_turn_to_the_next() {
    use futures::FutureExt as _;
    let data = picture(ImageKind::Png, 300, 90);
    drop(scale(data.clone(), ImageKind::Png, 100).now_or_never());
    assert!(block_on(scale(data, ImageKind::Png, 100)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rubbish_never_panics(
        which in 0_usize..4,
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        at in 0_usize..300,
    ) {
        let kind = KINDS[which];
        let _ = Media::sniff(&bytes);
        // A partly overwritten picture gets further into the decoder.
        let mut data = picture(kind, 20, 10).to_vec();
        let at = at % data.len();
        let end = data.len().min(at + bytes.len() % 8 + 1);
        for (place, byte) in data[at..end].iter_mut().zip(&bytes) {
            *place = *byte;
        }
        for data in [data.into(), Bytes::from(bytes)] {
            let _ = scale_here(data, kind, 8);
        }
    }
}
