//! The stand-in, through its HTTP interface: the behaviours that were measured on the real
//! service, and the faults.

mod client;
mod ends;
mod faults;
mod files;
mod git;
mod lifecycle;
mod process;
mod proxy;
mod sessions;
mod terminals;
