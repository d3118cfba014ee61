//! Tests of a toolset as part of an agent's specification.

use std::sync::Arc;

use backend_core::Backend;
use backend_mounts::MountConfig;
use console_tools::{Capability, EditFormat, Profile, Toolset};
use permissions::approval::ApproverMode;
use permissions::tool::{Tool, ToolSetting};
use permissions::{Action, Preset, Ruleset};
use serde_json::json;

use crate::support::approver::{RecordingApprover, Swap, store};

const WRITTEN: &str = r#"
approver = "strict"

[permissions]
default = "ask"

[permissions.read]
default = "allow"

[[permissions.read.rules]]
pattern = "**/.ssh/**"
action = "deny"
description = "keys"

[options]
edit_format = "hashline"
profile = "lean"
include_background = false

[options.descriptions]
ls = "Looks."
"ls.path" = "Where."

[options.limits]
reply_bytes = 1000

[tools.tools.grep]
action = "deny"

[tools.custom.swap]
pre_approved = true
"#;

fn full() -> Capability {
    Capability::from_toml(WRITTEN).unwrap()
}

#[test]
fn it_reads_back_what_it_writes() {
    let mut preset = full();
    preset.permissions = Some(Preset::Readonly.into());
    let mut mounted = full();
    mounted.mounts = Some(MountConfig::single_root("/srv/site"));
    for capability in [Capability::default(), full(), preset, mounted] {
        let toml = capability.to_toml().unwrap();
        assert_eq!(Capability::from_toml(&toml).unwrap(), capability, "{toml}");
        let json = serde_json::to_string(&capability).unwrap();
        assert_eq!(Capability::from_json(&json).unwrap(), capability, "{json}");
    }
    let full = full();
    assert_eq!(full.approver, ApproverMode::Strict);
    assert_eq!(full.options.edit_format, EditFormat::Hashline);
    assert_eq!(full.options.profile, Profile::Lean);
    assert!(
        full.options.include_execute,
        "what is not said is the default"
    );
    assert_eq!(full.options.limits.reply_bytes, 1_000);
    let ruleset: Ruleset = full.permissions.unwrap().ruleset();
    assert_eq!(ruleset.read.unwrap().rules.len(), 1);
    assert_eq!(
        full.tools.tools.get(&Tool::Grep),
        Some(&ToolSetting::action(Action::Deny))
    );
}

#[test]
fn nothing_that_is_not_understood_is_passed_over() {
    for (json, said) in [
        (json!({"permission": "strict"}), "permission"),
        (json!({"permissions": "readonyl"}), "readonyl"),
        (
            json!({"permissions": 3}),
            "the name of a preset or a ruleset",
        ),
        (json!({"permissions": {"raed": {}}}), "raed"),
        (
            json!({"options": {"includeExecute": true}}),
            "includeExecute",
        ),
        (json!({"options": {"profile": "full"}}), "full"),
        (
            json!({"options": {"limits": {"reply_bytes": -1}}}),
            "options.limits.reply_bytes",
        ),
        (json!({"tools": {"tools": {"excute": {}}}}), "excute"),
        (json!({"approver": "always"}), "always"),
        (
            json!({"mounts": {"root": "/srv", "readolny": true}}),
            "readolny",
        ),
        (json!({"mounts": {}}), "there are no mounts"),
        (json!([]), "a table"),
        (json!({"options": [true]}), "a table"),
        (json!({"options": {"limits": [1]}}), "a table"),
    ] {
        let error = Capability::from_json(&json.to_string());
        let Err(error) = error else {
            panic!("{json} was read");
        };
        assert!(error.to_string().contains(said), "{json}: {error}");
    }
    assert!(Capability::from_json("{} {}").is_err());
    let error = Capability::from_toml("approver = 'strict'\n[option]").unwrap_err();
    assert!(error.to_string().contains("option"), "{error}");
}

