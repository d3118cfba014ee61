//! Messages about hosted sandboxes if there is no key or no service, or if the build has no such
//! backend.

use crate::support::TestDir;

#[cfg(feature = "daytona")]
const KEY: (&str, &str) = ("DAYTONA_API_KEY", "dtn_hush");
/// An address where nothing listens.
#[cfg(feature = "daytona")]
const NOWHERE: (&str, &str) = ("DAYTONA_API_URL", "http://127.0.0.1:1/api");

#[cfg(not(feature = "daytona"))]
#[test]
fn without_the_feature_one_sentence_names_it() {
    let dir = TestDir::new();
    for (arguments, code) in [
        (&["call", "ls"][..], 3),
        // As with `timeout`: it was not started.
        (&["run", "--", "true"], 125),
        (&["sandboxes", "list"], 3),
        (&["sessions", "list"], 3),
        (&["mcp"], 3),
        (&["mcp-config", "zed"], 3),
    ] {
        let all = [&["--backend", "daytona:busybox"], arguments].concat();
        let ended = dir.run(&all).code(code);
        ended.complains("daytona needs a build with the feature daytona");
        ended.complains("install --path crates/agentbox --features daytona");
    }
    let doctor = ["doctor", "--backend", "daytona:busybox"];
    let said = dir.run(&doctor).code(3).out;
    assert!(said.contains("the feature daytona"), "{said}");
}

#[cfg(feature = "daytona")]
#[test]
fn no_key_is_64_and_no_service_is_3() {
    let dir = TestDir::new();
    for arguments in [
        &["--backend", "daytona", "sandboxes", "list"][..],
        &["--backend", "daytona", "sandboxes", "reap"],
        &["--backend", "daytona", "sessions", "list"],
        &["--backend", "daytona:attach=box", "call", "ls"],
    ] {
        let ended = dir.run(arguments).code(64);
        ended.complains("set DAYTONA_API_KEY");
        let ended = dir.run_with(arguments, &[KEY, NOWHERE]).code(3);
        ended.complains("no service listens at http://127.0.0.1:1;");
        assert!(!ended.err.contains("hush"), "{}", ended.err);
    }
    let call = ["--backend", "daytona:snapshot=a", "call", "ls"];
    let ended = dir.run_with(&call, &[KEY, NOWHERE]).code(3);
    // Nothing was created, so nothing is left to be deleted.
    assert!(!ended.err.contains("WARN"), "{}", ended.err);
    assert!(!ended.err.contains("hush"), "{}", ended.err);
    dir.run(&call).code(64).complains("set DAYTONA_API_KEY");
    let other = ("DAYTONA_API_URL", "https://api.daytona.com");
    let ended = dir.run_with(&call, &[KEY, other]).code(64);
    ended.complains("set DAYTONA_V0_API_URL");
}

#[cfg(feature = "daytona")]
#[test]
fn what_makes_no_sense_is_64() {
    let dir = TestDir::new();
    dir.file("empty", "\n");
    for (config, spec, about) in [
        ("", "daytona:", "daytona:IMAGE"),
        ("", "daytona:snapshot=", "daytona:snapshot=NAME"),
        ("", "daytona:foo=bar", "daytona:snapshot=NAME"),
        ("", "daytona:runtime=", "daytona:runtime=NAME"),
        ("", "daytona:attach=", "daytona:attach=ID"),
        ("", "daytona:runtime=pyton-web", "python-web"),
        ("privileged = true", "daytona", "privileged"),
        ("memory = \"lots\"", "daytona:a", "512m"),
        ("volumes = [\"/a\"]", "daytona", "VOLUME:TARGET"),
        ("network = \"bridge\"", "daytona", "bridge"),
        ("image = \"a\"\nruntime = \"b\"", "daytona", "remove one"),
        ("image = \"a\"\nsnapshot = \"b\"", "daytona", "remove one"),
        ("api_key_file = \"none\"", "daytona", "cannot be read"),
        ("api_key_file = \"empty\"", "daytona", "is empty"),
        ("api_url = \"nonsense\"", "daytona", "is not a URL"),
    ] {
        dir.file("config.toml", &format!("[daytona]\n{config}\n"));
        let arguments = ["--config", "config.toml", "--backend", spec, "tools"];
        let ended = dir.run_with(&arguments, &[KEY, NOWHERE]);
        assert_eq!(ended.code, 64, "{config} {spec}: {}", ended.err);
        assert!(ended.err.contains(about), "{}", ended.err);
    }
}

