//! `mounts:FILE`: named directories of this machine, each with its own permissions.

#[cfg(not(local))]
use super::absent::{check, open};
use super::{Argument, Kind};

#[cfg(local)]
use self::tree::{check, open};

pub(super) const KIND: Kind = Kind {
    name: "mounts",
    usage: "mounts:FILE",
    argument: Argument::File,
    keys: &[],
    paths: &[],
    check,
    open,
};

#[cfg(local)]
mod tree {
    use std::sync::Arc;

    use backend_core::Backend;
    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use mounts::Opener;

    use crate::backend::{BackendSpec, Opened};
    use crate::exit::Failure;

    pub(super) fn check(spec: &BackendSpec) -> Result<Vec<&'static str>, Failure> {
        drop(Opener::from_file(spec.file()?)?);
        Ok(vec![super::KIND.name])
    }

    pub(super) fn open(spec: &BackendSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        async move {
            let tree = Opener::from_file(spec.file()?)?.open()?;
            let files: Arc<dyn Backend> = Arc::new(tree.unguarded().clone());
            let guarded: Arc<dyn Backend> = Arc::new(tree.guard().build());
            Ok(Opened::of_mounts(files, tree.config(), guarded))
        }
        .boxed()
    }
}
