//! `docker[:IMAGE]`: a container, created on demand and removed when the program ends.

#[cfg(feature = "docker")]
mod container;
mod keys;
#[cfg(feature = "docker")]
mod open;
#[cfg(feature = "docker")]
mod settings;

use self::keys::{KEYS, PATHS};
#[cfg(feature = "docker")]
pub(crate) use self::open::Docker;
#[cfg(feature = "docker")]
use self::open::{check, open};
#[cfg(not(feature = "docker"))]
use super::absent::{check, open};
use super::{Argument, Kind};

pub(super) const KIND: Kind = Kind {
    name: "docker",
    usage: "docker[:IMAGE|:runtime=NAME|:attach=ID]",
    argument: Argument::Name,
    keys: KEYS,
    paths: PATHS,
    check,
    open,
};
