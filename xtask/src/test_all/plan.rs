//! The stages of a run, and those that must not be skipped.

use anyhow::{Result, bail};

use crate::flags;
use crate::test_all::report::Entry;
use crate::test_all::stage::{Outcome, Stage, Tier};

/// The validated values of `--only`, `--skip`, `--quick`, `--full` and `--require`.
#[derive(Debug)]
pub(super) struct Plan {
    stages: Vec<&'static Stage>,
    required: Vec<String>,
}

impl Plan {
    /// Creates a plan. Fails on an unknown stage, and on a required stage that would
    /// not run.
    pub(super) fn new(all: &'static [Stage], flags: &flags::TestAll) -> Result<Self> {
        let known: Vec<_> = all.iter().map(|stage| stage.name).collect();
        let mut stages: Vec<_> = match &flags.only {
            _ if flags.quick && flags.full => bail!("--quick and --full exclude each other"),
            Some(_) if flags.quick => bail!("--only and --quick both select stages: use one"),
            Some(list) => {
                let only = list.checked("stage", &known)?;
                all.iter()
                    .filter(|stage| only.iter().any(|name| name == stage.name))
                    .collect()
            }
            None => {
                let tier = match (flags.quick, flags.full) {
                    (true, _) => Tier::Quick,
                    (_, true) => Tier::Full,
                    _ => Tier::Default,
                };
                all.iter().filter(|stage| stage.tier <= tier).collect()
            }
        };
        if let Some(list) = &flags.skip {
            let left_out = list.checked("stage", &known)?;
            stages.retain(|stage| !left_out.iter().any(|name| name == stage.name));
        }
        let required = match &flags.require {
            Some(list) => list.checked("stage", &known)?.to_vec(),
            None => Vec::new(),
        };
        let is_selected = |name: &String| stages.iter().any(|stage| stage.name == name);
        if let Some(name) = required.iter().find(|name| !is_selected(name)) {
            bail!("stage `{name}` is required but not selected");
        }
        Ok(Self { stages, required })
    }

    pub(super) fn stages(&self) -> &[&'static Stage] {
        &self.stages
    }

    /// Returns the programs that the selected stages need.
    pub(super) fn tools(&self) -> Vec<&'static str> {
        self.stages
            .iter()
            .flat_map(|stage| stage.tools.iter().chain(stage.extras))
            .copied()
            .collect()
    }

    /// Converts the skip of a required stage into a failure.
    pub(super) fn enforce(&self, entry: Entry) -> Entry {
        match entry.outcome {
            Outcome::Skipped(reason) if self.required.iter().any(|name| name == entry.name) => {
                let outcome = Outcome::Failed(format!("required, but skipped: {reason}"));
                Entry { outcome, ..entry }
            }
            _ => entry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn stage(name: &'static str, tier: Tier, tools: &'static [&'static str]) -> Stage {
        Stage {
            name,
            what: "",
            tier,
            tools,
            extras: &[],
            beside: None,
            run: |_| Ok(Outcome::Passed(String::new())),
        }
    }

    const ALL: &[Stage] = &[
        stage("fmt", Tier::Quick, &[]),
        stage("docker", Tier::Default, &["docker"]),
        stage("deny", Tier::Full, &["cargo-deny"]),
    ];

    fn flags(words: &str) -> flags::TestAll {
        let words = ["test-all"].into_iter().chain(words.split_whitespace());
        let parsed = flags::Xtask::from_vec(words.map(Into::into).collect()).unwrap();
        match parsed.subcommand {
            flags::XtaskCmd::TestAll(flags) => flags,
            other => panic!("not test-all: {other:?}"),
        }
    }

    fn plan(words: &str) -> Plan {
        Plan::new(ALL, &flags(words)).unwrap()
    }

    fn names(words: &str) -> Vec<&'static str> {
        let plan = plan(words);
        plan.stages().iter().map(|stage| stage.name).collect()
    }

    fn error(words: &str) -> String {
        Plan::new(ALL, &flags(words)).unwrap_err().to_string()
    }

    #[test]
    fn a_tier_runs_the_stages_of_those_before_it() {
        assert_eq!(names("--quick"), ["fmt"]);
        assert_eq!(names(""), ["fmt", "docker"]);
        assert_eq!(names("--full"), ["fmt", "docker", "deny"]);
    }

    #[test]
    fn only_selects_from_every_tier_in_the_order_of_the_table() {
        assert_eq!(names("--only deny,fmt"), ["fmt", "deny"]);
        assert_eq!(names("--only deny --full"), ["deny"]);
    }

    #[test]
    fn what_is_left_out_cannot_be_required() {
        assert_eq!(names("--full --skip docker"), ["fmt", "deny"]);
        assert!(error("--skip docker --require docker").contains("not selected"));
        assert!(error("--skip nope").contains("valid: fmt, docker, deny"));
    }

    #[test]
    fn tools_are_those_of_the_selected_stages() {
        assert_eq!(plan("--full").tools(), ["docker", "cargo-deny"]);
        assert_eq!(plan("").tools(), ["docker"]);
        assert!(plan("--quick").tools().is_empty());
    }

    #[test]
    fn names_must_exist_and_be_selected() {
        let unknown = "unknown stage `nope`; valid: fmt, docker, deny";
        assert_eq!(error("--only nope"), unknown);
        assert_eq!(error("--require nope"), unknown);
        let unselected = "stage `deny` is required but not selected";
        assert_eq!(error("--require deny"), unselected);
        assert!(error("--only fmt --quick").contains("use one"));
        assert!(error("--full --quick").contains("exclude each other"));
    }

    #[test]
    fn only_a_required_stage_fails_when_skipped() {
        let plan = plan("--require docker");
        let skipped = Outcome::Skipped("no tool".to_owned());
        let enforce = |name| {
            let entry = Entry {
                outcome: skipped.clone(),
                ..Entry::new(name)
            };
            plan.enforce(entry).outcome
        };
        assert_eq!(enforce("fmt"), skipped);
        let failed = Outcome::Failed("required, but skipped: no tool".to_owned());
        assert_eq!(enforce("docker"), failed);
    }
}
