//! Sessions as the backends of a shared toolset.

use std::sync::Arc;

use backend_core::{BackendExt as _, ErrorKind};
use backend_testkit::fails;
use console_tools::{Caller, Resolver as _};
use sessions::{OpenRequest, SessionId, SessionResolver};

use crate::support::{Lab, request};

#[tokio::test]
async fn each_caller_has_one_session_and_one_handle() {
    let lab = Lab::new();
    let manager = lab.manager();
    let resolver = SessionResolver::new(manager.clone());
    let first = Caller::new("chat-1").user("alice");
    let alice = resolver.resolve(&first).await.unwrap();
    let second = Caller::new("chat-2").user("alice");
    let again = resolver.resolve(&second).await.unwrap();
    assert!(Arc::ptr_eq(&alice, &again));
    alice.write_file("a.txt", "x").await.unwrap();

    let other = resolver.resolve(&Caller::new("chat-3")).await.unwrap();
    assert!(!other.exists("a.txt").await.unwrap());
    assert!(manager.contains("alice") && manager.contains("chat-3"));

    manager.release("alice").await.unwrap();
    let anew = resolver.resolve(&first).await.unwrap();
    assert!(!Arc::ptr_eq(&alice, &anew));
    assert!(!anew.exists("a.txt").await.unwrap());
    let wrong = Caller::new("chat-4").user("../alice");
    fails(ErrorKind::InvalidInput, resolver.resolve(&wrong).await);
}

#[tokio::test]
async fn a_caller_does_not_reach_the_session_of_another_tenant() {
    let lab = Lab::new();
    let manager = lab.manager();
    manager
        .open(request("shared").tenant("acme"))
        .await
        .unwrap();
    let resolver = SessionResolver::with(manager, |caller| {
        let request = OpenRequest::new(SessionId::new("shared")?);
        Ok(request.tenant(Arc::clone(&caller.session)))
    });
    resolver.resolve(&Caller::new("acme")).await.unwrap();
    let other = resolver.resolve(&Caller::new("umbrella")).await;
    fails(ErrorKind::Conflict, other);
}
