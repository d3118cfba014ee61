//! A backend that follows the contract except for one chosen defect.

use async_trait::async_trait;
use backend_core::ops::*;
use backend_core::search::{Exclude, is_generated};
use backend_core::text::{self, TextWindow};
use backend_core::{
    Backend, BackendInfo, Edit, Error, ErrorKind, Operation, Result, Sandbox, VPath, WatchStream,
};
use backend_state::StateBackend;
use bytes::Bytes;
use futures::StreamExt as _;

/// A defect. The first 29 are differences between the backends of pydantic-ai-backend,
/// one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    NumbersInText,
    FinalNewlineIsALine,
    EmptyFileIsAnError,
    PastTheEndIsEmpty,
    TrailerInText,
    MissingFileIsText,
    DirectoryReadsAsAFile,
    BinaryIsShown,
    LongLinesAreNotCut,
    UniversalNewlines,
    WriteDropsCarriageReturns,
    EditConvertsLineEnds,
    EditTranscodes,
    ListingAFileIsEmpty,
    DirectoriesHaveSizes,
    DirectoriesHaveTimes,
    ListedPathsLackTheirDirectory,
    ArrowsCutListedNames,
    StarCrossesSlashes,
    PlainPatternIsAnchored,
    HiddenFilesAreFound,
    NoBraces,
    NewestFirstAlways,
    FoundFilesHaveNoSize,
    BasicRegularExpressions,
    BadPatternFindsNothing,
    FilterIsAnchored,
    SingleFileFindsNothing,
    WorkingDirectoryFindsNothing,
    // Further defects.
    ParentsAreNotCreated,
    CreateNewOverwrites,
    IfUnchangedIsIgnored,
    StreamFailureKeepsAPart,
    EditTakesTheFirst,
    EditIsNotAtomic,
    DeletingMissingIsFine,
    DeleteIsRecursive,
    RenameOverwrites,
    CopyMovesInstead,
    LimitTakesTheTail,
    ExcludeComesAfterTheLimit,
    IgnoreFilesAreIgnored,
    GeneratedIsSearched,
    GeneratedIsNeverSearched,
    GeneratedIsNotCounted,
    BinaryIsNotCounted,
    TruncationIsNotTold,
    ErrorsLackContext,
    RangesAreIgnored,
    TooMuchIsShortened,
    MissingListsEmpty,
    ExcludedChangesAreTold,
    WatchIsOneLevel,
    RewritesAreCreated,
}

use Defect::*;

/// The number of defects that are rows of the table of differences.
pub(crate) const ROWS: usize = 29;

/// The in-memory backend with one defect.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) inner: StateBackend,
    pub(crate) defect: Defect,
}

impl Broken {
    fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn spoil<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Err(error) if self.has(ErrorsLackContext) => {
                Err(Error::new(error.kind(), error.message().to_owned()))
            }
            result => result,
        }
    }

    async fn whole(&self, path: &VPath) -> Result<Bytes> {
        let options = ReadOptions::default();
        Ok(self.inner.read(path, options).await?.data)
    }

    /// Returns the window that a reader with the defect makes of a file's bytes.
    fn window(&self, content: &[u8], request: TextOptions) -> Result<TextWindow> {
        let text = String::from_utf8_lossy(content);
        let content: Vec<u8> = match self.defect {
            NumbersInText => {
                let lines = text.split_inclusive('\n').enumerate();
                let lines = lines.map(|(at, line)| format!("{:>6}\t{line}", at + 1));
                lines.collect::<String>().into()
            }
            FinalNewlineIsALine if text.ends_with('\n') => format!("{text}\n").into(),
            BinaryIsShown => text.replace('\0', "").into(),
            UniversalNewlines => text.replace("\r\n", "\n").replace('\r', "\n").into(),
            _ => content.into(),
        };
        Ok(text::window(&content, request)?)
    }
}

fn is_in_generated(path: &VPath) -> bool {
    let parent = path.parent();
    parent.is_some_and(|parent| parent.as_str().split('/').any(is_generated))
}

fn window_of(text: &str) -> Result<TextWindow> {
    Ok(text::window(text.as_bytes(), TextOptions::default())?)
}

