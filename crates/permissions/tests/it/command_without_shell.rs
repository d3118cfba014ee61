//! Tests that without the `shell` feature no command is understood, and so none is
//! allowed.
use backend_core::VPath;
use permissions::command::{CommandContext, CommandPolicy};
use permissions::{Action, Preset};

#[test]
fn nothing_is_allowed() {
    let policy = CommandPolicy::new(&Preset::Permissive.ruleset());
    let report = policy.judge(CommandContext::new("true", &VPath::root()));
    assert_eq!(report.verdict.action(), Action::Ask);
    assert!(!report.understood);
}
