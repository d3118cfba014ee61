//! Clients with the rights of a service account and no others.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Client, Config};
use serde_json::json;

use super::place::Place;

/// Returns a client for an account of the namespace, with a token made for it.
pub(crate) async fn client(place: &Place, account: &str) -> Client {
    let request = json!({"spec": {"audiences": [], "expirationSeconds": 3600}});
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    let accounts = place.api::<ServiceAccount>();
    let options = PostParams::default();
    let made = accounts.create_token_request(account, &options, &request);
    let token = made.await.unwrap().status.unwrap().token.unwrap();
    let mut config = Config::infer().await.unwrap();
    config.auth_info = serde_json::from_value(json!({"token": token})).unwrap();
    Client::try_from(config).unwrap()
}
