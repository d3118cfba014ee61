//! The files of the pages, which are parts of the programs.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse as _;
use axum::routing::get;

/// The type of a page.
pub const HTML: &str = "text/html; charset=utf-8";
/// The type of a script.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
/// The type of a style sheet.
pub const STYLE: &str = "text/css; charset=utf-8";
/// The type of a text.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// A file of a page: its path, its type and its content.
pub type File = (&'static str, &'static str, &'static str);

/// The files that all pages use.
const SHARED: &[File] = &[
    ("/chat.js", SCRIPT, include_str!("page/chat.js")),
    ("/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/service.js", SCRIPT, include_str!("page/service.js")),
    ("/style.css", STYLE, include_str!("page/style.css")),
];

/// Returns the routes of a program's files and of those that all pages use.
pub fn routes<S: Clone + Send + Sync + 'static>(files: &[File]) -> Router<S> {
    let all = SHARED.iter().chain(files);
    all.fold(Router::new(), |router, &(path, kind, content)| {
        let file = move || async move { ([(CONTENT_TYPE, kind)], content).into_response() };
        router.route(path, get(file))
    })
}
