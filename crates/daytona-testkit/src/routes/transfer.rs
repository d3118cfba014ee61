//! Files of the toolbox: uploaded and downloaded, several at once.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::response::IntoResponse as _;
use axum::routing::post;
use axum::{Json, Router};
use futures::stream::{self, BoxStream, StreamExt as _};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

use super::{Routes, Toolbox, read};
use crate::multipart::{self, Field};
use crate::paths::Paths;
use crate::refusal::{Answer, Refusal};

/// Separates the parts of a download.
const BOUNDARY: &str = "DAYTONA-FILE-BOUNDARY";

/// Characters of a file name that are encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(super) fn routes() -> Routes {
    Router::new()
        .route("/files/bulk-upload", post(upload_all))
        .route("/files/bulk-download", post(download_all))
        .route("/files/upload", post(upload))
        .route("/files/upload-v2", post(upload_v2))
}

fn form(headers: &HeaderMap, body: &Bytes) -> Answer<Vec<Field>> {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let fields = kind.and_then(|kind| multipart::parse(kind, body));
    fields.ok_or_else(|| Refusal::files(StatusCode::BAD_REQUEST, "invalid form"))
}

/// Writes a file in place, and creates the directories above it.
fn write(paths: &Paths, path: &str, content: &[u8], mode: u32) -> io::Result<()> {
    if let Some((parent, _)) = path
        .rsplit_once('/')
        .filter(|(parent, _)| !parent.is_empty())
    {
        paths.create_directories(parent, mode)?;
    }
    paths.create(path)?.write_all(content)
}

/// Takes the part of a name such as `files[0].path` after the index.
fn split_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("files[")?.split_once("].")
}

async fn upload_all(toolbox: Toolbox, headers: HeaderMap, body: Bytes) -> Answer {
    let fields = form(&headers, &body)?;
    let upload = move |paths: &Paths| {
        let (mut files, mut errors) = (Vec::<Value>::new(), Vec::<String>::new());
        // Clients may send all paths before all files.
        let mut named = BTreeMap::<String, String>::new();
        for field in &fields {
            let Some((index, kind)) = split_name(&field.name) else {
                errors.push(format!("{}: unexpected field", field.name));
                continue;
            };
            if kind == "path" {
                let path = String::from_utf8_lossy(&field.content).trim().to_owned();
                named.insert(index.to_owned(), path);
                continue;
            }
            let Some(path) = named.remove(index) else {
                errors.push(format!("{}: missing .path metadata", field.name));
                continue;
            };
            match write(paths, &path, &field.content, 0o755) {
                Ok(()) => files.push(json!({"path": path, "bytes": field.content.len()})),
                Err(error) => errors.push(format!("{path}: {error}")),
            }
        }
        (files, errors)
    };
    let (files, errors) = toolbox.with_files(upload).await?;
    if errors.is_empty() {
        return Ok(Json(json!({"files": files})).into_response());
    }
    let body = Json(json!({"errors": errors, "files": files}));
    Ok((StatusCode::BAD_REQUEST, body).into_response())
}

#[derive(Deserialize)]
struct Destination {
    path: String,
}

/// Writes the field `file` of a form. Returns its path.
async fn upload_one(
    toolbox: &Toolbox,
    Destination { path }: Destination,
    headers: &HeaderMap,
    body: &Bytes,
) -> Answer<String> {
    let file = form(headers, body)?
        .into_iter()
        .find(|field| field.name == "file");
    let missing = || Refusal::files(StatusCode::BAD_REQUEST, "no field `file`");
    let content = file.ok_or_else(missing)?.content;
    let upload = move |paths: &Paths| write(paths, &path, &content, 0o750).map(|()| path);
    toolbox.files(upload).await
}

async fn upload(
    toolbox: Toolbox,
    Query(destination): Query<Destination>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<StatusCode> {
    upload_one(&toolbox, destination, &headers, &body).await?;
    Ok(StatusCode::OK)
}

async fn upload_v2(
    toolbox: Toolbox,
    Query(destination): Query<Destination>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Json<Value>> {
    let path = upload_one(&toolbox, destination, &headers, &body).await?;
    let name = path.rsplit('/').next().unwrap_or_default();
    Ok(Json(json!({"name": name, "path": path, "type": "file"})))
}

#[derive(Deserialize)]
struct Download {
    paths: Vec<String>,
}

/// The content of a part: of an open file, or an error as JSON.
type Opened = Result<(std::fs::File, u64), String>;

async fn download_all(toolbox: Toolbox, body: Bytes) -> Answer {
    let request: Download = read(&body)?;
    if request.paths.is_empty() {
        return Err(Refusal::files(
            StatusCode::BAD_REQUEST,
            "request body must have paths",
        ));
    }
    let open_all = move |paths: &Paths| {
        let opened = request.paths.into_iter().map(|path| {
            let opened = open(paths, &path);
            (path, opened)
        });
        opened.collect::<Vec<_>>()
    };
    let opened = toolbox.with_files(open_all).await?;
    let parts: Vec<_> = opened
        .into_iter()
        .map(|(path, opened)| part(&path, opened))
        .collect();
    let end = stream::iter([Ok(Bytes::from(format!("--{BOUNDARY}--\r\n")))]);
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let body = Body::from_stream(stream::iter(parts).flatten().chain(end));
    Ok(([(CONTENT_TYPE, kind)], body).into_response())
}

fn open(paths: &Paths, path: &str) -> Opened {
    let try_open = || {
        let file = std::fs::File::open(paths.find(path)?.path())?;
        let metadata = file.metadata()?;
        Ok::<_, io::Error>((file, metadata))
    };
    let (status, code, message) = match try_open() {
        Ok((file, metadata)) if !metadata.is_dir() => return Ok((file, metadata.len())),
        Ok(_) => (
            400,
            "INVALID_FILE_PATH",
            format!("path is a directory: {path}"),
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (404, "FILE_NOT_FOUND", format!("file not found: {path}"))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            (403, "FILE_ACCESS_DENIED", format!("access denied: {path}"))
        }
        Err(error) => (500, "FILE_READ_FAILED", error.to_string()),
    };
    let error = json!({
        "statusCode": status, "message": message, "code": code, "path": path, "method": "POST",
        "timestamp": Timestamp::now().to_string(),
    });
    Err(error.to_string())
}

/// Returns the bytes of a part.
fn part(path: &str, opened: Opened) -> BoxStream<'static, io::Result<Bytes>> {
    let (name, length, kind) = match &opened {
        Ok((_, length)) => {
            let length = format!("Content-Length: {length}\r\n");
            ("file", length, "application/octet-stream")
        }
        Err(_) => ("error", String::new(), "application/json; charset=utf-8"),
    };
    let encoded = utf8_percent_encode(path, ENCODED);
    let mut head =
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"")
            .into_bytes();
    // The plain name is Latin-1, as far as it can be.
    head.extend(path.chars().map(|it| u8::try_from(it).unwrap_or(b'?')));
    head.extend(
        format!("\"; filename*=utf-8''{encoded}\r\n{length}Content-Type: {kind}\r\n\r\n").bytes(),
    );
    let content: BoxStream<'static, io::Result<Bytes>> = match opened {
        Ok((file, length)) => {
            let file = tokio::io::AsyncReadExt::take(tokio::fs::File::from_std(file), length);
            ReaderStream::new(file).boxed()
        }
        Err(error) => stream::iter([Ok(Bytes::from(error))]).boxed(),
    };
    let head = stream::iter([Ok(Bytes::from(head))]);
    let end = stream::iter([Ok(Bytes::from_static(b"\r\n"))]);
    head.chain(content).chain(end).boxed()
}
