//! Integration tests of `backend-k8s`.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops where it fails, and its processes tell it what they did"
)]

mod k8s_abuse;
mod k8s_alone_api;
mod k8s_alone_node;
mod k8s_attach;
mod k8s_calls;
mod k8s_conformance;
mod k8s_conversation;
mod k8s_delivery;
mod k8s_faults_api;
mod k8s_faults_pod;
mod k8s_faults_start;
mod k8s_hardening;
mod k8s_in_cluster;
mod k8s_leftovers;
mod k8s_lifecycle;
mod k8s_many;
mod k8s_owner;
mod k8s_pods;
mod k8s_rbac;
mod k8s_volumes;
mod support {
    pub(crate) mod account;
    pub(crate) mod daemons;
    pub(crate) mod observed;
    pub(crate) mod place;
    pub(crate) mod process;
    pub(crate) mod rights;
    pub(crate) mod sandbox;
    pub(crate) mod wait;
    pub(crate) mod watched;
}
