//! The account: credentials, the right API, limits of requests, lost and cut answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use backend_core::ErrorKind;
use backend_daytona::{Account, Refusal, RefusalKind, instances};
use daytona_testkit::Fault;

use crate::support::Place;

#[tokio::test]
async fn a_service_describes_itself() {
    let place = Place::new().await;
    let info = place.account.info().await.unwrap();
    assert!(!info.version.is_empty());
    place.standin.close().await;
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_told_and_not_shown() {
    let place = Place::new().await;
    let key = "dtn_this_is_not_it";
    let account = Account::builder().api_key(key).url(place.standin.api_url());
    let error = account.build().unwrap().info().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert_eq!(Refusal::of(&error).unwrap().kind, RefusalKind::Auth);
    let told = format!("{error:?} {}", error.chain());
    assert!(
        told.contains("DAYTONA_API_KEY") && !told.contains(key),
        "{told}"
    );
    place.standin.close().await;
}

#[tokio::test]
async fn a_token_of_a_user_needs_its_organization() {
    let place = Place::new().await;
    let (token, organization) = (place.standin.jwt(), place.standin.organization());
    let account = |organization: &str| {
        let builder = Account::builder().jwt(token, organization);
        builder.url(place.standin.api_url()).build()
    };
    account(organization).unwrap().info().await.unwrap();
    let error = account("").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    place.standin.close().await;
}

#[tokio::test]
async fn another_api_is_refused_before_it_gets_the_credential() {
    let place = Place::new().await;
    let url = format!("{}/v2", place.standin.api_url());
    let account = Account::builder().api_key("dtn_key").url(url);
    let error = account.build().unwrap().info().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    for name in ["DAYTONA_V0_API_URL", "DAYTONA_API_URL"] {
        assert!(error.message().contains(name), "{error}");
    }
    assert_eq!(place.standin.requests().total(), 1);
    place.standin.close().await;
}

#[tokio::test]
async fn a_service_that_is_not_there_is_told() {
    let place = Place::new().await;
    let account = place.account.clone();
    place.standin.close().await;
    let error = account.info().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("listens"), "{error}");
}

#[tokio::test]
async fn the_time_that_the_service_asks_for_is_waited() {
    let place = Place::new().await;
    let list = "GET /api/sandbox";
    let second = Duration::from_secs(1);
    place.standin.inject(Fault::RateLimited(second).at(list));
    let began = Instant::now();
    instances::list(&place.account, &BTreeMap::new())
        .await
        .unwrap();
    assert!(began.elapsed() >= second);
    assert_eq!(place.standin.requests().of(list), 2);
    // A longer wait than any caller has time for is an error, which says how long.
    let hour = Duration::from_secs(3_600);
    place.standin.inject(Fault::RateLimited(hour).at(list));
    let listed = instances::list(&place.account, &BTreeMap::new()).await;
    let error = listed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(Refusal::of(&error).unwrap().retry_after, Some(hour));
    place.standin.close().await;
}

#[tokio::test]
async fn reading_is_repeated_when_an_answer_is_lost_or_cut() {
    let place = Place::new().await;
    let list = "GET /api/sandbox";
    for fault in [
        Fault::BadGateway,
        Fault::Truncated,
        Fault::Dropped,
        Fault::AnswerLost,
    ] {
        let before = place.standin.requests();
        place.standin.inject(fault.at(list));
        instances::list(&place.account, &BTreeMap::new())
            .await
            .unwrap();
        assert_eq!(place.standin.requests().since(&before).of(list), 2);
    }
    // Not forever.
    place.standin.inject(Fault::BadGateway.at(list).forever());
    let listed = instances::list(&place.account, &BTreeMap::new()).await;
    let error = listed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(Refusal::of(&error).unwrap().status, 502);
    place.standin.close().await;
}
