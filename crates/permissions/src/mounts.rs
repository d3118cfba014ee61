//! Named mounts with modes, suffixes, sizes and approvals, and scopes derived
//! from them that can only narrow.
//!
//! A [`Mount`] maps a host directory to a virtual path and defines the permissions there.
//! [`MountConfig`] is the serialized form, [`Mounts`] is the validated table, and a
//! [`Scope`] is the part of it that one agent may use. Everything here is policy without
//! I/O: [`Mount::host_path`] is only data. It is never opened and never shown to an
//! agent.
//!
//! ```
//! use permissions::mounts::{Derive, MountConfig, Scope};
//! use permissions::{Action, Kind, Op};
//!
//! let config = MountConfig::from_toml(
//!     r#"
//!     [[mounts]]
//!     host_path = "/srv/docs"
//!     mount_point = "/docs"
//!     suffixes = [".md"]
//!
//!     [[mounts]]
//!     host_path = "/srv/project"
//!     mount_point = "/project"
//!     mode = "rw"
//!     "#,
//! )?;
//! let scope = Scope::new(config.build()?);
//! let judge = |scope: &Scope, op, path: &str| {
//!     let path = scope.parse(path).expect("a path");
//!     scope.judge(op, &path, Kind::File, None).action()
//! };
//! assert_eq!(judge(&scope, Op::Read, "/docs/a.md"), Action::Allow);
//! assert_eq!(judge(&scope, Op::Read, "/docs/a.txt"), Action::Deny);
//! assert_eq!(judge(&scope, Op::Write, "/docs/a.md"), Action::Deny);
//! assert_eq!(judge(&scope, Op::Write, "/project/a"), Action::Ask);
//!
//! let child = scope.derive(Derive::new().read(["/project/sub"]))?;
//! assert_eq!(judge(&child, Op::Read, "/project/sub/a"), Action::Allow);
//! assert_eq!(judge(&child, Op::Read, "/project/a"), Action::Deny);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod area;
mod config;
mod derive;
mod error;
mod exclude;
mod judge;
mod mount;
mod parse;
mod restriction;
mod scope;
mod table;

pub use config::MountConfig;
pub use derive::{DERIVE_DEPTH, DERIVE_ENTRIES, Derive, DeriveError};
pub use error::MountError;
pub use mount::{Mode, Mount};
pub use scope::{Resolved, Scope};
pub use table::Mounts;
