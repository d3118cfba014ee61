//! Streams of arbitrary messages and bytes: each ends, and prints what it was sent.

use proptest::prelude::*;

use super::*;

fn any_message() -> impl Strategy<Value = Message> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        4 => (0u8..5, bytes.clone()).prop_map(|(channel, bytes)| message(channel, &bytes)),
        2 => bytes.clone().prop_map(|bytes| message(1, &bytes)),
        1 => bytes.clone().prop_map(Message::binary::<Vec<u8>>),
        1 => bytes.clone().prop_map(|bytes| Message::Ping(bytes.into())),
        1 => bytes.prop_map(|bytes| Message::Pong(bytes.into())),
    ]
}

/// Returns the standard output in messages up to the first that ends the stream.
fn expected(messages: &[Message]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        let Message::Binary(bytes) = message else {
            continue;
        };
        match &bytes[..] {
            [] | [3, _, ..] => break,
            [1, content @ ..] => out.extend_from_slice(content),
            _ => {}
        }
    }
    out
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(test)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_messages(messages in proptest::collection::vec(any_message(), 0..20)) {
        let out = run(async {
            let (mut process, mut peer) = program(true).await;
            for message in messages.clone() {
                // The stream may have ended at an earlier one.
                let _ = peer.send(message).await;
            }
            let _ = peer.close(None).await;
            // Its answers to pings must arrive.
            let listen = async { while let Some(Ok(_)) = peer.next().await {} };
            let ((out, _, error), ()) = tokio::join!(printed(&mut process), listen);
            // No status in these is one of a success.
            assert!(error.is_some());
            assert!(process.exit.await.is_err());
            out
        });
        prop_assert_eq!(out, expected(&messages));
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        run(async {
            let (ours, mut theirs) = tokio::io::duplex(1024);
            let slot = StartSlots::default().take("pod").await.unwrap();
            let (process, driver) = open(ours, true, slot).await;
            tokio::spawn(driver.run());
            theirs.write_all(&bytes).await.unwrap();
            drop(theirs);
            assert_lost(process).await;
        });
    }
}
