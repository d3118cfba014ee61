//! A directory, a file and a directory two levels up are swapped for links to a
//! place outside, as fast as the kernel can, while every operation works through
//! them. Nothing of the outside may be seen, and nothing there may change.
//!
//! Beside each operation a plain `std::fs` read now and then does the same by
//! path: it gets the outside's content, which proves that the race was on.

use backend_local::{NameSpace, Resolution};

use crate::support::race::run;

/// Operations in each of the four tests: 200,000 in all.
const OPERATIONS: usize = 50_000;

#[test]
fn virtual_names_kernel_resolution() {
    run(OPERATIONS, NameSpace::Virtual, Resolution::Auto);
}

#[test]
fn virtual_names_component_resolution() {
    run(OPERATIONS, NameSpace::Virtual, Resolution::Components);
}

#[test]
fn host_names_kernel_resolution() {
    let names = NameSpace::Host {
        allowed: Vec::new(),
    };
    run(OPERATIONS, names, Resolution::Auto);
}

#[test]
fn host_names_component_resolution() {
    let names = NameSpace::Host {
        allowed: Vec::new(),
    };
    run(OPERATIONS, names, Resolution::Components);
}
