//! [`Capacity`]: the ceilings on running sessions, and the places under them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::CapacityScope;

/// A ceiling that is reached.
#[derive(Debug)]
pub(crate) struct Full {
    pub(crate) scope: CapacityScope,
    pub(crate) limit: usize,
}

/// Counts running sessions, and those that are about to run.
#[derive(Debug)]
pub(crate) struct Capacity {
    overall: Option<usize>,
    per_tenant: Option<usize>,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    overall: usize,
    tenants: HashMap<Arc<str>, usize>,
}

impl Capacity {
    pub(crate) fn new(overall: Option<usize>, per_tenant: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            overall,
            per_tenant,
            taken: Mutex::default(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of places taken.
    pub(crate) fn resident(&self) -> usize {
        self.taken().overall
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.overall
    }

    /// Whether tenants have a ceiling.
    pub(crate) fn limits_tenants(&self) -> bool {
        self.per_tenant.is_some()
    }

    /// Takes a place under both ceilings, or none. Never waits.
    pub(crate) fn claim(self: &Arc<Self>, tenant: Option<&Arc<str>>) -> Result<Permit, Full> {
        let mut taken = self.taken();
        if let Some(limit) = self.overall.filter(|limit| taken.overall >= *limit) {
            let scope = CapacityScope::Overall;
            return Err(Full { scope, limit });
        }
        if let Some(tenant) = tenant {
            let count = taken.tenants.get(tenant).copied().unwrap_or(0);
            if let Some(limit) = self.per_tenant.filter(|limit| count >= *limit) {
                let scope = CapacityScope::Tenant(Arc::clone(tenant));
                return Err(Full { scope, limit });
            }
            taken.tenants.insert(Arc::clone(tenant), count + 1);
        }
        taken.overall += 1;
        Ok(Permit {
            capacity: Arc::clone(self),
            tenant: tenant.cloned(),
        })
    }
}

/// A place under the ceilings, given back when it is dropped.
#[derive(Debug)]
#[must_use = "the place is given back when this is dropped"]
pub(crate) struct Permit {
    capacity: Arc<Capacity>,
    tenant: Option<Arc<str>>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.capacity.taken();
        taken.overall = taken.overall.saturating_sub(1);
        let Some(tenant) = &self.tenant else {
            return;
        };
        let left = taken
            .tenants
            .get(tenant)
            .map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            taken.tenants.remove(tenant);
        } else {
            taken.tenants.insert(Arc::clone(tenant), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_given_back() {
        let capacity = Capacity::new(Some(3), Some(2));
        let acme: Arc<str> = "acme".into();
        let first = capacity.claim(Some(&acme)).unwrap();
        let second = capacity.claim(Some(&acme)).unwrap();
        let full = capacity.claim(Some(&acme)).unwrap_err();
        assert_eq!(full.scope, CapacityScope::Tenant(Arc::clone(&acme)));
        assert_eq!(full.limit, 2);
        let other = capacity.claim(None).unwrap();
        assert_eq!(
            capacity.claim(None).unwrap_err().scope,
            CapacityScope::Overall
        );
        drop(first);
        assert_eq!(capacity.resident(), 2);
        let third = capacity.claim(Some(&acme)).unwrap();
        drop((second, other, third));
        assert_eq!(capacity.resident(), 0);
        assert!(capacity.taken().tenants.is_empty());
    }
}
