//! `doctor`.

use crate::support::{Place, names};

#[test]
fn the_doctor_tells_what_is_there_and_what_to_do() {
    let place = Place::new();
    let ended = place.run(&["doctor"]).code(0);
    assert!(
        ended.out.contains("The default backend works here."),
        "{}",
        ended.out
    );
    let found = place.run(&["doctor", "--json"]).code(0).json();
    assert_eq!(found["works"], true);
    let findings = found["findings"].as_array().unwrap();
    for name in [
        "configuration",
        "workspace",
        "files",
        "commands",
        "landlock",
        "docker",
        "python3",
    ] {
        let finding = findings.iter().find(|finding| finding["name"] == name);
        let finding = finding.unwrap_or_else(|| panic!("{name} is missing"));
        // What is not there comes with what to do about it.
        assert_ne!(
            finding["ok"] == true,
            finding["fix"].is_string(),
            "{finding}"
        );
    }
    // Nobody is sent to set up what there is no backend for.
    assert!(!ended.out.contains("kube"), "{}", ended.out);
    assert_eq!(names(&place.path("")), ["home"], "looking changes nothing");
}

#[test]
fn a_wrong_configuration_is_a_finding() {
    let place = Place::new();
    place.file("home/.config/agentbox/config.toml", "bakend = 'state'");
    let found = place.run(&["doctor", "--json"]).code(3).json();
    assert_eq!(found["works"], false);
    assert_eq!(found["findings"][0]["ok"], false);
}

#[test]
fn nowhere_to_write_is_a_finding() {
    let place = Place::new();
    let temporary = place.path("none");
    let variable = [("TMPDIR", temporary.to_str().unwrap())];
    let ended = place.run_with(&["doctor"], &variable).code(3);
    assert!(ended.out.contains("MISSING"), "{}", ended.out);
    assert!(ended.out.contains("TMPDIR"), "{}", ended.out);
}
