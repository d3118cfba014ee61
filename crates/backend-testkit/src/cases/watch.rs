//! The changes of a tree as a stream.

use std::collections::BTreeMap;

use backend_core::ops::{
    Change, ChangeKind, Content, CopyOptions, DeleteOptions, GlobQuery, Links, RenameOptions,
    WatchEvent, WatchQuery,
};
use backend_core::search::Exclude;
use backend_core::{BackendExt as _, ContentHash, ErrorKind, Result, VPath, WatchStream};
use futures::StreamExt as _;

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// The name of the file that ends a list of changes.
const FENCE: &str = "fence";

/// A watch of a directory, and the changes that it tells, as text.
struct Watched<'t> {
    t: &'t Env,
    directory: VPath,
    stream: WatchStream,
    fences: usize,
    /// The files that were there before the watch.
    before: BTreeMap<VPath, ContentHash>,
}

/// Watches a directory.
async fn watch<'t>(t: &'t Env, path: &str) -> Result<Watched<'t>, Failure> {
    watch_with(t, WatchQuery::new(t.path(path)?)).await
}

async fn watch_with(t: &Env, query: WatchQuery) -> Result<Watched<'_>, Failure> {
    Ok(Watched {
        t,
        directory: query.path.clone(),
        before: contents(t, &query.path).await,
        stream: t.backend().watch(query).await?,
        fences: 0,
    })
}

/// Returns the contents of the files beneath a directory, unless there are many.
async fn contents(t: &Env, directory: &VPath) -> BTreeMap<VPath, ContentHash> {
    const MANY: usize = 100;
    let query = GlobQuery::new("**/*", directory.clone()).limit(MANY);
    let found = t.backend().glob(query).await.unwrap_or_default();
    let mut contents = BTreeMap::new();
    if found.files.len() < MANY {
        for file in found.files {
            if let Ok(content) = t.backend().read_bytes(file.path.as_str()).await {
                contents.insert(file.path, ContentHash::of(&content));
            }
        }
    }
    contents
}

/// Returns `true` unless a file is as it was before the watch, or was there and is gone.
async fn differs(t: &Env, before: Option<&ContentHash>, path: &VPath) -> bool {
    let Some(before) = before else {
        return true;
    };
    match t.backend().read_bytes(path.as_str()).await {
        Ok(content) => ContentHash::of(&content) != *before,
        Err(error) => !error.is_not_found(),
    }
}

impl Watched<'_> {
    async fn next(&mut self) -> Result<Change, Failure> {
        match self.stream.next().await {
            Some(Ok(WatchEvent::Change(change))) => Ok(change),
            other => Err(Failure::new(format!("expected a change, got {other:?}"))),
        }
    }

    fn relative(&self, path: &VPath) -> String {
        let relative = path.strip_prefix(&self.directory);
        relative.map_or_else(|| path.to_string(), str::to_owned)
    }

    fn text(&self, change: &Change) -> String {
        let path = self.relative(&change.path);
        match &change.kind {
            ChangeKind::Created => format!("created {path}"),
            ChangeKind::Changed => format!("changed {path}"),
            ChangeKind::Deleted => format!("deleted {path}"),
            ChangeKind::Renamed { from } => format!("renamed {} -> {path}", self.relative(from)),
            other => format!("{other:?} {path}"),
        }
    }

    /// Returns the changes up to now: a file is created after all of them, and changes
    /// are read until it is told. A change of a file that was just told as new or
    /// changed is left out, because a change may be told more than once. So is a change
    /// of a file whose content is as before the watch: `Changed` means that it may have
    /// changed, and a process that was just started may have closed it late.
    async fn told(&mut self) -> Result<Vec<String>, Failure> {
        self.fences += 1;
        let fence = self.directory.child(&format!("{FENCE}{}", self.fences));
        let fence = fence.map_err(backend_core::Error::from)?;
        self.t.backend().write_file(fence.as_str(), "").await?;
        let mut told: Vec<Change> = Vec::new();
        loop {
            let change = self.next().await?;
            if change == Change::created(fence.clone()) {
                break;
            }
            let last = told.iter().rfind(|told| told.path == change.path);
            let is_repeated = change.kind == ChangeKind::Changed
                && last.is_some_and(|last| {
                    matches!(last.kind, ChangeKind::Created | ChangeKind::Changed)
                });
            let is_fence = self.relative(&change.path).starts_with(FENCE);
            if !is_repeated && !is_fence {
                told.push(change);
            }
        }
        let mut texts = Vec::new();
        for change in &told {
            let before = self.before.get(&change.path);
            if change.kind != ChangeKind::Changed || differs(self.t, before, &change.path).await {
                texts.push(self.text(change));
            }
        }
        Ok(texts)
    }
}