#[async_trait]
impl Backend for Broken {
    backend_core::delegate!(|self| self.inner => working_dir, resolve, stat, create_dir);

    /// Changes are told only where that is what is wrong: other defects would show in them.
    fn info(&self) -> BackendInfo {
        let mut info = self.inner.info();
        info.capabilities.watch = matches!(
            self.defect,
            ExcludedChangesAreTold | WatchIsOneLevel | RewritesAreCreated
        );
        info
    }

    async fn watch(&self, mut query: WatchQuery) -> Result<WatchStream> {
        if !self.info().capabilities.watch {
            return Err(Error::no_watch().at(Operation::Watch, &query.path));
        }
        if self.has(ExcludedChangesAreTold) {
            query.exclude = Exclude::none();
        }
        query.recursive &= !self.has(WatchIsOneLevel);
        let created = self.has(RewritesAreCreated);
        let changes = self
            .inner
            .watch(query)
            .await?
            .map(move |event| match event? {
                WatchEvent::Change(change) if created && change.kind == ChangeKind::Changed => {
                    Ok(Change::created(change.path).into())
                }
                event => Ok(event),
            });
        Ok(changes.boxed())
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        None
    }

    async fn ls(&self, path: &VPath, mut options: LsOptions) -> Result<Listing> {
        let wanted = options.clone();
        if self.has(ExcludeComesAfterTheLimit) {
            options.exclude = Exclude::none();
        }
        let listed = match self.inner.ls(path, options).await {
            Err(error) if self.has(MissingListsEmpty) && error.is_not_found() => {
                Ok(Listing::default())
            }
            listed => listed,
        };
        let mut listing = self.spoil(listed)?;
        let lists_itself = listing.entries.iter().any(|entry| entry.path == *path);
        match self.defect {
            ListingAFileIsEmpty if lists_itself => listing = Listing::default(),
            ExcludeComesAfterTheLimit => {
                let shown = |entry: &Entry| !wanted.exclude.hides(&entry.path);
                listing.entries.retain(shown);
            }
            TruncationIsNotTold => listing.total = listing.entries.len(),
            _ => {}
        }
        for entry in &mut listing.entries {
            match self.defect {
                DirectoriesHaveSizes if entry.is_dir() => entry.size = Some(4096),
                DirectoriesHaveTimes if entry.is_dir() => {
                    entry.modified = Some(std::time::SystemTime::now());
                }
                ListedPathsLackTheirDirectory => {
                    entry.path = VPath::root().child(entry.name())?;
                }
                ArrowsCutListedNames => {
                    let name = entry.name().split(" -> ").next().unwrap_or_default();
                    entry.path = path.child(name)?;
                }
                _ => {}
            }
        }
        Ok(listing)
    }

    async fn read(&self, path: &VPath, mut options: ReadOptions) -> Result<FileBytes> {
        match self.defect {
            RangesAreIgnored => options.range = ByteRange::default(),
            TooMuchIsShortened => {
                let stat = self.inner.stat(path, StatOptions::default()).await;
                let size = stat.ok().and_then(|entry| entry.size).unwrap_or(0);
                if size > options.max_bytes {
                    options.range = (0..options.max_bytes).into();
                }
            }
            DirectoryReadsAsAFile => {
                let listing = self.inner.ls(path, LsOptions::default()).await;
                let first = listing
                    .ok()
                    .and_then(|list| list.entries.into_iter().next());
                if let Some(first) = first.filter(Entry::is_file) {
                    return self.inner.read(&first.path, options).await;
                }
            }
            _ => {}
        }
        self.spoil(self.inner.read(path, options).await)
    }

