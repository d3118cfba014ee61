//! Files of the toolbox: listed, described, read, moved and deleted.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use axum::body::Body;
use axum::extract::Query;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

use super::{Routes, Toolbox};
use crate::paths::Paths;
use crate::refusal::{Answer, Refusal};

pub(super) fn routes() -> Routes {
    Router::new()
        .route(
            "/version",
            get(async || Json(json!({"version": "0.190.0"}))),
        )
        .route("/work-dir", get(home))
        .route("/user-home-dir", get(home))
        .route("/files", get(list).delete(delete))
        .route("/files/info", get(info))
        .route("/files/download", get(download))
        .route("/files/folder", post(create_folder))
        .route("/files/move", post(rename))
        .route("/files/permissions", post(set_permissions))
}

async fn home(Toolbox(sandbox): Toolbox) -> Json<Value> {
    Json(json!({"dir": sandbox.root.home()}))
}

/// The path that a request is about. Without one it is the working directory.
#[derive(Deserialize)]
struct Target {
    #[serde(default)]
    path: String,
    #[serde(default)]
    recursive: bool,
}

/// Describes a file as Go does.
fn describe(name: &str, metadata: &Metadata) -> Value {
    let modified = metadata
        .modified()
        .ok()
        .and_then(|it| Timestamp::try_from(it).ok());
    let modified = modified.unwrap_or(Timestamp::UNIX_EPOCH).to_string();
    let in_go = modified.replace('T', " ").replace('Z', " +0000 UTC");
    let mode = metadata.mode();
    let letters = "rwxrwxrwx".chars().enumerate();
    let letters = letters.map(|(i, it)| if mode & (0o400 >> i) == 0 { '-' } else { it });
    let kind = if metadata.is_dir() { 'd' } else { '-' };
    json!({
        "name": name, "size": metadata.len(), "isDir": metadata.is_dir(),
        "mode": std::iter::once(kind).chain(letters).collect::<String>(),
        "permissions": format!("{:04o}", mode & 0o777),
        "modTime": in_go, "modifiedAt": modified,
        "owner": metadata.uid().to_string(), "group": metadata.gid().to_string(),
    })
}

async fn list(toolbox: Toolbox, Query(target): Query<Target>) -> Answer<Json<Value>> {
    let list = move |paths: &Paths| {
        let directory = paths.find(&target.path)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(directory.path())? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        let item = |name: String| {
            // A link that leads nowhere is left out.
            let place = paths
                .find(&format!("{}/{name}", paths.absolute(&target.path)))
                .ok()?;
            Some(describe(&name, &place.path().metadata().ok()?))
        };
        Ok(names.into_iter().filter_map(item).collect::<Vec<_>>())
    };
    Ok(Json(toolbox.files(list).await?.into()))
}

async fn info(toolbox: Toolbox, Query(target): Query<Target>) -> Answer<Json<Value>> {
    let stat = move |paths: &Paths| {
        let metadata = paths.find(&target.path)?.path().metadata()?;
        let absolute = paths.absolute(&target.path);
        let name = Path::new(&absolute)
            .file_name()
            .map(|it| it.to_string_lossy());
        Ok(describe(&name.unwrap_or("/".into()), &metadata))
    };
    Ok(Json(toolbox.files(stat).await?))
}

async fn download(toolbox: Toolbox, Query(target): Query<Target>, headers: HeaderMap) -> Answer {
    let open = move |paths: &Paths| {
        let file = fs::File::open(paths.find(&target.path)?.path())?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok((file, metadata.len()))
    };
    let (mut file, length) = toolbox.files(open).await?;
    let Some(range) = headers.get(RANGE) else {
        return Ok(send(file, length));
    };
    let range = range
        .to_str()
        .ok()
        .and_then(|range| parse_range(range, length));
    let Some((start, end)) = range else {
        return Ok(StatusCode::RANGE_NOT_SATISFIABLE.into_response());
    };
    file.seek(SeekFrom::Start(start))
        .map_err(|error| Refusal::of_file(&error))?;
    let mut response = send(file, end - start);
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    let described = format!("bytes {start}-{}/{length}", end - 1);
    if let Ok(value) = described.try_into() {
        response.headers_mut().insert(CONTENT_RANGE, value);
    }
    Ok(response)
}

