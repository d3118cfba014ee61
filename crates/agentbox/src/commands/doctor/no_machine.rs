//! The finding about local directories in a build without them.

use super::UsedBackend;
use super::finding::Finding;
use crate::backend::absent;
use crate::backend::kind::Kind;

pub(super) async fn findings(backend: &UsedBackend) -> Vec<Finding> {
    let finding = Finding::new("local", "directories of this machine and commands in them");
    let finding = finding.needed(backend.uses(Kind::Local) || backend.uses(Kind::Mounts));
    let absent = absent::without_local("local:DIR");
    std::future::ready(vec![finding.wrong(&absent)]).await
}
