//! One call of the contract as data, and its result as text.

use std::fmt::Debug;

use backend_core::ops::{
    Case, ContentHash, CopyOptions, DeleteOptions, EditOptions, GlobOrder, GlobQuery, GlobResult,
    GrepQuery, GrepResult, LsOptions, ReadOptions, RenameOptions, Skipped, TextOptions, WriteMode,
    WriteOptions,
};
use backend_core::search::{Exclude, ExcludeRule};
use backend_core::{Backend, BackendExt as _, Edit, Result, VPath};

/// A call with all its arguments.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Resolve(VPath),
    Stat(VPath),
    Exists(VPath),
    Ls(VPath, usize, Hide),
    Read(VPath, Option<(u64, u64)>, u64),
    ReadText(VPath, u64, usize),
    Write(VPath, &'static str, Mode),
    Edit(VPath, &'static str, &'static str, bool),
    CreateDir(VPath),
    Delete(VPath, bool),
    Rename(VPath, VPath, bool),
    Copy(VPath, VPath, bool, bool),
    Glob(Search, GlobOrder),
    Grep(Search, Lines),
}

/// The condition for a write.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    Overwrite,
    CreateNew,
    /// Only if the file holds this text.
    If(&'static str),
}

/// The start of a search and the entries to leave out.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    pub(crate) start: VPath,
    pub(crate) pattern: Option<&'static str>,
    pub(crate) limit: usize,
    pub(crate) hidden: bool,
    pub(crate) ignored: bool,
    pub(crate) generated: bool,
    pub(crate) hide: Hide,
}

/// The further options of a grep.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    pub(crate) pattern: &'static str,
    pub(crate) context: (usize, usize),
    pub(crate) max_bytes: usize,
    pub(crate) insensitive: bool,
}

/// Rules of an exclusion: a pattern, and whether to hide its matches.
pub(crate) type Hide = &'static [&'static [(&'static str, bool)]];

fn exclude(hide: Hide) -> Exclude {
    let rule = |(pattern, hide): &(&str, bool)| {
        if *hide {
            ExcludeRule::hide(*pattern)
        } else {
            ExcludeRule::keep(*pattern)
        }
    };
    let layers = hide.iter().map(|layer| layer.iter().map(rule).collect());
    Exclude::from_layers(layers.collect()).unwrap()
}

impl Call {
    /// Returns the result as text. Of an error, only the kind, the operation and the path.
    pub(crate) async fn answer(&self, backend: &dyn Backend) -> String {
        match self {
            Self::Resolve(path) => told(backend.resolve(path, Default::default()).await),
            Self::Stat(path) => told(backend.stat(path, Default::default()).await),
            Self::Exists(path) => told(backend.exists(path.as_str()).await),
            Self::Ls(path, limit, hide) => {
                let options = LsOptions::default().limit(*limit).exclude(exclude(hide));
                told(backend.ls(path, options).await)
            }
            Self::Read(path, range, max) => {
                let mut options = ReadOptions::default().max_bytes(*max);
                if let Some((start, end)) = range {
                    options = options.range(*start..*end);
                }
                told(backend.read(path, options).await)
            }
            Self::ReadText(path, offset, limit) => {
                let options = TextOptions::default().offset(*offset).limit(*limit);
                told(backend.read_text(path, options).await)
            }
            Self::Write(path, content, mode) => {
                let mode = match mode {
                    Mode::Overwrite => WriteMode::Overwrite,
                    Mode::CreateNew => WriteMode::CreateNew,
                    Mode::If(content) => {
                        WriteMode::IfUnchanged(ContentHash::of(content.as_bytes()))
                    }
                };
                let options = WriteOptions::default().mode(mode);
                told(backend.write(path, (*content).into(), options).await)
            }
            Self::Edit(path, old, new, all) => {
                let mut edit = Edit::new(*old, *new);
                edit.replace_all = *all;
                told(backend.edit(path, &[edit], EditOptions::default()).await)
            }
            Self::CreateDir(path) => told(backend.create_dir(path, Default::default()).await),
            Self::Delete(path, recursive) => {
                let options = DeleteOptions::default().recursive(*recursive);
                told(backend.delete(path, options).await)
            }
            Self::Rename(from, to, overwrite) => {
                let options = RenameOptions::default().overwrite(*overwrite);
                told(backend.rename(from, to, options).await)
            }
            Self::Copy(from, to, overwrite, recursive) => {
                let options = CopyOptions::default()
                    .overwrite(*overwrite)
                    .recursive(*recursive);
                told(backend.copy(from, to, options).await)
            }
            Self::Glob(search, order) => found(backend.glob(search.glob(*order)).await),
            Self::Grep(search, lines) => matched(backend.grep(search.grep(lines)).await),
        }
    }
}

impl Search {
    fn glob(&self, order: GlobOrder) -> GlobQuery {
        GlobQuery::new(self.pattern.unwrap_or("**"), self.start.clone())
            .order(order)
            .limit(self.limit)
            .hidden(self.hidden)
            .ignored(self.ignored)
            .generated(self.generated)
            .exclude(exclude(self.hide))
    }

    fn grep(&self, lines: &Lines) -> GrepQuery {
        let mut query = GrepQuery::new(lines.pattern, self.start.clone())
            .max_matches(self.limit)
            .max_bytes(lines.max_bytes)
            .context(lines.context.0, lines.context.1)
            .hidden(self.hidden)
            .ignored(self.ignored)
            .generated(self.generated)
            .exclude(exclude(self.hide));
        if lines.insensitive {
            query = query.case(Case::Insensitive);
        }
        query.files = self.pattern.map(Into::into);
        query
    }
}

fn told<T: Debug>(answer: Result<T>) -> String {
    match answer {
        Ok(answer) => format!("{answer:#?}"),
        Err(error) => format!(
            "{:?} {:?} {:?}",
            error.kind(),
            error.operation(),
            error.path()
        ),
    }
}

/// A search that was cut short counts what it had met by then. Two searches in a
/// different order need not agree on that.
fn found(answer: Result<GlobResult>) -> String {
    told(answer.map(|mut found| {
        if found.truncated {
            found.skipped = Skipped::default();
        }
        found
    }))
}

fn matched(answer: Result<GrepResult>) -> String {
    told(answer.map(|mut found| {
        if found.truncated {
            found.skipped = Skipped::default();
        }
        found
    }))
}
