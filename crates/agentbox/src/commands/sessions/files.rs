//! `agentbox sessions files`: the stored files of a session.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use backend_core::ops::{Entry, FileKind, ReadOptions, StatOptions};
use backend_core::{Backend as _, ErrorKind, VPath};
use futures::StreamExt as _;
use serde_json::{Value, json};
use sessions::{
    SessionId, StoredFiles, StoredSessions, TREE_DEPTH, TREE_ENTRIES, Tree, TreeOptions,
};
use tempfile::NamedTempFile;

use super::session_id;
use crate::exit::{self, Failure, environment};
use crate::output;

/// Bytes of a file that are read at once.
const PIECE_BYTES: u64 = 1024 * 1024;

/// Options of `sessions files`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The session.
    #[arg(value_parser = session_id)]
    id: SessionId,
    /// A file to print, or a directory to list.
    path: Option<String>,
    /// Lists at most this many levels of directories.
    #[arg(long, value_name = "LEVELS", default_value_t = TREE_DEPTH)]
    depth: usize,
    /// Lists at most this many entries.
    #[arg(long, value_name = "NUMBER", default_value_t = TREE_ENTRIES)]
    entries: usize,
    /// Prints the tree as JSON.
    #[arg(long)]
    json: bool,
    /// Writes all files as a tar archive, to standard output for -.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["path", "depth", "entries", "json"])]
    tar: Option<PathBuf>,
}

pub(super) async fn run(root: Option<&Path>, args: Args) -> Result<(), Failure> {
    let root = root.ok_or_else(|| {
        Failure::usage(
            "files are stored in a directory of workspaces only; name it with --workspaces DIR",
        )
    })?;
    let stored = StoredSessions::open(root)?.files(&args.id).await;
    let files = stored.map_err(|error| Failure::from(error).code(exit::FIXABLE))?;
    if let Some(target) = &args.tar {
        return archive(&files, target).await;
    }
    let path = args.path.as_deref().unwrap_or("/");
    let path = VPath::root()
        .join(path)
        .map_err(backend_core::Error::from)?;
    let found = files.stat(&path, StatOptions::default()).await;
    let found = found.map_err(|error| {
        if error.kind() == ErrorKind::NotFound {
            // Its source says the same again.
            return Failure::new(exit::FIXABLE, error.to_string());
        }
        Failure::from(error).code(exit::FIXABLE)
    })?;
    if found.is_dir() {
        let options = TreeOptions::default().path(path);
        let options = options.depth(args.depth).entries(args.entries);
        let tree = files.tree(options).await?;
        return show(&tree, args.json);
    }
    if args.json {
        return output::print_json(&as_json(&found));
    }
    print(&files, &found).await
}

fn show(tree: &Tree, json: bool) -> Result<(), Failure> {
    if json {
        let entries: Vec<Value> = tree.entries.iter().map(as_json).collect();
        return output::print_json(&json!({
            "entries": entries,
            "truncated": tree.truncated,
            "unreadable": tree.unreadable,
        }));
    }
    if tree.unreadable > 0 {
        let number = tree.unreadable;
        output::note(&format!("agentbox: {number} directories cannot be read"));
    }
    output::print_foreign(&tree.to_string())
}

fn as_json(entry: &Entry) -> Value {
    let kind = match entry.kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Link => "link",
        _ => "other",
    };
    json!({
        "path": entry.path.as_str(),
        "kind": kind,
        "link": entry.link,
        "size": entry.size,
    })
}

/// Prints a file piece by piece.
async fn print(files: &StoredFiles, file: &Entry) -> Result<(), Failure> {
    let mut at = 0;
    loop {
        let options = ReadOptions::default().range(at..at + PIECE_BYTES);
        let piece = files.read(&file.path, options).await?.data;
        if piece.is_empty() || !output::print_bytes(&piece)? {
            return Ok(());
        }
        at += piece.len() as u64;
    }
}

/// Writes an archive to a file, which is complete as soon as it has its name, or to standard
/// output.
async fn archive(files: &StoredFiles, target: &Path) -> Result<(), Failure> {
    let mut pieces = files.archive();
    if target == Path::new("-") {
        if std::io::stdout().is_terminal() {
            return Err(Failure::usage(
                "an archive is not for a terminal; give a file, or pipe it into a program",
            ));
        }
        while let Some(piece) = pieces.next().await {
            if !output::print_bytes(&piece?)? {
                break;
            }
        }
        return Ok(());
    }
    let cannot = |error: std::io::Error| {
        let shown = target.display();
        environment!("the archive {shown} cannot be written: {error}; name another file")
    };
    let parent = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(parent.unwrap_or(Path::new("."))).map_err(cannot)?;
    while let Some(piece) = pieces.next().await {
        file.write_all(&piece?).map_err(cannot)?;
    }
    file.persist(target).map_err(|error| cannot(error.error))?;
    Ok(())
}
