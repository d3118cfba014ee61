//! Git of the toolbox, through the machine's `git`.

use std::process::Stdio;

use axum::body::Bytes;
use axum::extract::Query;
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Routes, Toolbox, read};
use crate::refusal::{Answer, Refusal};

pub(super) fn routes() -> Routes {
    Router::new()
        .route("/git/clone", post(clone))
        .route("/git/status", get(status))
        .route(
            "/git/branches",
            get(branches).post(create_branch).delete(delete_branch),
        )
        .route("/git/checkout", post(checkout))
        .route("/git/add", post(add))
        .route("/git/commit", post(commit))
        .route("/git/history", get(history))
}

/// Runs `git` in a directory, and returns what it prints.
async fn git(toolbox: &Toolbox, path: &str, words: &[&str]) -> Answer<String> {
    let root = &toolbox.0.root;
    let words = [&["git", "-C", path][..], words].concat();
    let mut command = root
        .command(&root.home(), &words)
        .await
        .map_err(Refusal::internal)?;
    // A password is never asked for.
    command.stdin(Stdio::null()).env("GIT_TERMINAL_PROMPT", "0");
    let ended = command.output().await.map_err(Refusal::internal)?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let message = format!(
        "bad request: {}",
        String::from_utf8_lossy(&ended.stderr).trim()
    );
    Err(Refusal::toolbox(StatusCode::BAD_REQUEST, message))
}

#[derive(Deserialize)]
struct Repository {
    path: String,
}

#[derive(Deserialize)]
struct CloneRequest {
    url: String,
    path: String,
    branch: Option<String>,
    commit_id: Option<String>,
}

async fn clone(toolbox: Toolbox, body: Bytes) -> Answer<StatusCode> {
    let request: CloneRequest = read(&body)?;
    let mut words = vec!["clone"];
    if let Some(branch) = request.branch.as_deref().filter(|it| !it.is_empty()) {
        words.extend(["--branch", branch]);
    }
    words.extend(["--", &request.url, &request.path]);
    git(&toolbox, ".", &words).await?;
    if let Some(commit) = request.commit_id.as_deref().filter(|it| !it.is_empty()) {
        git(&toolbox, &request.path, &["checkout", commit]).await?;
    }
    Ok(StatusCode::OK)
}

async fn status(toolbox: Toolbox, Query(query): Query<Repository>) -> Answer<Json<Value>> {
    let branch = git(&toolbox, &query.path, &["branch", "--show-current"]).await?;
    let changes = git(&toolbox, &query.path, &["status", "--porcelain"]).await?;
    let files: Vec<_> = changes.lines().filter_map(describe).collect();
    Ok(Json(json!({
        "currentBranch": branch.trim(), "fileStatus": files, "ahead": 0, "behind": 0,
        "branchPublished": false,
    })))
}

/// Describes a line of `git status`, such as `A  name`.
fn describe(line: &str) -> Option<Value> {
    let word = |letter: char| match letter {
        '?' => "Untracked",
        'M' | 'T' => "Modified",
        'A' => "Added",
        'D' => "Deleted",
        'R' => "Renamed",
        'C' => "Copied",
        'U' => "Updated but unmerged",
        _ => "Unmodified",
    };
    let mut letters = line.chars();
    let (staging, worktree) = (word(letters.next()?), word(letters.next()?));
    let name = letters.as_str().trim_start();
    Some(json!({"name": name, "staging": staging, "worktree": worktree, "extra": ""}))
}

async fn branches(toolbox: Toolbox, Query(query): Query<Repository>) -> Answer<Json<Value>> {
    let words = ["for-each-ref", "--format=%(refname:short)", "refs/heads"];
    let branches = git(&toolbox, &query.path, &words).await?;
    Ok(Json(
        json!({"branches": branches.lines().collect::<Vec<_>>()}),
    ))
}

#[derive(Deserialize)]
struct Branch {
    path: String,
    #[serde(alias = "branch")]
    name: String,
}

async fn create_branch(toolbox: Toolbox, body: Bytes) -> Answer<StatusCode> {
    let request: Branch = read(&body)?;
    git(&toolbox, &request.path, &["branch", "--", &request.name]).await?;
    Ok(StatusCode::CREATED)
}

async fn delete_branch(toolbox: Toolbox, body: Bytes) -> Answer<StatusCode> {
    let request: Branch = read(&body)?;
    git(
        &toolbox,
        &request.path,
        &["branch", "-D", "--", &request.name],
    )
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn checkout(toolbox: Toolbox, body: Bytes) -> Answer<StatusCode> {
    let request: Branch = read(&body)?;
    git(&toolbox, &request.path, &["checkout", &request.name, "--"]).await?;
    Ok(StatusCode::OK)
}

#[derive(Deserialize)]
struct Add {
    path: String,
    files: Vec<String>,
}

async fn add(toolbox: Toolbox, body: Bytes) -> Answer<StatusCode> {
    let request: Add = read(&body)?;
    let mut words = vec!["add", "--"];
    words.extend(request.files.iter().map(String::as_str));
    git(&toolbox, &request.path, &words).await?;
    Ok(StatusCode::OK)
}

#[derive(Deserialize)]
struct Commit {
    path: String,
    message: String,
    author: String,
    email: String,
    #[serde(default)]
    allow_empty: bool,
}

async fn commit(toolbox: Toolbox, body: Bytes) -> Answer {
    let request: Commit = read(&body)?;
    let (name, email) = (
        format!("user.name={}", request.author),
        format!("user.email={}", request.email),
    );
    let mut words = vec![
        "-c",
        &name,
        "-c",
        &email,
        "commit",
        "--message",
        &request.message,
    ];
    words.extend(request.allow_empty.then_some("--allow-empty"));
    git(&toolbox, &request.path, &words).await?;
    let hash = git(&toolbox, &request.path, &["rev-parse", "HEAD"]).await?;
    Ok(Json(json!({"hash": hash.trim()})).into_response())
}

async fn history(toolbox: Toolbox, Query(query): Query<Repository>) -> Answer<Json<Value>> {
    let words = ["log", "--format=%H%x00%an%x00%ae%x00%s%x00%aI"];
    let log = git(&toolbox, &query.path, &words).await?;
    let commits = log.lines().filter_map(|line| {
        let mut fields = line.split('\0');
        let mut field = || fields.next();
        let (hash, author, email) = (field()?, field()?, field()?);
        let (message, time) = (field()?, field()?);
        Some(json!({
            "hash": hash, "author": author, "email": email, "message": message, "timestamp": time,
        }))
    });
    Ok(Json(commits.collect()))
}