/// Sends the next bytes of a file.
fn send(file: fs::File, n_bytes: u64) -> Response {
    let bytes = ReaderStream::new(tokio::fs::File::from_std(file).take(n_bytes));
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, n_bytes.to_string()),
        (ACCEPT_RANGES, "bytes".to_owned()),
    ];
    (headers, Body::from_stream(bytes)).into_response()
}

/// Returns the first byte of a range and the one after its last.
fn parse_range(range: &str, length: u64) -> Option<(u64, u64)> {
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (start, end) = match (start, end) {
        ("", n) => (length.saturating_sub(n.parse().ok()?), length),
        (start, "") => (start.parse().ok()?, length),
        (start, end) => (
            start.parse().ok()?,
            end.parse::<u64>().ok()?.checked_add(1)?,
        ),
    };
    let end = end.min(length);
    (start < end).then_some((start, end))
}

async fn delete(toolbox: Toolbox, Query(target): Query<Target>) -> Answer<StatusCode> {
    let delete = move |paths: &Paths| {
        // A link that leads nowhere is not found.
        let is_directory = paths.find(&target.path)?.path().metadata()?.is_dir();
        if is_directory && !target.recursive {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let entry = paths.entry(&target.path)?;
        if entry.path().symlink_metadata()?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        }
    };
    toolbox.files(delete).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct Folder {
    path: String,
    #[serde(default = "default_mode")]
    mode: String,
}

fn default_mode() -> String {
    "0755".to_owned()
}

fn parse_mode(mode: &str) -> Answer<u32> {
    let invalid = |_| Refusal::files(StatusCode::BAD_REQUEST, "invalid mode");
    u32::from_str_radix(mode, 8).map_err(invalid)
}

async fn create_folder(toolbox: Toolbox, Query(folder): Query<Folder>) -> Answer<StatusCode> {
    let mode = parse_mode(&folder.mode)?;
    let create = move |paths: &Paths| paths.create_directories(&folder.path, mode);
    toolbox.files(create).await?;
    Ok(StatusCode::CREATED)
}

#[derive(Deserialize)]
struct Move {
    source: String,
    destination: String,
}

async fn rename(toolbox: Toolbox, Query(request): Query<Move>) -> Answer<StatusCode> {
    let rename = move |paths: &Paths| {
        paths.find(&request.source)?;
        let (source, destination) = (
            paths.entry(&request.source)?,
            paths.entry(&request.destination)?,
        );
        if destination.path().symlink_metadata().is_ok() {
            return Ok(false);
        }
        fs::rename(source.path(), destination.path()).map(|()| true)
    };
    if toolbox.files(rename).await? {
        Ok(StatusCode::OK)
    } else {
        Err(Refusal::files(
            StatusCode::CONFLICT,
            "destination already exists",
        ))
    }
}

#[derive(Deserialize)]
struct Access {
    path: String,
    mode: Option<String>,
    owner: Option<String>,
    group: Option<String>,
}

/// Sets the mode of a file, and its owner and group if they are numbers.
async fn set_permissions(toolbox: Toolbox, Query(access): Query<Access>) -> Answer<StatusCode> {
    let mode = access.mode.as_deref().filter(|mode| !mode.is_empty());
    let mode = mode.map(parse_mode).transpose()?;
    let set = move |paths: &Paths| {
        let place = paths.find(&access.path)?;
        if let Some(mode) = mode {
            fs::set_permissions(place.path(), Permissions::from_mode(mode))?;
        }
        let number = |name: Option<String>| name.and_then(|name| name.parse::<u32>().ok());
        let (owner, group) = (number(access.owner), number(access.group));
        if owner.is_some() || group.is_some() {
            chown(place.path(), owner, group)?;
        }
        Ok(())
    };
    toolbox.files(set).await?;
    Ok(StatusCode::OK)
}

#[cfg(test)]
mod tests {
    use super::parse_range;

    #[test]
    fn ranges_are_those_of_http() {
        assert_eq!(parse_range("bytes=0-3", 10), Some((0, 4)));
        assert_eq!(parse_range("bytes=8-", 10), Some((8, 10)));
        assert_eq!(parse_range("bytes=-3", 10), Some((7, 10)));
        assert_eq!(parse_range("bytes=4-99", 10), Some((4, 10)));
        assert_eq!(parse_range("bytes=10-", 10), None);
        assert_eq!(parse_range("lines=1-2", 10), None);
    }
}
