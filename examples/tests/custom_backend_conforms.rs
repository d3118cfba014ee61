//! The backend of the guide keeps the whole contract.

#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, with a `main`"
)]
#[path = "../custom_backend.rs"]
mod custom_backend;

backend_testkit::conformance! {
    mod flat;
    fixture = async || custom_backend::fixture::Flat::default();
    skipped = 168;
}