#[cfg(feature = "daytona")]
#[test]
fn sessions_have_sandboxes_and_no_directories() {
    let dir = TestDir::new();
    for (arguments, about) in [
        (
            &["sessions", "--workspaces", ".", "list"][..],
            "leave out --workspaces",
        ),
        (&["sessions", "files", "alice"], "--workspaces"),
    ] {
        let all = [&["--backend", "daytona"], arguments].concat();
        let ended = dir.run_with(&all, &[KEY, NOWHERE]).code(64);
        ended.complains(about);
    }
    let address = ["--http", "127.0.0.1:0", "--no-token", "--workspaces", "new"];
    for (backend, about) in [
        ("daytona:busybox", "leave out --workspaces"),
        ("daytona:attach=box", "each session has its own"),
    ] {
        let serve = [&["mcp", "--backend", backend], &address[..]].concat();
        let ended = dir.run_with(&serve, &[KEY, NOWHERE]);
        ended.code(64).complains(about);
    }
}

#[cfg(feature = "daytona")]
#[test]
fn the_doctor_says_what_is_missing_and_not_the_key() {
    let dir = TestDir::new();
    dir.file("key", "dtn_hush\n");
    let file = ("AGENTBOX_DAYTONA_API_KEY_FILE", "key");
    for (variables, name, fix) in [
        (&[NOWHERE][..], "daytona key", "set DAYTONA_API_KEY"),
        (&[NOWHERE, KEY], "daytona", ""),
        (&[NOWHERE, file], "daytona", ""),
    ] {
        let doctor = ["doctor", "--backend", "daytona:busybox", "--json"];
        let ended = dir.run_with(&doctor, variables).code(3);
        assert!(!ended.out.contains("hush"), "{}", ended.out);
        let found = ended.json();
        let findings = found["findings"].as_array().unwrap();
        let bad =
            |finding: &&serde_json::Value| finding["needed"] == true && finding["ok"] == false;
        let bad: Vec<_> = findings.iter().filter(bad).collect();
        assert_eq!(bad.len(), 1, "{bad:?}");
        assert_eq!(bad[0]["name"], name);
        let said = bad[0]["fix"].as_str().unwrap();
        assert!(said.contains(fix) && !said.is_empty(), "{said}");
    }
    let found = dir.run_with(&["doctor", "--json"], &[KEY, NOWHERE]).code(0);
    assert!(!found.out.contains("daytona"), "{}", found.out);
}

#[cfg(feature = "daytona")]
#[test]
fn a_client_gets_the_service_and_not_the_key() {
    let dir = TestDir::new();
    let here = dir.path("").canonicalize().unwrap();
    let ask = |backend: &str| {
        let variables = [
            KEY,
            NOWHERE,
            ("DAYTONA_JWT_TOKEN", "hush"),
            ("DAYTONA_TARGET", "eu"),
            ("AGENTBOX_DAYTONA_API_KEY_FILE", "key"),
            ("AGENTBOX_DAYTONA_ENV", r#"{KEY = "hush"}"#),
        ];
        let arguments = ["mcp-config", "cursor", "--backend", backend];
        let ended = dir.run_with(&arguments, &variables).code(0);
        assert!(!ended.out.contains("hush") && !ended.err.contains("hush"));
        let server = ended.json()["mcpServers"]["agentbox"]["env"].take();
        (server, ended.err)
    };
    let (env, notes) = ask("daytona:busybox");
    for name in [
        "DAYTONA_API_KEY",
        "DAYTONA_JWT_TOKEN",
        "AGENTBOX_DAYTONA_ENV",
    ] {
        let note = format!("{name} may hold secrets");
        assert!(notes.contains(&note), "{notes}");
        assert!(env.get(name).is_none(), "{env}");
    }
    assert!(notes.contains("or api_key_file in [daytona]"), "{notes}");
    assert_eq!(env["DAYTONA_API_URL"], NOWHERE.1);
    assert_eq!(env["DAYTONA_TARGET"], "eu");
    let file = here.join("key").display().to_string();
    assert_eq!(env["AGENTBOX_DAYTONA_API_KEY_FILE"], file);
    let (env, notes) = ask("docker:busybox");
    assert!(env.get("DAYTONA_API_URL").is_none(), "{env}");
    assert!(!notes.contains("DAYTONA_API_KEY "), "{notes}");
}
