//! The page, which is part of the program, and xterm.js, which is not.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use examples::web::page::{self, File, HTML, SCRIPT, STYLE, TEXT};

use crate::App;

/// The files of the page that others do not use.
const PAGE: &[File] = &[
    ("/", HTML, include_str!("../page/index.html")),
    ("/app.js", SCRIPT, include_str!("../page/app.js")),
    ("/files.js", SCRIPT, include_str!("../page/files.js")),
    ("/terminal.js", SCRIPT, include_str!("../page/terminal.js")),
];

/// The files of xterm.js that the page uses: name, type, and place in `node_modules/@xterm`.
const XTERM: &[(&str, &str, &str)] = &[
    ("xterm.js", SCRIPT, "xterm/lib/xterm.js"),
    ("xterm.css", STYLE, "xterm/css/xterm.css"),
    ("addon-fit.js", SCRIPT, "addon-fit/lib/addon-fit.js"),
    ("LICENSE", TEXT, "xterm/LICENSE"),
];

/// xterm.js, if it was fetched.
#[derive(Debug, Default)]
pub(crate) struct Xterm(HashMap<&'static str, (&'static str, Bytes)>);

impl Xterm {
    /// Reads the files from the directory of an npm project; all of them or none.
    pub(crate) fn read(directory: &Path) -> Self {
        let modules = directory.join("node_modules/@xterm");
        let read = |&(name, kind, place): &(&'static str, &'static str, &str)| {
            let content = fs::read(modules.join(place)).ok()?;
            Some((name, (kind, Bytes::from(content))))
        };
        let files: Option<_> = XTERM.iter().map(read).collect();
        Self(files.unwrap_or_default())
    }

    pub(crate) fn is_there(&self) -> bool {
        !self.0.is_empty()
    }
}

pub(crate) fn routes() -> Router<Arc<App>> {
    page::routes(PAGE).route("/xterm/{file}", get(xterm))
}

/// `GET /xterm/{file}`
async fn xterm(State(app): State<Arc<App>>, UrlPath(name): UrlPath<String>) -> Response {
    match app.program.xterm.0.get(name.as_str()) {
        Some((kind, content)) => ([(CONTENT_TYPE, *kind)], content.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