fn sorted(mut told: Vec<String>) -> Vec<String> {
    told.sort();
    told
}

/// A backend that says so tells changes. Another fails with `Unsupported`, unless it
/// tells those of some directories.
pub async fn promise_is_kept(t: &Env) -> CaseResult {
    let watched = t.backend().watch(WatchQuery::new(t.path("")?)).await;
    match watched {
        Err(error) if !t.backend().info().capabilities.watch => {
            check_eq!(error.kind(), ErrorKind::Unsupported)
        }
        watched => watched.map(drop).map_err(Failure::from),
    }
}

/// A new file is told as created.
pub async fn new_file_is_created(t: &Env) -> CaseResult {
    t.put("old.txt", "old").await?;
    let mut watched = watch(t, "").await?;
    t.put("new.txt", "new").await?;
    check_eq!(watched.told().await?, ["created new.txt"])
}

/// A file that is written again is told as changed, not as created.
pub async fn rewritten_file_is_changed(t: &Env) -> CaseResult {
    t.put_all(&["a.txt", "d/b.txt"]).await?;
    let mut watched = watch(t, "").await?;
    t.put("a.txt", "other").await?;
    t.put("d/b.txt", "other").await?;
    let told = watched.told().await?;
    check_eq!(sorted(told), ["changed a.txt", "changed d/b.txt"])
}

/// An edit is told as a change.
pub async fn edited_file_is_changed(t: &Env) -> CaseResult {
    t.put("a.txt", "one two").await?;
    let mut watched = watch(t, "").await?;
    t.backend().replace_text("a.txt", "two", "three").await?;
    check_eq!(watched.told().await?, ["changed a.txt"])
}

/// The content that a change tells of is there when the change is read.
pub async fn change_is_visible_when_told(t: &Env) -> CaseResult {
    t.put("a.txt", "0").await?;
    let mut watched = watch(t, "").await?;
    for number in 1..10 {
        let content = number.to_string();
        t.put("a.txt", content.clone()).await?;
        let change = watched.next().await?;
        check_eq!(watched.text(&change), "changed a.txt")?;
        check_eq!(t.get("a.txt").await?, content.as_bytes())?;
    }
    Ok(())
}

/// A deleted file is told.
pub async fn deleted_file_is_told(t: &Env) -> CaseResult {
    t.put_all(&["a.txt", "b.txt"]).await?;
    let mut watched = watch(t, "").await?;
    t.backend().delete_file("a.txt").await?;
    check_eq!(watched.told().await?, ["deleted a.txt"])
}

/// The changes of one path come in their order.
pub async fn one_path_has_an_order(t: &Env) -> CaseResult {
    let mut watched = watch(t, "").await?;
    for _ in 0..3 {
        t.put("a.txt", "text").await?;
        t.backend().delete_file("a.txt").await?;
    }
    let round = ["created a.txt", "deleted a.txt"];
    check_eq!(watched.told().await?, [round; 3].concat())
}

/// Moves a file or directory.
async fn rename(t: &Env, from: &str, to: &str) -> CaseResult {
    let (from, to) = (t.path(from)?, t.path(to)?);
    let options = RenameOptions::default();
    Ok(t.backend().rename(&from, &to, options).await?)
}

/// A move within the tree is told as a move, or as its two halves.
pub async fn move_is_told(t: &Env) -> CaseResult {
    t.put("a.txt", "text").await?;
    t.backend().create_dir_all("d").await?;
    let mut watched = watch(t, "").await?;
    rename(t, "a.txt", "d/b.txt").await?;
    let told = sorted(watched.told().await?);
    let moved = told == ["renamed a.txt -> d/b.txt"];
    check!(
        moved || told == ["created d/b.txt", "deleted a.txt"],
        "{told:?}"
    )
}

/// After the move of a directory, changes in it are told at their new path.
pub async fn moved_directory_is_watched_on(t: &Env) -> CaseResult {
    t.put_all(&["d/e/old.txt"]).await?;
    let mut watched = watch(t, "").await?;
    rename(t, "d", "moved").await?;
    watched.told().await?;
    t.put("moved/e/new.txt", "text").await?;
    t.put("moved/e/old.txt", "other").await?;
    let told = sorted(watched.told().await?);
    check_eq!(told, ["changed moved/e/old.txt", "created moved/e/new.txt"])
}

/// A move into the watched directory creates the entry and everything beneath it.
pub async fn moved_in_is_created(t: &Env) -> CaseResult {
    t.put_all(&["out/a.txt", "out/d/e/b.txt", "in/kept.txt"])
        .await?;
    let mut watched = watch(t, "in").await?;
    rename(t, "out/a.txt", "in/a.txt").await?;
    rename(t, "out/d", "in/d").await?;
    let told = sorted(watched.told().await?);
    let expected = [
        "created a.txt",
        "created d",
        "created d/e",
        "created d/e/b.txt",
    ];
    check_eq!(told, expected)?;
    t.put("in/d/e/c.txt", "text").await?;
    check_eq!(watched.told().await?, ["created d/e/c.txt"])
}

