//! Tests of the cases about links: a backend that joins paths and passes them to the
//! kernel, as most do, fails exactly the cases that it should.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use backend_core::ops::{
    Content, CreateDirOptions, DeleteOptions, Entry, FileBytes, FileKind, Listing, LsOptions,
    ReadOptions, Skipped, StatOptions, WriteOptions, WriteOutcome,
};
use backend_core::{
    BackendInfo, Capabilities, Error, ErrorKind, Operation, Result, VPath, derived,
};
use backend_testkit::{DirectoryFixture, Need, Outcome, block_on, run_case};

/// The cases that it fails, of those that need links, an outside directory or
/// permission bits.
const FAILED: &[&str] = &[
    "resolve::link_leads_to_its_target",
    "resolve::refused_link_is_told",
    "link_read::chain_is_followed",
    "link_read::parent_after_a_link_climbs_from_its_target",
    "link_read::absolute_link_inside_is_followed",
    "link_read::circle_is_invalid",
    "link_read::link_out_is_denied",
    "link_read::link_out_is_listed_as_a_link",
    "link_read::link_out_and_back_is_denied",
    "link_read::resolve_goes_to_the_end",
    "link_read::resolve_of_a_link_out_is_denied",
    "link_read::refused_by_every_read",
    "link_read::refused_link_out_is_a_link",
    "link_write::write_through_a_dangling_link_creates_its_target",
    "link_write::write_beneath_a_file_link",
    "link_write::link_out_is_denied",
    "link_write::refused_by_every_write",
    "link_move::delete_takes_the_link",
    "link_move::rename_moves_the_link",
    "link_move::copy_keeps_the_text",
    "link_move::recursive_copy_copies_links",
    "link_move::link_at_the_destination_is_replaced_itself",
    "link_move::link_replaces_a_file",
    "link_move::onto_itself_through_a_link",
    "link_move::into_itself_through_a_link",
    "link_move::link_out_is_denied",
    "link_move::link_out_itself_is_only_a_link",
    "link_move::refused_above_either_path",
    "link_move::refusing_acts_on_the_link_itself",
    "modes::bits_are_told",
    "modes::copy_copies_bits",
    "modes::rename_keeps_bits",
    "modes::copy_of_a_closed_directory",
];

/// A directory by its path. Changes are made one at a time.
#[derive(Debug)]
struct Naive {
    root: PathBuf,
    changes: Mutex<()>,
}

impl Naive {
    fn host(&self, path: &VPath) -> PathBuf {
        self.root.join(path.as_str().trim_start_matches('/'))
    }
}

fn kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::NotADirectory => ErrorKind::NotADirectory,
        io::ErrorKind::IsADirectory => ErrorKind::IsADirectory,
        io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
        io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        // ELOOP: too many links.
        _ if error.raw_os_error() == Some(40) => ErrorKind::InvalidPath,
        _ => ErrorKind::Internal,
    }
}

fn at(operation: Operation, path: &VPath) -> impl FnOnce(io::Error) -> Error {
    move |error| {
        let told = Error::new(kind(&error), error.to_string());
        Error::context("naive", operation, path)(told)
    }
}

fn entry(path: VPath, host: &Path) -> io::Result<Entry> {
    let link = host.is_symlink();
    let entry = match fs::metadata(host) {
        Ok(metadata) if metadata.is_dir() => Entry::directory(path),
        Ok(metadata) => {
            Entry::file(path, metadata.len()).with_mode(Some(metadata.permissions().mode() & 0o777))
        }
        Err(_) if link => Entry::of_kind(path, FileKind::Link),
        Err(error) => return Err(error),
    };
    Ok(entry.with_link(link))
}

backend_core::derived_backend! {
    impl Backend for Naive {
        fn info(&self) -> BackendInfo {
            BackendInfo::new("naive", Capabilities::writable().with_links())
        }
        async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
            let host = self.host(path);
            fs::metadata(&host).map_err(at(Operation::Stat, path))?;
            entry(path.clone(), &host).map_err(at(Operation::Stat, path))
        }
        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            let host = self.host(path);
            let mut entries = Vec::new();
            if fs::metadata(&host).map_err(at(Operation::Ls, path))?.is_file() {
                entries.push(entry(path.clone(), &host).map_err(at(Operation::Ls, path))?);
                return options.listing(entries, Skipped::default());
            }
            for found in fs::read_dir(&host).map_err(at(Operation::Ls, path))? {
                let found = found.map_err(at(Operation::Ls, path))?;
                let name = found.file_name().into_string().unwrap_or_default();
                entries.extend(path.join(&name).ok().and_then(|path| entry(path, &found.path()).ok()));
            }
            options.listing(entries, Skipped::default())
        }
        async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
            let content = fs::read(self.host(path)).map_err(at(Operation::Read, path))?;
            options.slice(&content.into()).map_err(Error::context("naive", Operation::Read, path))
        }
        async fn write(&self, path: &VPath, content: Content, options: WriteOptions) -> Result<WriteOutcome> {
            let content = content.collect(1 << 30).await.map_err(Error::context("naive", Operation::Write, path))?;
            let _turn = self.changes.lock();
            let host = self.host(path);
            if host.is_dir() {
                return Err(options.mode.on_directory()).map_err(Error::context("naive", Operation::Write, path));
            }
            let old = fs::read(&host).ok();
            options.mode.check(old.as_deref()).map_err(Error::context("naive", Operation::Write, path))?;
            if let Some(parent) = host.parent() {
                fs::create_dir_all(parent).map_err(at(Operation::Write, path))?;
            }
            fs::write(&host, &content).map_err(at(Operation::Write, path))?;
            Ok(WriteOutcome::of(old.is_none(), &content))
        }
        async fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
            fs::create_dir_all(self.host(path)).map_err(at(Operation::CreateDir, path))
        }
        async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
            derived::refuse_working_dir(path, &VPath::root()).map_err(Error::context("naive", Operation::Delete, path))?;
            let host = self.host(path);
            let found = fs::metadata(&host).map_err(at(Operation::Delete, path))?;
            let deleted = match (found.is_dir(), options.recursive) {
                (true, true) => fs::remove_dir_all(&host),
                (true, false) => Err(io::ErrorKind::IsADirectory.into()),
                (false, _) => fs::remove_file(&host),
            };
            deleted.map_err(at(Operation::Delete, path))
        }
    }
}

fn naive() -> DirectoryFixture {
    let fixture = DirectoryFixture::new(|root| {
        let (root, changes) = (root.to_owned(), Mutex::default());
        (Arc::new(Naive { root, changes }), None)
    });
    fixture.without(&[
        Need::Times,
        Need::SetTime,
        Need::Fifo,
        Need::RawName,
        Need::ReadOnly,
        Need::Commands,
    ])
}

#[test]
fn fails_exactly_the_cases_it_should() {
    let needs = [Need::Links, Need::Outside, Need::Modes];
    let about_links = backend_testkit::CASES
        .iter()
        .filter(|case| case.needs.iter().any(|need| needs.contains(need)));
    let mut failed = Vec::new();
    for case in about_links {
        match block_on(run_case(case, naive())) {
            Outcome::Failed(failure) => failed.push((case.id(), failure.to_string())),
            Outcome::Passed | Outcome::Skipped(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let ids: Vec<_> = failed.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, FAILED, "{failed:#?}");
}
