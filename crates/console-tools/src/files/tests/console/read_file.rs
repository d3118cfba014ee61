//! Tests of `read_file`.

use backend_core::BackendExt as _;
use serde_json::{Value, json};

use super::{Bench, ReadFileTool, call, context};
use crate::args::console as args;
use crate::options::{EditFormat, Options};
use crate::reply::{Block, FailureClass};
use crate::tool::Builtin as _;

async fn read(bench: &Bench, path: &str) -> String {
    run!(bench.ok::<ReadFileTool>, {"path": path})
}

#[tokio::test]
async fn lines_are_numbered_as_prompts_expect() {
    let bench = Bench::new();
    bench.put("/a.txt", "one\ntwo\r\n\nfour").await;
    assert_eq!(
        read(&bench, "a.txt").await,
        "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"
    );
    let reply = run!(bench.call::<ReadFileTool>, {"path": "a.txt"});
    assert_eq!(
        reply.structured.unwrap(),
        json!({"path": "/a.txt", "kind": "text", "first_line": 1, "lines": 4, "total_lines": 4})
    );
}

#[tokio::test]
async fn a_page_says_how_to_read_on() {
    let bench = Bench::new();
    let text: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    bench.put("/long", text).await;
    let page = read(&bench, "long").await;
    assert!(page.starts_with("     1\tline 1\n"));
    assert!(
        page.ends_with("  2000\tline 2000\n\n... (3000 more lines; read on with offset=2000)"),
        "{}",
        &page[page.len() - 100..]
    );
    let args = json!({"path": "long", "offset": 4_998, "limit": 9_999_999});
    let reply = bench.call::<ReadFileTool>(args).await;
    assert_eq!(reply.text, "  4999\tline 4999\n  5000\tline 5000");
    let reply = run!(bench.call::<ReadFileTool>, {"path": "long", "offset": 10, "limit": 1});
    assert_eq!(
        reply.text,
        "    11\tline 11\n\n... (4989 more lines; read on with offset=11)"
    );
    let structured = reply.structured.unwrap();
    assert_eq!(structured["next_offset"], 11);
    assert_eq!(structured["total_lines"], 5_000);
}

#[tokio::test]
async fn pages_joined_are_the_file_whatever_the_budget() {
    for edit_format in [EditFormat::StrReplace, EditFormat::Hashline] {
        let bench = Bench::with(|options| {
            options.limits.reply_bytes = 1_000;
            options.limits.line_bytes = 60;
            options.edit_format = edit_format;
        });
        let wide = (0..100).map(|n| "x".repeat(n) + "\n");
        let narrow = std::iter::repeat_n("\n".to_owned(), 300);
        bench
            .put("/f", narrow.chain(wide).collect::<String>())
            .await;
        let mut seen = 0;
        let mut offset = Some(0);
        while let Some(at) = offset {
            let reply = run!(bench.call::<ReadFileTool>, {"path": "f", "offset": at});
            assert!(reply.text.len() <= 1_000);
            let data = reply.structured.unwrap();
            assert_eq!(data["first_line"], at + 1);
            seen += data["lines"].as_u64().unwrap();
            offset = data["next_offset"].as_u64();
            assert_eq!(
                offset.is_some(),
                reply.text.contains("read on with offset=")
            );
        }
        assert_eq!(seen, 400);
    }
}