    async fn read_text(&self, path: &VPath, mut options: TextOptions) -> Result<TextWindow> {
        if self.has(LongLinesAreNotCut) {
            options.max_line_bytes = usize::MAX;
        }
        let content = match self.whole(path).await {
            Err(error) if self.has(MissingFileIsText) && error.is_not_found() => {
                return window_of("Error: File not found");
            }
            Err(error)
                if self.has(DirectoryReadsAsAFile) && error.kind() == ErrorKind::IsADirectory =>
            {
                self.read(path, ReadOptions::default()).await?.data
            }
            content => content?,
        };
        if content.is_empty() && self.has(EmptyFileIsAnError) {
            return Err(Error::invalid_input(
                "offset 0 exceeds file length (0 lines)",
            ));
        }
        let window = self.window(&content, options);
        let window = window.map_err(|error| error.at(Operation::ReadText, path).on("state"));
        match (self.defect, window) {
            (PastTheEndIsEmpty, Err(error)) if error.kind() == ErrorKind::InvalidInput => {
                window_of("")
            }
            (TrailerInText, Ok(window)) if window.more => {
                window_of(&format!("{}\n\n... (more lines)", window.text()))
            }
            (_, window) => window,
        }
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        mut options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let content = match (self.defect, content) {
            (WriteDropsCarriageReturns, content) => {
                let mut bytes = content.collect(u64::MAX).await?.to_vec();
                bytes.retain(|byte| *byte != b'\r');
                bytes.into()
            }
            (StreamFailureKeepsAPart, Content::Stream(mut stream)) => {
                use futures::StreamExt as _;
                let mut part = Vec::new();
                while let Some(Ok(piece)) = stream.next().await {
                    part.extend_from_slice(&piece);
                }
                part.into()
            }
            (_, content) => content,
        };
        match options.mode {
            WriteMode::CreateNew if self.has(CreateNewOverwrites) => {
                options.mode = WriteMode::Overwrite;
            }
            WriteMode::IfUnchanged(_) if self.has(IfUnchangedIsIgnored) => {
                options.mode = WriteMode::Overwrite;
            }
            _ => {}
        }
        // Only for one level, or nearly every case would fail.
        if self.has(ParentsAreNotCreated)
            && let Some(above) = path.parent().and_then(|parent| parent.parent())
        {
            self.inner.stat(&above, StatOptions::default()).await?;
        }
        self.spoil(self.inner.write(path, content, options).await)
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let before = self.whole(path).await.unwrap_or_default();
        let text = String::from_utf8_lossy(&before).into_owned();
        let overwrite = WriteOptions::default();
        match self.defect {
            EditConvertsLineEnds if text.contains('\r') => {
                let text = text.replace('\r', "");
                self.inner.write(path, text.into(), overwrite).await?;
            }
            EditTranscodes if text.as_bytes() != before => {
                self.inner.write(path, text.into(), overwrite).await?;
            }
            EditTakesTheFirst => {
                if let [edit] = edits
                    && !edit.replace_all
                    && !edit.old.is_empty()
                    && text.matches(&edit.old).count() > 1
                {
                    let text = text.replacen(&edit.old, &edit.new, 1);
                    let size = text.len() as u64;
                    let hash = ContentHash::of(text.as_bytes());
                    self.inner.write(path, text.into(), overwrite).await?;
                    return Ok(EditOutcome::new(vec![1], 1, size, hash));
                }
            }
            EditIsNotAtomic if edits.len() > 1 => {
                for edit in edits {
                    let one = std::slice::from_ref(edit);
                    self.inner.edit(path, one, options).await?;
                }
                let after = self.whole(path).await?;
                let counts = vec![1; edits.len()];
                let hash = ContentHash::of(&after);
                return Ok(EditOutcome::new(counts, 1, after.len() as u64, hash));
            }
            _ => {}
        }
        self.spoil(self.inner.edit(path, edits, options).await)
    }

    async fn delete(&self, path: &VPath, mut options: DeleteOptions) -> Result<()> {
        if self.has(DeleteIsRecursive) {
            options.recursive = true;
        }
        match self.inner.delete(path, options).await {
            Err(error) if self.has(DeletingMissingIsFine) && error.is_not_found() => Ok(()),
            deleted => self.spoil(deleted),
        }
    }

    async fn rename(&self, from: &VPath, to: &VPath, mut options: RenameOptions) -> Result<()> {
        if self.has(RenameOverwrites) {
            options.overwrite = true;
        }
        self.spoil(self.inner.rename(from, to, options).await)
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.inner.copy(from, to, options).await?;
        if self.has(CopyMovesInstead) {
            let all = DeleteOptions::default().recursive(true);
            self.inner.delete(from, all).await?;
        }
        Ok(())
    }