/// A move out of the watched directory deletes the entry, and changes of it are no
/// longer told.
pub async fn moved_out_is_deleted(t: &Env) -> CaseResult {
    t.put_all(&["in/a.txt", "in/d/b.txt", "out/kept.txt"])
        .await?;
    let mut watched = watch(t, "in").await?;
    rename(t, "in/a.txt", "out/a.txt").await?;
    rename(t, "in/d", "out/d").await?;
    t.put("out/d/b.txt", "other").await?;
    let mut told = sorted(watched.told().await?);
    told.retain(|change| change != "deleted d/b.txt");
    check_eq!(told, ["deleted a.txt", "deleted d"])
}

/// Directories that are created while the tree is watched are watched too, and nothing
/// in them is told twice or missed.
pub async fn new_directories_are_watched(t: &Env) -> CaseResult {
    let mut watched = watch(t, "").await?;
    t.backend().create_dir_all("d/e").await?;
    t.put("d/e/a.txt", "text").await?;
    t.put("f/g/h/b.txt", "text").await?;
    t.put("d/e/i/c.txt", "text").await?;
    let expected = [
        "created d",
        "created d/e",
        "created d/e/a.txt",
        "created d/e/i",
        "created d/e/i/c.txt",
        "created f",
        "created f/g",
        "created f/g/h",
        "created f/g/h/b.txt",
    ];
    check_eq!(sorted(watched.told().await?), expected)
}

/// A copied directory is told entry by entry.
pub async fn copied_directory_is_created(t: &Env) -> CaseResult {
    t.put_all(&["d/a.txt", "d/e/b.txt"]).await?;
    let mut watched = watch(t, "").await?;
    let options = CopyOptions::default().recursive(true);
    let (from, to) = (t.path("d")?, t.path("copy")?);
    t.backend().copy(&from, &to, options).await?;
    let expected = [
        "created copy",
        "created copy/a.txt",
        "created copy/e",
        "created copy/e/b.txt",
    ];
    check_eq!(sorted(watched.told().await?), expected)
}

/// A deleted directory is told last; what was in it is told before it or not at all.
pub async fn deleted_directory_is_told(t: &Env) -> CaseResult {
    t.put_all(&["d/a.txt", "d/e/b.txt"]).await?;
    let mut watched = watch(t, "").await?;
    t.backend().delete_tree("d").await?;
    let told = watched.told().await?;
    check_eq!(told.last().map(String::as_str), Some("deleted d"))?;
    check!(
        told.iter().all(|change| change.starts_with("deleted d")),
        "{told:?}"
    )
}

/// Without `recursive` only the entries of the directory itself are told.
pub async fn one_level_if_asked(t: &Env) -> CaseResult {
    t.put_all(&["d/a.txt"]).await?;
    let query = WatchQuery::new(t.path("")?).recursive(false);
    let mut watched = watch_with(t, query).await?;
    t.put("d/b.txt", "text").await?;
    t.put("e/c.txt", "text").await?;
    t.put("f.txt", "text").await?;
    t.put("d/a.txt", "other").await?;
    check_eq!(
        sorted(watched.told().await?),
        ["created e", "created f.txt"]
    )
}

/// Excluded entries are never named, and a move of which one side is excluded is a
/// creation or a deletion of the other.
pub async fn excluded_entries_are_never_told(t: &Env) -> CaseResult {
    t.put_all(&["secret/a.txt", "shown/b.txt"]).await?;
    let secret = t.path("secret")?;
    let exclude = Exclude::hide([secret.as_str(), "*.pem"]);
    let exclude = exclude.map_err(backend_core::Error::from)?;
    let query = WatchQuery::new(t.path("")?).exclude(exclude);
    let mut watched = watch_with(t, query).await?;
    t.put("secret/c.txt", "text").await?;
    t.put("secret/new/d.txt", "text").await?;
    t.put("shown/key.pem", "text").await?;
    t.put("shown/e.txt", "text").await?;
    check_eq!(watched.told().await?, ["created shown/e.txt"])?;
    rename(t, "secret/a.txt", "shown/a.txt").await?;
    rename(t, "secret/new", "shown/new").await?;
    let told = sorted(watched.told().await?);
    let expected = [
        "created shown/a.txt",
        "created shown/new",
        "created shown/new/d.txt",
    ];
    check_eq!(told, expected)?;
    rename(t, "shown/b.txt", "secret/b.txt").await?;
    t.backend().delete_tree("secret").await?;
    check_eq!(watched.told().await?, ["deleted shown/b.txt"])
}

