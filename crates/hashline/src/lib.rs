#![doc = include_str!("../README.md")]

mod anchor;
mod apply;
mod counted;
mod edit;
mod error;
mod excerpt;
mod lines;
mod md5;
mod setters;
mod stale;
mod tag;
mod view;
mod writer;

pub use anchor::{Anchor, AnchorError};
pub use apply::{Applied, ApplyOptions, Changed, apply};
pub use edit::{Edit, EditFields, FieldError, RangeEnd};
pub use error::{EditError, EditRange, Mismatch, Stale};
pub use tag::{Tag, TagError, TagWidth};
pub use view::{Format, Line, View, ViewError, ViewLines, ViewOptions, render};
