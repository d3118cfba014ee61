//! Refusals of the service, and which requests are repeated.

use super::*;

fn refused(status: u16, wait: Option<u64>) -> Failure {
    Failure::Refused(Refusal::read(status, wait.map(Duration::from_secs), b""))
}

fn lost(unsent: bool) -> Failure {
    let error = Error::unavailable("lost");
    Failure::Lost { error, unsent }
}

fn call(repeat: Repeat) -> Call {
    Call::new(Method::GET, String::new(), repeat).through_proxy()
}

fn is_repeated(failure: &Failure, repeat: Repeat) -> bool {
    pause(failure, &call(repeat), 0, Duration::ZERO).is_some()
}

#[test]
fn only_safe_requests_are_repeated() {
    for failure in [refused(502, None), refused(504, None), lost(false)] {
        assert!(is_repeated(&failure, Repeat::Safe));
        assert!(!is_repeated(&failure, Repeat::Unperformed), "{failure:?}");
    }
    // These were certainly not performed.
    for failure in [refused(429, None), refused(401, None), lost(true)] {
        assert!(is_repeated(&failure, Repeat::Unperformed), "{failure:?}");
    }
    for status in [400, 403, 404, 409, 422, 500] {
        assert!(
            !is_repeated(&refused(status, None), Repeat::Safe),
            "{status}"
        );
    }
    assert!(!is_repeated(&Failure::TooLarge(1), Repeat::Safe));
}

#[test]
fn a_request_is_not_repeated_forever() {
    for failure in [refused(502, None), refused(401, None), lost(true)] {
        assert_eq!(
            pause(&failure, &call(Repeat::Safe), 3, Duration::ZERO),
            None
        );
    }
    let safe = call(Repeat::Safe);
    let limited = refused(429, Some(2));
    let first = pause(&limited, &safe, 0, Duration::ZERO).unwrap();
    assert!((2.0..=2.2).contains(&first.as_secs_f64()), "{first:?}");
    assert_eq!(pause(&limited, &safe, 9, LONGEST_WAIT), None);
    let at_once = pause(&refused(429, Some(0)), &safe, 0, Duration::ZERO);
    assert!(at_once.unwrap() >= SHORTEST_RATE_PAUSE);
    let far = refused(429, Some(3_600));
    assert_eq!(pause(&far, &safe, 0, Duration::ZERO), None);
    let overloaded = |wait| pause(&refused(503, wait), &safe, 0, Duration::ZERO);
    assert_eq!(overloaded(None), Some(LOST_PAUSES[0]));
    assert_eq!(overloaded(Some(7)), Some(Duration::from_secs(7)));
    assert_eq!(overloaded(Some(3_600)), None);
    // Only the proxy refuses valid credentials.
    let control = Call::get(String::new());
    let flake = pause(&refused(401, None), &control, 0, Duration::ZERO);
    assert_eq!(flake, None);
}

#[test]
fn no_message_shows_the_credential() {
    let secret = Secret::new("dtn_very_secret");
    let client = Client::new(secret, Some("org-1"), false).unwrap();
    let body = br#"{"message":"the key dtn_very_secret is not valid","code":"dtn_very_secret"}"#;
    let error = client.error(Failure::Refused(Refusal::read(401, None, body)));
    let shown = format!("{error} {error:?} {} {client:?}", error.chain());
    assert!(shown.contains("is not valid"), "{shown}");
    assert!(!shown.contains("very_secret"), "{shown}");
    let error = Client::new(Secret::new("a\nb"), None, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let call = Call::get("http://127.0.0.1:1/".to_owned());
    let request = client.request(&call).build().unwrap();
    assert!(!format!("{request:?}").contains("very_secret"));
    assert_eq!(request.headers()["authorization"], "Bearer dtn_very_secret");
    assert_eq!(common_headers()["x-daytona-sdk-version"], PROTOCOL_VERSION);
    let call = call.anonymous().unnoticed();
    let request = client.request(&call).build().unwrap();
    assert!(!request.headers().contains_key("authorization"));
    assert!(
        request
            .headers()
            .contains_key("x-daytona-skip-last-activity-update")
    );
}

#[tokio::test]
async fn a_service_that_never_answers_is_not_waited_for_forever() {
    // Connections are made, and nothing reads from them.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = Client::new(Secret::new("k"), None, false).unwrap();
    let call = Call::new(Method::POST, url, Repeat::Unperformed);
    let call = call.timeout(Duration::from_millis(50));
    let error = client.call(&call).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(is_lost(&error), "it may have been performed");
}

#[test]
fn a_lost_answer_is_not_a_refusal() {
    let client = Client::new(Secret::new("k"), None, false).unwrap();
    let error = |failure| client.error(failure);
    assert!(is_lost(&error(refused(502, None))));
    assert!(is_lost(&error(lost(false))));
    let late = Failure::late(&Call::get("http://localhost/a?b=c".to_owned()));
    assert_eq!(
        pause(&late, &Call::get(String::new()), 0, Duration::ZERO),
        None
    );
    let late = error(late);
    assert!(is_lost(&late));
    assert!(
        late.message()
            .contains("http://localhost did not answer in 30 s"),
        "{late}"
    );
    assert!(!is_lost(&error(refused(409, None))));
    assert_eq!(status(&error(refused(409, None))), Some(409));
    assert_eq!(status(&error(lost(false))), None);
}
