//! The backend's files as resources: listed, and read up to a size limit.
//!
//! All access goes through the guard. The user is never asked: an access that would
//! need approval is refused.

use backend_core::ops::{GlobQuery, ReadOptions};
use backend_core::{Backend as _, Error, ErrorKind, VPath};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{
    ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};

use crate::session::Workspace;
use crate::uri;

/// Resources per page.
const PAGE: usize = 200;

/// Maximum number of resources listed in total. The tools find the others.
const LISTED: usize = 10_000;

/// Lists one page of the files.
pub(crate) async fn list(
    workspace: &Workspace,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    check_allowed(workspace)?;
    let start = cursor.map_or(Ok(0), str::parse::<usize>).ok();
    let start = start.filter(|start| *start < LISTED).ok_or_else(|| {
        ErrorData::invalid_params("this is not a valid cursor; begin without one", None)
    })?;
    let end = (start + PAGE).min(LISTED);
    let files = workspace.without_prompts.files().await.map_err(internal)?;
    let mut found = Vec::new();
    let mut more = false;
    for top in &workspace.roots {
        let Some(room) = end.checked_sub(found.len()).filter(|room| *room > 0) else {
            more = true;
            break;
        };
        let query = GlobQuery::new("**/*", top.clone()).limit(room);
        match files.glob(query).await {
            Ok(listed) => {
                more |= listed.truncated;
                found.extend(listed.files);
            }
            // A root that does not exist yet has no files.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(refused(error)),
        }
    }
    let page = found.iter().skip(start).map(|file| {
        let name = file.path.file_name().unwrap_or_default();
        let shown = file.path.strip_prefix(&files.working_dir()).unwrap_or(name);
        let mut resource = Resource::new(uri::of(&file.path), shown);
        resource.size = file.size;
        resource.mime_type = uri::media_type(name).map(str::to_owned);
        resource
    });
    let mut result = ListResourcesResult::with_all_items(page.collect());
    if more && end < LISTED {
        result.next_cursor = Some(end.to_string());
    }
    Ok(result)
}

/// Returns the template for the URI of any file.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new("file:///{+path}", "file")
        .with_title("A file of the workspace")
        .with_description("Any file, by the path that the tools use");
    vec![template]
}

/// Reads a file, as text if it is text.
pub(crate) async fn read(
    workspace: &Workspace,
    asked: &str,
    limit: u64,
) -> Result<ReadResourceResult, ErrorData> {
    check_allowed(workspace)?;
    let path = uri::path(asked).and_then(|path| VPath::parse(&path).ok());
    let Some(path) = path else {
        let text = "this is not a valid file URI; use file:/// and a path";
        return Err(ErrorData::resource_not_found(text, Some(asked.into())));
    };
    let files = workspace.without_prompts.files().await.map_err(internal)?;
    let options = ReadOptions::default().max_bytes(limit);
    let data = files.read(&path, options).await.map_err(refused)?.data;
    let media_type = uri::media_type(path.file_name().unwrap_or_default());
    let contents = match std::str::from_utf8(&data) {
        Ok(text) if !text.contains('\0') => {
            ResourceContents::text(text, asked).with_mime_type(media_type.unwrap_or("text/plain"))
        }
        _ => {
            let blob = ResourceContents::blob(STANDARD.encode(&data), asked);
            blob.with_mime_type(media_type.unwrap_or("application/octet-stream"))
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn check_allowed(workspace: &Workspace) -> Result<(), ErrorData> {
    match &workspace.denied {
        Some(why) => Err(ErrorData::invalid_params(why.clone(), None)),
        None => Ok(()),
    }
}

/// Converts an error about a file to a protocol error.
fn refused(error: Error) -> ErrorData {
    let text = error.message().to_owned();
    match error.kind() {
        ErrorKind::NotFound => ErrorData::resource_not_found(text, None),
        ErrorKind::Unavailable | ErrorKind::Internal => ErrorData::internal_error(text, None),
        _ => ErrorData::invalid_params(text, None),
    }
}

fn internal(error: Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
