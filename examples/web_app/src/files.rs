//! The files of a sandbox: list, download, upload.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use backend_core::ops::{ContentHash, FileKind, LsOptions, ReadOptions, WriteMode, WriteOptions};
use backend_core::{Backend as _, VPath};
use examples::web::Failure;
use futures::stream;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};
use sessions::Session;

use crate::App;

/// Entries of a listing.
const ENTRIES: usize = 1000;

/// Bytes that are read at once. Files up to this size have an entity tag.
const PIECE_BYTES: u64 = 1024 * 1024;

/// The characters that a file name in a header keeps (RFC 8187).
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// The directory to list, from the working directory.
#[derive(Debug, Deserialize)]
pub(crate) struct Listed {
    #[serde(default)]
    directory: String,
}

/// `GET /sessions/{id}/files?directory=PATH`
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(listed): Query<Listed>,
) -> Result<Json<Value>, Failure> {
    let (_, sandbox) = app.sandbox(&id).await?;
    let path = inside(&sandbox, &listed.directory)?;
    let options = LsOptions::default().limit(ENTRIES);
    let listing = sandbox.ls(&path, options).await?;
    let entries = listing.entries.iter().map(|entry| {
        let modified = entry
            .modified
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        json!({
            "name": entry.name(),
            "kind": match entry.kind {
                FileKind::Directory => "directory",
                FileKind::File => "file",
                _ => "other",
            },
            "size": entry.size,
            "modified": modified.map(|at| at.as_secs()),
        })
    });
    Ok(Json(json!({
        "entries": entries.collect::<Vec<_>>(),
        "more": listing.total - listing.entries.len(),
    })))
}

/// `GET /sessions/{id}/files/PATH`: the bytes, always as an attachment of no known type. A
/// browser neither shows nor runs them, whatever they are.
pub(crate) async fn download(
    State(app): State<Arc<App>>,
    Path((id, path)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let (_, sandbox) = app.sandbox(&id).await?;
    let path = inside(&sandbox, &path)?;
    let first = ReadOptions::default().range(0..PIECE_BYTES);
    let first = sandbox.read(&path, first).await?;
    let name = path.file_name().unwrap_or("file");
    let name = utf8_percent_encode(name, KEPT);
    let disposition = format!("attachment; filename=\"download\"; filename*=UTF-8''{name}");
    let whole = first.data.len() as u64 == first.size;
    let tag = whole.then(|| format!("\"{}\"", ContentHash::of(&first.data)));
    let mut response = if whole {
        first.data.into_response()
    } else {
        Body::from_stream(pieces(sandbox, path, first.data, first.size)).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    let ascii = |text: String| HeaderValue::from_str(&text);
    if let Ok(value) = ascii(disposition) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    if let Some(Ok(value)) = tag.map(ascii) {
        headers.insert(ETAG, value);
    }
    Ok(response)
}

/// Reads a large file piece by piece: memory does not depend on its size.
fn pieces(
    sandbox: Session,
    path: VPath,
    first: Bytes,
    size: u64,
) -> impl stream::Stream<Item = backend_core::Result<Bytes>> {
    let state = (sandbox, path, Some(first), 0);
    stream::try_unfold(state, move |(sandbox, path, ready, at)| async move {
        let piece = match ready {
            Some(piece) => piece,
            None if at >= size => return Ok(None),
            None => {
                let options = ReadOptions::default().range(at..(at + PIECE_BYTES).min(size));
                sandbox.read(&path, options).await?.data
            }
        };
        if piece.is_empty() {
            // The file has become shorter; the client sees that bytes are missing.
            return Err(backend_core::Error::conflict());
        }
        let at = at + piece.len() as u64;
        Ok(Some((piece, (sandbox, path, None, at))))
    })
}

/// `PUT /sessions/{id}/files/PATH`: an upload, or the text of the editor.
///
/// `If-None-Match: *` replaces nothing, and `If-Match` nothing that has changed since.
pub(crate) async fn upload(
    State(app): State<Arc<App>>,
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
    content: Bytes,
) -> Result<Response, Failure> {
    let mode = match (headers.get(IF_MATCH), headers.get(IF_NONE_MATCH)) {
        (Some(tag), _) => {
            let tag = tag.to_str().ok().map(|tag| tag.trim_matches('"'));
            let hash = tag.and_then(|tag| tag.parse().ok());
            let unknown = || Failure::new(StatusCode::PRECONDITION_FAILED, "unknown entity tag");
            WriteMode::IfUnchanged(hash.ok_or_else(unknown)?)
        }
        (None, Some(_)) => WriteMode::CreateNew,
        (None, None) => WriteMode::Overwrite,
    };
    let (_, sandbox) = app.sandbox(&id).await?;
    let path = inside(&sandbox, &path)?;
    let tag = format!("\"{}\"", ContentHash::of(&content));
    let options = WriteOptions::default().mode(mode);
    sandbox.write(&path, content.into(), options).await?;
    Ok((StatusCode::NO_CONTENT, [(ETAG, tag)]).into_response())
}

/// Returns the path of a file in the working directory. A container has other files too, but
/// they are not the user's.
fn inside(sandbox: &Session, path: &str) -> Result<VPath, Failure> {
    let top = sandbox.working_dir();
    let path = match path.trim_matches('/') {
        "" => top.clone(),
        path => top.join(path)?,
    };
    if path.starts_with(&top) {
        return Ok(path);
    }
    Err(Failure::new(
        StatusCode::BAD_REQUEST,
        "the path leads out of the working directory",
    ))
}
