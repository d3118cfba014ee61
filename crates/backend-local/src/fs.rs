//! Files by handle: nothing here opens a path of the host.
//!
//! [`space::Space`] knows the directories of a backend, which were opened when
//! the backend was. [`resolve`] gets from a path to a handle, or to a
//! directory's handle and one name in it; everything else works on those. So
//! what was checked is what is used, whatever a command renames meanwhile.
//!
//! This is written on rustix and not on cap-std, whose calls cost the same
//! (2.1 µs against 1.9 for a small read): cap-std refuses absolute links that
//! point inside, cannot read what is cached without a hop to another thread
//! (`RESOLVE_CACHED`, 1.5 µs), and cannot rename without replacing.

mod caller;
mod copy;
mod cursor;
mod delete;
pub(crate) mod errno;
mod list;
mod locks;
mod read;
mod rename;
mod resolve;
mod search;
mod space;
mod temporary;
mod trace;
mod write;

pub(crate) use caller::Caller;
pub(crate) use list::{LIST, entry};
pub(crate) use read::READ;
pub(crate) use resolve::open_at;
pub(crate) use space::Space;
pub(crate) use write::Pending;