#[tokio::test]
async fn odd_files_get_a_text_that_helps() {
    let bench = Bench::new();
    bench.put("/empty", "").await;
    assert_eq!(read(&bench, "empty").await, "(empty file)");
    bench.put("/bin", b"\0\xff\xfe\x01").await;
    assert_eq!(
        run!(bench.fails::<ReadFileTool>, {"path": "bin"}),
        "File 'bin' is binary (4 bytes) and cannot be shown as text; use a command that \
         understands it"
    );
    bench.put("/a.png", b"\0\xff\xfe\x01").await;
    let text = run!(bench.fails::<ReadFileTool>, {"path": "a.png"});
    assert!(text.contains("despite its name, not image/png"), "{text}");
    bench.put("/notes.png", "not a picture\n").await;
    assert_eq!(read(&bench, "notes.png").await, "     1\tnot a picture");
    bench.put("/latin1", b"caf\xe9\n").await;
    assert_eq!(read(&bench, "latin1").await, "     1\tcaf\u{fffd}");
    bench.put("/utf16", b"\xff\xfeh\0i\0\n\0").await;
    assert_eq!(read(&bench, "utf16").await, "     1\thi");
    bench.put("/wide", "é".repeat(5_000)).await;
    let text = read(&bench, "wide").await;
    assert!(text.contains("é [... 8000 more bytes]"), "{text}");
    assert!(text.ends_with("(1 line cut after 2000 bytes; find text in the rest with `grep`)"));
}

#[tokio::test]
async fn failures_say_the_next_step() {
    let bench = Bench::new();
    bench.put("/d/f", "a\nb\nc\n").await;
    bench.put("/empty", "").await;
    bench.put("/one", "a\n").await;
    let cases = [
        (
            json!({"path": "nope"}),
            "File 'nope' not found. Check the path with `ls` or `glob`, then read it again.",
        ),
        (
            json!({"path": "d"}),
            "'d' is a directory; list it with `ls` and name a file in it",
        ),
        (
            json!({"path": "d/f", "offset": 9}),
            "Offset 9 exceeds file length (3 lines); use an offset below 3",
        ),
        (
            json!({"path": "one", "offset": 1}),
            "Offset 1 exceeds file length (1 line); use offset 0",
        ),
        (
            json!({"path": "empty", "offset": 1}),
            "Offset 1 exceeds file length (0 lines); the file is empty",
        ),
        (
            json!({"path": "d/f", "offset": -1}),
            "offset must be 0 or more, not -1",
        ),
        (
            json!({"path": "d/f", "limit": 0}),
            "limit must be 1 or more, not 0",
        ),
    ];
    for (args, want) in cases {
        assert_eq!(bench.fails::<ReadFileTool>(args).await, want);
    }
    for path in ["../x", "a\0b", "~/x", "C:\\x"] {
        let text = run!(bench.fails::<ReadFileTool>, {"path": path});
        assert!(text.starts_with("path: "), "{text}");
    }
    let text = run!(bench.fails::<ReadFileTool>, {"path": "a\u{1b}[2Jb"});
    assert!(!text.contains('\u{1b}'), "{text}");
    let long = "./".repeat(1_000_000) + "nope";
    let text = run!(bench.fails::<ReadFileTool>, {"path": long});
    assert!(text.starts_with("File '/nope' not found."), "{text}");
}

#[tokio::test]
async fn large_files_are_shown_like_small_ones() {
    let bench = Bench::new();
    let text: String = (1..=400_000)
        .map(|n| format!("line number {n}\n"))
        .collect();
    assert!(text.len() as u64 > crate::tracker::HASHED_BYTES);
    bench.put("/big", text).await;
    let reply = run!(bench.call::<ReadFileTool>, {"path": "big", "offset": 399_998});
    assert_eq!(
        reply.text,
        "399999\tline number 399999\n400000\tline number 400000"
    );
    let reply = run!(bench.call::<ReadFileTool>, {"path": "big", "limit": 1});
    assert_eq!(
        reply.text,
        "     1\tline number 1\n\n... (more lines; read on with offset=1)"
    );
    assert_eq!(
        run!(bench.fails::<ReadFileTool>, {"path": "big", "offset": 400_000}),
        "Offset 400000 exceeds file length (400000 lines); use an offset below 400000"
    );
    let mut binary = vec![b'x'; 5 * 1024 * 1024];
    binary[..3].copy_from_slice(b"\0\xff\xff");
    bench.put("/big.bin", binary).await;
    let text = run!(bench.fails::<ReadFileTool>, {"path": "big.bin"});
    assert!(text.starts_with("File 'big.bin' is binary (5242880 bytes)"));
}

