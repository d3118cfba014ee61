#![doc = include_str!("../README.md")]

mod faults;
mod requests;
mod server;

pub use faults::{Fault, Injection};
pub use requests::{Recorded, Requests};
pub use server::{Options, Standin};
