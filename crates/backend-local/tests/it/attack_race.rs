//! A directory, a file and a directory two levels up are swapped for links to
//! the outside, as fast as the kernel can, while every operation works through
//! them. Nothing outside may be seen or changed.
//!
//! Beside each operation, a plain `std::fs` read by path now and then does the
//! same. It gets the outside's content, which proves that the race happened.

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
