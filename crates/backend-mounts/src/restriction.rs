//! [`Restriction`]: one step of narrowing a scope.

use permissions::OpClass;

use crate::area::Area;

/// One step of narrowing. `None` does not restrict anything.
#[derive(Debug)]
pub(crate) struct Restriction {
    pub(crate) read: Option<Area>,
    pub(crate) write: Option<Area>,
}

impl Restriction {
    /// Returns the area for reading or writing. Commands are not judged here.
    pub(crate) fn area(&self, class: OpClass) -> Option<&Area> {
        match class {
            OpClass::Read => self.read.as_ref(),
            OpClass::Write => self.write.as_ref(),
            OpClass::Execute => None,
        }
    }
}
