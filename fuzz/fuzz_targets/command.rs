//! Arbitrary text as a command line gets a decision, and is not allowed if it was not
//! understood. Nothing is run.
#![no_main]

use std::sync::LazyLock;

use backend_core::VPath;
use libfuzzer_sys::fuzz_target;
use permissions::command::{CommandContext, CommandPolicy};
use permissions::{Action, Preset};

/// Two policies: everything is allowed, and only a few programs are.
static POLICIES: LazyLock<[CommandPolicy; 2]> = LazyLock::new(|| {
    let mut few = Preset::Permissive.ruleset();
    let text = r#"{
        "default": "deny",
        "rules": [
            {"pattern": "rm -rf *", "action": "deny"},
            {"pattern": "git *", "action": "allow"},
            {"pattern": "echo ?*", "action": "allow"}
        ]
    }"#;
    few.execute = serde_json::from_str(text).ok();
    assert!(few.execute.is_some());
    [
        CommandPolicy::new(&Preset::Permissive.ruleset()),
        CommandPolicy::new(&few),
    ]
});

fuzz_target!(|line: &str| {
    let directory = VPath::root();
    for policy in POLICIES.iter() {
        let report = policy.judge(CommandContext::new(line, &directory));
        assert!(
            report.understood || report.verdict.action() != Action::Allow,
            "allowed without being understood: {line:?}"
        );
        assert!(!report.verdict.to_string().is_empty());
    }
});