#[tokio::test]
async fn hashline_shows_numbers_and_hashes() {
    let bench = Bench::hashline();
    bench.put("/f", "a\n\n a\r\n").await;
    assert_eq!(read(&bench, "f").await, "1:0c|a\n2:d4|\n3:95| a");
    bench.put("/empty", "").await;
    assert_eq!(read(&bench, "empty").await, "1:d4|");
    assert_eq!(
        run!(bench.ok::<ReadFileTool>, {"path": "f", "offset": 1, "limit": 1}),
        "2:d4|\n\n... (1 more line; read on with offset=2)"
    );
    assert_eq!(
        run!(bench.fails::<ReadFileTool>, {"path": "f", "offset": 3}),
        "Offset 3 exceeds file length (3 lines); use an offset below 3"
    );
    // The hash covers the whole line, even if it is truncated.
    bench.put("/wide", "x".repeat(3_000)).await;
    let whole = hashline::render(&"x".repeat(3_000));
    let text = read(&bench, "wide").await;
    assert_eq!(text[..5], whole[..5]);
    assert!(text.contains(" [... 1000 more bytes]"));
    // A file that cannot be edited by line is shown without hashes.
    bench.put("/latin1", b"caf\xe9\n").await;
    assert_eq!(read(&bench, "latin1").await, "     1\tcaf\u{fffd}");
    let big: String = (0..400_000).map(|n| format!("line number {n}\n")).collect();
    bench.put("/big", big).await;
    let text = run!(bench.ok::<ReadFileTool>, {"path": "big", "offset": 399_999});
    assert!(
        text.starts_with("400000:") && text.ends_with("|line number 399999"),
        "{text}"
    );
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut out = std::io::Cursor::new(Vec::new());
    let picture = image::DynamicImage::new_rgb8(width, height);
    picture.write_to(&mut out, image::ImageFormat::Png).unwrap();
    out.into_inner()
}

fn showing() -> Bench {
    Bench::with(|options| {
        options.limits.image_edge = 60;
        options.image_support = true;
        options.document_support = true;
    })
}

#[tokio::test]
async fn pictures_are_told_by_their_content() {
    let bench = showing();
    let small = png(20, 10);
    bench.put("/no-extension", small.clone()).await;
    let reply = run!(bench.call::<ReadFileTool>, {"path": "no-extension"});
    assert_eq!(reply.text, "Image no-extension (image/png, 20x10 pixels)");
    let [Block::Image { media_type, data }] = &reply.blocks[..] else {
        panic!("{:?}", reply.blocks);
    };
    assert_eq!((media_type.as_ref(), &data[..]), ("image/png", &small[..]));
    let data = reply.structured.unwrap();
    assert_eq!(
        (&data["kind"], &data["width"]),
        (&json!("image"), &json!(20))
    );

    bench.put("/wide.png", png(300, 150)).await;
    let reply = run!(bench.call::<ReadFileTool>, {"path": "wide.png"});
    assert_eq!(
        reply.text,
        "Image wide.png (image/png, 300x150 pixels, shown as 60x30)"
    );
    let [Block::Image { data, .. }] = &reply.blocks[..] else {
        panic!("{:?}", reply.blocks);
    };
    let shown = image::load_from_memory(data).unwrap();
    assert_eq!((shown.width(), shown.height()), (60, 30));

    // Only the magic bytes are valid: returned unchanged.
    bench
        .put("/broken.png", &b"\x89PNG\r\n\x1a\nrubbish"[..])
        .await;
    let reply = run!(bench.call::<ReadFileTool>, {"path": "broken.png"});
    assert_eq!(reply.text, "Image broken.png (image/png)");
    assert_eq!(reply.blocks.len(), 1);

    // A picture's extension on a text file.
    bench.put("/text.png", "GIF89a is how it begins\n").await;
    let text = run!(bench.ok::<ReadFileTool>, {"path": "text.png"});
    assert_eq!(text, "     1\tGIF89a is how it begins");
}

