//! [`Restriction`]: one step of narrowing a scope.

use super::area::Area;
use crate::action::OpClass;

/// One step of narrowing. `None` does not restrict anything.
#[derive(Debug)]
pub(super) struct Restriction {
    pub(super) read: Option<Area>,
    pub(super) write: Option<Area>,
}

impl Restriction {
    /// Returns the area for reading or writing. Commands are not judged here.
    pub(super) fn area(&self, class: OpClass) -> Option<&Area> {
        match class {
            OpClass::Read => self.read.as_ref(),
            OpClass::Write => self.write.as_ref(),
            OpClass::Execute => None,
        }
    }
}