    async fn glob(&self, mut query: GlobQuery) -> Result<GlobResult> {
        let wanted = query.clone();
        match self.defect {
            StarCrossesSlashes if query.pattern.contains('/') && !query.pattern.contains("**") => {
                query.pattern = query.pattern.replace('*', "**/*");
            }
            PlainPatternIsAnchored if !query.pattern.contains('/') && !query.pattern.is_empty() => {
                let start = query.path.as_str().trim_end_matches('/');
                query.pattern = format!("{start}/{}", query.pattern);
            }
            HiddenFilesAreFound => query.hidden = true,
            NoBraces => query.pattern = query.pattern.replace('{', "\\{").replace('}', "\\}"),
            NewestFirstAlways => query.order = GlobOrder::NewestFirst,
            IgnoreFilesAreIgnored => query.ignored = true,
            GeneratedIsSearched => query.generated = true,
            ExcludeComesAfterTheLimit => query.exclude = Exclude::none(),
            LimitTakesTheTail if query.limit > 0 => query.limit = usize::MAX,
            _ => {}
        }
        let mut result = self.spoil(self.inner.glob(query).await)?;
        match self.defect {
            FoundFilesHaveNoSize => {
                for file in &mut result.files {
                    file.size = None;
                    file.modified = None;
                }
            }
            ExcludeComesAfterTheLimit => {
                let shown = |file: &Entry| !wanted.exclude.hides(&file.path);
                result.files.retain(shown);
            }
            LimitTakesTheTail => {
                let over = result.files.len().saturating_sub(wanted.limit);
                result.files.drain(..over);
                result.truncated = over > 0;
            }
            TruncationIsNotTold => result.truncated = false,
            GeneratedIsNeverSearched => result.files.retain(|file| !is_in_generated(&file.path)),
            GeneratedIsNotCounted => result.skipped.generated = 0,
            _ => {}
        }
        Ok(result)
    }

    async fn grep(&self, mut query: GrepQuery) -> Result<GrepResult> {
        let wanted = query.clone();
        let nothing = Ok(GrepResult::default());
        match self.defect {
            BasicRegularExpressions => {
                for special in ['+', '|', '(', ')'] {
                    query.pattern = query.pattern.replace(special, &format!("\\{special}"));
                }
            }
            FilterIsAnchored => {
                if let Some(files) = query.files.as_mut().filter(|files| !files.contains('/')) {
                    let start = query.path.as_str().trim_end_matches('/');
                    *files = format!("{start}/{files}");
                }
            }
            SingleFileFindsNothing => {
                let stat = self.inner.stat(&query.path, StatOptions::default()).await;
                if stat.is_ok_and(|entry| entry.is_file()) {
                    return nothing;
                }
            }
            WorkingDirectoryFindsNothing if query.path == self.working_dir() && !query.hidden => {
                self.inner.grep(query).await?;
                return nothing;
            }
            HiddenFilesAreFound => query.hidden = true,
            IgnoreFilesAreIgnored => query.ignored = true,
            GeneratedIsSearched => query.generated = true,
            ExcludeComesAfterTheLimit => query.exclude = Exclude::none(),
            LimitTakesTheTail if query.max_matches > 0 => query.max_matches = usize::MAX,
            _ => {}
        }
        let found = match self.inner.grep(query).await {
            Err(error)
                if self.has(BadPatternFindsNothing) && error.kind() == ErrorKind::InvalidInput =>
            {
                return nothing;
            }
            found => found,
        };
        let mut result = self.spoil(found)?;
        match self.defect {
            BinaryIsNotCounted => result.skipped.binary = 0,
            GeneratedIsNeverSearched => result.files.retain(|file| !is_in_generated(&file.path)),
            GeneratedIsNotCounted => result.skipped.generated = 0,
            ExcludeComesAfterTheLimit => {
                let shown = |file: &FileMatches| !wanted.exclude.hides(&file.path);
                result.files.retain(shown);
            }
            LimitTakesTheTail => {
                while result.matches > wanted.max_matches && !result.files.is_empty() {
                    result.matches -= result.files.remove(0).matches;
                    result.truncated = true;
                }
            }
            TruncationIsNotTold => result.truncated = false,
            _ => {}
        }
        Ok(result)
    }
}
