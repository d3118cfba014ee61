//! Images without a shell: an init container brings the agent.

use backend_core::{BackendExt as _, ErrorKind};
use backend_k8s::{Delivery, K8sBuilder, Mode};
use backend_testkit::fails;

use crate::support::place::{Place, variable};
use crate::support::sandbox::{purge, says};
use crate::support::wait::within;

/// Uses the files of a sandbox, whose pod must have an init container.
async fn brought(place: &Place, builder: K8sBuilder) {
    let sandbox = builder.build().unwrap();
    let written = within("a write", sandbox.write_file("a.txt", "one\n")).await;
    written.unwrap();
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    let pod = place.pod(sandbox.pod_name()).await.spec.unwrap();
    let init = pod.init_containers.unwrap_or_default();
    assert!(init.iter().any(|container| container.name == "agent"));
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_image_without_a_shell_gets_its_agent_from_an_init_container() {
    let place = Place::new().await;
    // It holds the agent and nothing else, so it is also an image without a shell.
    let image = variable("TEST_IMAGE_AGENT");
    let builder = || place.builder().image(&*image);
    let without = builder().build().unwrap();
    let written = within("a refusal", without.write_file("a.txt", "one\n")).await;
    says(&fails(ErrorKind::Unsupported, written), &["agent_image"]);
    // Chosen when the first pod does not start, and at once for the second one.
    for mode in [Mode::Auto, Mode::Agent] {
        brought(&place, builder().mode(mode).agent_image(&*image)).await;
    }
    let always = Delivery::Init {
        image: image.clone(),
    };
    brought(&place, place.builder().delivery(always)).await;
    place.end().await;
}
