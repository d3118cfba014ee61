//! A portable sandbox on this host, in its own directory, and direct access to
//! that directory.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::{Backend, VPath};
use backend_testkit::{CaseResult, Failure, Fixture, Need};
use sandbox_wire::PortableSandbox;

use super::portable_machine::HostMachine;

/// A sandbox on a temporary directory.
pub(crate) struct PortableFixture {
    sandbox: PortableSandbox<HostMachine>,
    _directory: tempfile::TempDir,
}

impl PortableFixture {
    pub(crate) fn new(path: String) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("portable")
            .tempdir()
            .unwrap();
        let place = directory.path().canonicalize().unwrap();
        let machine = HostMachine::new(&place, path);
        Self {
            sandbox: PortableSandbox::new(Arc::new(machine)),
            _directory: directory,
        }
    }
}

fn done<T>(result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| Failure::new(format!("the fixture failed: {error}")))
}

#[async_trait]
impl Fixture for PortableFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(self.sandbox.clone())
    }

    fn provides(&self, need: Need) -> bool {
        // A machine has no outside, and it decides itself whether it can be
        // written to.
        !matches!(need, Need::Outside | Need::ReadOnly)
    }

    async fn make_link(&self, path: &VPath, text: &str) -> CaseResult {
        done(std::os::unix::fs::symlink(text, path.as_str()))
    }

    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        let made = std::process::Command::new("mkfifo")
            .arg(path.as_str())
            .status();
        match done(made)?.success() {
            true => Ok(()),
            false => Err(Failure::new("no FIFO was made")),
        }
    }

    async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult {
        let path = Path::new(directory.as_str()).join(OsStr::from_bytes(name));
        done(std::fs::write(path, ""))
    }

    async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult {
        let permissions = Permissions::from_mode(mode);
        done(std::fs::set_permissions(path.as_str(), permissions))
    }

    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        let file = std::fs::File::options().write(true).open(path.as_str());
        done(file.and_then(|file| file.set_modified(time)))
    }
}
