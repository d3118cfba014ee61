//! [`derive`]: narrower views of a guard.

use backend_core::ops::{Links, StatOptions};
use backend_core::{Backend, Error, ErrorKind, Operation, Result};
use permissions::Guarded;

use crate::derive::{Derive, DeriveError};
use crate::scope::Scope;

/// Returns a view of `guard` with a narrower scope.
///
/// # Errors
///
/// `Unsupported` without mounts, `InvalidInput` if an entry is a file, `PermissionDenied`
/// if the scope does not contain an entry, and any other error of `stat`.
pub async fn derive<B: Backend>(guard: &Guarded<B>, derive: Derive) -> Result<Guarded<B>> {
    let Some(scope) = guard.policy().layer::<Scope>() else {
        return Err(Error::unsupported(
            "there are no mounts to narrow; give the policy a scope",
        ));
    };
    let derived = narrowed(guard.unguarded(), scope, derive).await?;
    Ok(guard.with_policy(guard.policy().with_layer(derived)))
}

/// Derives a scope whose entries are directories of `backend`, or do not exist yet.
pub(crate) async fn narrowed<B: Backend>(
    backend: &B,
    scope: &Scope,
    derive: Derive,
) -> Result<Scope> {
    for entry in derive.entries()? {
        let options = StatOptions::default().links(Links::Refuse);
        let found = backend.stat(&entry, options).await;
        match Error::none_if_missing(found) {
            Ok(Some(found)) if found.is_file() => return Err(DeriveError::file(entry).into()),
            // A link is accepted without following it. Its target has its own path.
            Err(error) if error.kind() != ErrorKind::IsALink => {
                return Err(error.as_part_of(Operation::Stat, &entry));
            }
            _ => {}
        }
    }
    Ok(scope.derive(derive)?)
}