/// The temporary files of writes are never told.
pub async fn writes_in_progress_are_not_told(t: &Env) -> CaseResult {
    let mut watched = watch(t, "").await?;
    let pieces = (0..40).map(|_| Ok(bytes::Bytes::from(vec![b'x'; 32 * 1024])));
    let content = Content::Stream(futures::stream::iter(pieces).boxed());
    t.put("d/large.bin", content).await?;
    t.backend().copy_to("d/large.bin", "d/copy.bin").await?;
    let expected = ["created d", "created d/copy.bin", "created d/large.bin"];
    check_eq!(sorted(watched.told().await?), expected)
}

/// The stream ends after the watched directory is told as deleted.
pub async fn ends_with_its_directory(t: &Env) -> CaseResult {
    t.put_all(&["d/e/a.txt"]).await?;
    let mut watched = watch(t, "d/e").await?;
    let options = DeleteOptions::default().recursive(true);
    t.backend().delete(&t.path("d/e")?, options).await?;
    let gone = Change::deleted(t.path("d/e")?);
    while watched.next().await? != gone {}
    let end = watched.stream.next().await;
    check!(end.is_none(), "{end:?} after the end")
}

/// The stream also ends if a directory above the watched one is moved.
pub async fn ends_if_it_is_moved(t: &Env) -> CaseResult {
    t.put_all(&["d/e/a.txt"]).await?;
    let mut watched = watch(t, "d/e").await?;
    rename(t, "d", "moved").await?;
    let gone = Change::deleted(t.path("d/e")?);
    while watched.next().await? != gone {}
    let end = watched.stream.next().await;
    check!(end.is_none(), "{end:?} after the end")
}

/// Each watch has its own changes, and the end of one disturbs no other.
pub async fn watches_are_independent(t: &Env) -> CaseResult {
    t.put_all(&["d/a.txt", "e/b.txt"]).await?;
    let mut all = watch(t, "").await?;
    let mut one = watch(t, "d").await?;
    let dropped = watch(t, "d").await?;
    t.put("d/a.txt", "other").await?;
    drop(dropped);
    t.put("e/b.txt", "other").await?;
    check_eq!(one.told().await?, ["changed a.txt"])?;
    let mut told = sorted(all.told().await?);
    told.retain(|change| !change.contains(FENCE));
    check_eq!(told, ["changed d/a.txt", "changed e/b.txt"])
}

/// A missing path, or a file, cannot be watched.
pub async fn only_directories(t: &Env) -> CaseResult {
    t.put("a.txt", "text").await?;
    for (path, kind) in [
        ("missing", ErrorKind::NotFound),
        ("a.txt", ErrorKind::NotADirectory),
        ("a.txt/b", ErrorKind::NotADirectory),
    ] {
        let watched = t.backend().watch(WatchQuery::new(t.path(path)?)).await;
        t.fails(kind, watched.map(drop))?;
    }
    Ok(())
}

/// Links are entries like others and are not followed.
pub async fn links_are_not_followed(t: &Env) -> CaseResult {
    t.put_all(&["out/a.txt", "in/kept.txt"]).await?;
    t.link("in/old", "../out").await?;
    let mut watched = watch(t, "in").await?;
    t.link("in/new", "../out").await?;
    t.put("out/b.txt", "text").await?;
    check_eq!(watched.told().await?, ["created new"])
}

/// A directory can be watched through a link, under the path that was given, unless
/// links are refused.
pub async fn link_on_the_way(t: &Env) -> CaseResult {
    t.put_all(&["d/e/kept.txt"]).await?;
    t.link("link", "d").await?;
    let query = WatchQuery::new(t.path("link/e")?);
    let refused = t.backend().watch(query.clone().links(Links::Refuse)).await;
    t.fails(ErrorKind::IsALink, refused.map(drop))?;
    let mut watched = watch_with(t, query).await?;
    t.put("d/e/a.txt", "text").await?;
    check_eq!(watched.told().await?, ["created a.txt"])
}

/// Changes that a command makes are told like all others.
pub async fn commands_are_seen(t: &Env) -> CaseResult {
    t.put_all(&["a.txt"]).await?;
    let mut watched = watch(t, "").await?;
    t.run("echo more >> a.txt && mkdir -p d/e && echo new > d/e/b.txt")
        .await?;
    let expected = [
        "changed a.txt",
        "created d",
        "created d/e",
        "created d/e/b.txt",
    ];
    check_eq!(sorted(watched.told().await?), expected)?;
    t.run("rm -r d").await?;
    let told = watched.told().await?;
    check_eq!(told.last().map(String::as_str), Some("deleted d"))
}
