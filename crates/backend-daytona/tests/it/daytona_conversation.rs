//! The scripted conversation in a sandbox of the stand-in, in both modes. The transcript must
//! equal that of every other backend, byte for byte.

use std::sync::Arc;

use backend_core::{Backend, BackendExt as _};
use backend_daytona::Mode;
use console_testkit::{Chats, Environment, Script, Transcript, play};

use crate::support::{Place, purge};

async fn converse(mode: Mode) {
    let place = Place::new().await;
    let builder = place.with_agent().working_dir("/home/daytona/talk");
    let sandbox = Arc::new(builder.mode(mode).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::clone(&sandbox) as _;
    let script = Script::bundled().unwrap();
    script.seed(backend.as_ref()).await.unwrap();
    let environment = Environment::of(backend.as_ref());
    let chats = Chats::new(&script, &backend).unwrap();
    let played = play(&chats, &script, &environment).await;
    let left = backend.list_dir(".").await;
    purge(&sandbox).await;
    place.standin.close().await;
    let expected = Transcript::expected().for_environment(&script, &environment);
    assert_eq!(played.difference(&expected), None);
    assert_eq!(left.unwrap().entries, [], "every file was removed again");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn the_conversation_by_the_agent() {
    converse(Mode::Agent).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the agent; run by cargo xtask test-all"]
async fn the_conversation_in_portable_mode() {
    converse(Mode::Portable).await;
}
