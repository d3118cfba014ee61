//! The finding about local directories in a build without them.

use super::{Backend, Finding};

pub(super) async fn findings(backend: &Backend) -> Vec<Finding> {
    let finding = Finding::new("local", "directories of this machine and commands in them");
    let finding = finding.needed(backend.uses("local") || backend.uses("mounts"));
    let said = crate::backend::without_local("local:DIR").to_string();
    std::future::ready(vec![finding.wrong(&said)]).await
}