#[tokio::test]
async fn documents_come_with_their_name() {
    let bench = showing();
    let pdf = b"%PDF-1.4\n\xe2\xe3\xcf\xd3\n%%EOF\n";
    bench.put("/d/report", &pdf[..]).await;
    let reply = run!(bench.call::<ReadFileTool>, {"path": "d/report"});
    assert_eq!(reply.text, "Document d/report (application/pdf, 20 bytes)");
    let [
        Block::Document {
            media_type,
            data,
            name,
        },
    ] = &reply.blocks[..]
    else {
        panic!("{:?}", reply.blocks);
    };
    assert_eq!(
        (media_type.as_ref(), name.as_str()),
        ("application/pdf", "report")
    );
    assert_eq!(&data[..], pdf);
}

#[tokio::test]
async fn what_is_not_shown_is_named() {
    let bench = Bench::new();
    bench.put("/a.png", png(2, 2)).await;
    let text = run!(bench.fails::<ReadFileTool>, {"path": "a.png"});
    assert!(
        text.contains("image/png") && text.contains("images are not shown here"),
        "{text}"
    );
    bench.put("/a.pdf", &b"%PDF-1.4\n\xe2\xe3\n"[..]).await;
    let text = run!(bench.fails::<ReadFileTool>, {"path": "a.pdf"});
    assert!(text.contains("documents are not shown here"), "{text}");
    bench.put("/plain.pdf", "%PDF-1.4\nall ASCII\n").await;
    let text = run!(bench.ok::<ReadFileTool>, {"path": "plain.pdf"});
    assert!(text.contains("all ASCII"));
}

#[tokio::test]
async fn too_large_is_said_before_it_is_read() {
    let bench = Bench::with(|options| {
        options.limits.image_bytes = 5 * 1024 * 1024;
        options.limits.document_bytes = 1_000;
        options.image_support = true;
        options.document_support = true;
    });
    let mut big = png(2, 2);
    big.resize(6 * 1024 * 1024, 0);
    bench.put("/big.png", big).await;
    assert_eq!(
        run!(bench.fails::<ReadFileTool>, {"path": "big.png"}),
        "Image 'big.png' too large (6.0MB, max 5.0MB); make it smaller with a command, then \
         read that"
    );
    let mut pdf = b"%PDF-1.4\n\xe2\xe3\n".to_vec();
    pdf.resize(2_000, b' ');
    bench.put("/a.pdf", pdf).await;
    let text = run!(bench.fails::<ReadFileTool>, {"path": "a.pdf"});
    assert!(
        text.starts_with("Document 'a.pdf' too large (0.0MB, max 0.0MB)"),
        "{text}"
    );
    // A picture that is large, but within the limit, is read whole.
    let mut fits = png(2, 2);
    fits.resize(4 * 1024 * 1024 + 1, 0);
    bench.put("/fits.png", fits.clone()).await;
    let reply = run!(bench.call::<ReadFileTool>, {"path": "fits.png"});
    let [Block::Image { data, .. }] = &reply.blocks[..] else {
        panic!("{}", reply.text);
    };
    assert_eq!(data.len(), fits.len());
}

#[tokio::test]
async fn a_link_and_a_pipe_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let local = backend_local::LocalBackend::builder(dir.path())
        .open()
        .unwrap();
    local.write_file("/real", "content\n").await.unwrap();
    std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
    let context = context(std::sync::Arc::new(local), Options::default());
    let reply = call::<ReadFileTool>(&context, json!({"path": "link"})).await;
    assert_eq!(reply.text, "     1\tcontent");
    let fifo = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let reply = call::<ReadFileTool>(&context, json!({"path": "pipe"})).await;
    assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
}

#[test]
fn the_schema_is_what_a_model_needs() {
    let schema = Value::from(schemars::schema_for!(args::ReadFileArgs));
    assert_eq!(schema["required"], json!(["path"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["properties"]["offset"]["minimum"], json!(0));
    for (field, about) in schema["properties"].as_object().unwrap() {
        assert!(about["description"].is_string(), "{field}");
    }
    assert!(ReadFileTool::output_schema().is_some());
    assert!(serde_json::from_value::<args::ReadFileArgs>(json!({"path": "a", "x": 1})).is_err());
}