#[tokio::test]
async fn it_says_which_tools_there_are() {
    let backend: Arc<dyn Backend> = Arc::new(store().await);
    let capability = full();
    let built = capability.toolset(Arc::clone(&backend), None);
    // There are settings for a tool that does not exist yet.
    assert!(built.unwrap_err().to_string().contains("swap"));

    let builder = capability.apply(Toolset::builder(Arc::clone(&backend)), None);
    let toolset = builder.tool(Swap).build().unwrap();
    let definitions = toolset.definitions();
    assert!(definitions.get("grep").is_none(), "denied");
    assert!(
        definitions.get("execute").is_none(),
        "the backend runs nothing"
    );
    assert!(
        !definitions.get("swap").unwrap().asks,
        "approved beforehand"
    );
    let prompt = toolset.prompt();
    assert!(
        prompt.starts_with("## ") && prompt.contains("`swap`"),
        "{prompt}"
    );
    assert!(!prompt.contains("grep"), "{prompt}");

    let none = Capability::from_json(r#"{"permissions": "readonly"}"#).unwrap();
    for offer in none.toolset(backend, None).unwrap().definitions().iter() {
        assert!(!offer.asks, "{offer:?}");
        assert!(!["write_file", "edit_file", "execute"].contains(&&*offer.name));
    }
}

#[tokio::test]
async fn its_approver_outranks_whoever_could_be_asked() {
    let backend: Arc<dyn Backend> = Arc::new(store().await);
    let person = RecordingApprover::new(true);
    for (mode, success, questions) in [
        ("strict", false, 0),
        ("interactive", true, 1),
        ("approve_all", true, 0),
        ("deny", false, 0),
    ] {
        let json = json!({"permissions": "strict", "approver": mode}).to_string();
        let capability = Capability::from_json(&json).unwrap();
        let builder = Toolset::builder(Arc::clone(&backend));
        let builder = capability.apply(builder, Some(Arc::new(person.clone())));
        let chat = builder.tool(Swap).build().unwrap().conversation("c");
        let reply = chat.call("swap", json!({"one": "a", "two": "b"})).await;
        assert_eq!(reply.is_success(), success, "{mode}: {}", reply.text);
        assert_eq!(person.taken().len(), questions, "{mode}");
    }
}

#[tokio::test]
async fn what_asks_is_flagged_and_denied_tools_are_not_there() {
    let backend: Arc<dyn Backend> = Arc::new(store().await);
    let offers = |json: serde_json::Value| {
        let capability = Capability::from_json(&json.to_string()).unwrap();
        let toolset = capability.toolset(Arc::clone(&backend), None).unwrap();
        let flag = |asks: bool| if asks { "?" } else { "" };
        let offers = toolset.definitions();
        let offers = offers.iter();
        let shown: Vec<String> = offers
            .map(|offer| format!("{}{}", offer.name, flag(offer.asks)))
            .collect();
        (shown.join(" "), toolset.prompt())
    };
    let (strict, prompt) = offers(json!({"permissions": "strict"}));
    assert_eq!(strict, "ls? read_file? write_file? edit_file? glob? grep?");
    for tool in ["ls", "read_file", "edit_file"] {
        assert!(prompt.contains(&format!("`{tool}`")), "{prompt}");
    }
    let (default, _) = offers(json!({"permissions": "default"}));
    assert_eq!(default, "ls read_file write_file? edit_file? glob grep");
    let (readonly, prompt) = offers(json!({"permissions": "readonly"}));
    assert_eq!(readonly, "ls read_file glob grep");
    assert!(!prompt.contains("`edit_file`"), "{prompt}");
    let set = json!({"tools": {"tools": {"ls": {"action": "deny"}, "grep": {"action": "ask"}}}});
    assert_eq!(offers(set).0, "read_file write_file edit_file glob grep?");
}

#[tokio::test]
async fn mounts_confine_the_tools() {
    let capability = Capability::from_toml(
        r#"
        [options]
        profile = "filesystem"

        [mounts.paths.docs]
        root = "/srv/docs"
        mode = "ro"
        "#,
    )
    .unwrap();
    let backend = store().await;
    backend_core::BackendExt::write_file(&backend, "/docs/a.md", "about")
        .await
        .unwrap();
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let toolset = capability.toolset(backend, None).unwrap();
    let offers = toolset.definitions();
    let names: Vec<_> = offers.iter().map(|offer| offer.name.as_str()).collect();
    assert_eq!(names, ["read_file", "list_files"], "nothing can be written");
    let chat = toolset.conversation("c");
    let reply = chat.call("list_files", "{}").await;
    assert_eq!(reply.text, r#"["/docs/a.md"]"#);
    let reply = chat.call("read_file", json!({"path": "/a"})).await;
    assert_eq!(
        reply.text,
        "Cannot access '/a': path is outside sandbox.\nReadable paths: /docs"
    );
}
