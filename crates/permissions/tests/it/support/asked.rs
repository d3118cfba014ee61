//! Accesses that are asked about.

use backend_testkit::path;
use permissions::approval::{Asked, Question};
use permissions::{Op, Target};

pub(crate) fn at(op: Op, text: &str) -> Asked {
    Asked::new(op, Target::Path(path(text)))
}

pub(crate) fn run(line: &str) -> Asked {
    Asked::new(Op::Execute, Target::Command(line.to_owned()))
}

pub(crate) fn write(text: &str) -> Question {
    Question::new("s", vec![at(Op::Write, text)])
}
