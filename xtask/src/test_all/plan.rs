//! Which stages a run is about, and which of them must not be skipped.

use anyhow::{Result, bail};

use crate::flags;
use crate::test_all::report::Entry;
use crate::test_all::{Outcome, Stage};

/// The checked form of `--only`, `--quick` and `--require`.
#[derive(Debug)]
pub(super) struct Plan {
    stages: Vec<&'static Stage>,
    required: Vec<String>,
}

impl Plan {
    /// Fails on a name that no stage has, and on a required stage that would not run.
    pub(super) fn new(all: &'static [Stage], flags: &flags::TestAll) -> Result<Self> {
        let known: Vec<_> = all.iter().map(|stage| stage.name).collect();
        let stages: Vec<_> = match &flags.only {
            Some(_) if flags.quick => bail!("--only and --quick both select stages: use one"),
            Some(list) => {
                let only = list.checked("stage", &known)?;
                all.iter()
                    .filter(|stage| only.iter().any(|name| name == stage.name))
                    .collect()
            }
            None => all
                .iter()
                .filter(|stage| stage.quick || !flags.quick)
                .collect(),
        };
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

    /// The programs that the selected stages need.
    pub(super) fn tools(&self) -> Vec<&'static str> {
        self.stages
            .iter()
            .flat_map(|stage| stage.tools.iter().chain(stage.extras))
            .copied()
            .collect()
    }

    /// Turns the skip of a required stage into a failure.
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
    use std::time::Duration;

    use super::*;

    const fn stage(name: &'static str, quick: bool, tools: &'static [&'static str]) -> Stage {
        Stage {
            name,
            what: "",
            quick,
            tools,
            extras: &[],
            run: |_| Ok(Outcome::Passed(String::new())),
        }
    }

    const ALL: &[Stage] = &[
        stage("fmt", true, &[]),
        stage("test", true, &[]),
        stage("deny", false, &["cargo-deny"]),
    ];

    fn flags(only: Option<&str>, require: Option<&str>, quick: bool) -> flags::TestAll {
        let list = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        flags::TestAll {
            provision: false,
            only: list(only),
            require: list(require),
            quick,
            slow: false,
        }
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.stages().iter().map(|stage| stage.name).collect()
    }

    fn error(flags: &flags::TestAll) -> String {
        Plan::new(ALL, flags).unwrap_err().to_string()
    }

    #[test]
    fn all_quick_and_only_select() {
        let plan = |only, quick| Plan::new(ALL, &flags(only, None, quick)).unwrap();
        assert_eq!(names(&plan(None, false)), ["fmt", "test", "deny"]);
        assert_eq!(names(&plan(None, true)), ["fmt", "test"]);
        // The table decides the order, not the flag.
        assert_eq!(names(&plan(Some("deny,fmt"), false)), ["fmt", "deny"]);
    }

    #[test]
    fn tools_are_those_of_the_selected_stages() {
        let plan = |quick| Plan::new(ALL, &flags(None, None, quick)).unwrap();
        assert_eq!(plan(false).tools(), ["cargo-deny"]);
        assert!(plan(true).tools().is_empty());
    }

    #[test]
    fn names_must_exist_and_be_selected() {
        let unknown = "unknown stage `nope`; valid: fmt, test, deny";
        assert_eq!(error(&flags(Some("nope"), None, false)), unknown);
        assert_eq!(error(&flags(None, Some("nope"), false)), unknown);
        let unselected = "stage `deny` is required but not selected";
        assert_eq!(error(&flags(None, Some("deny"), true)), unselected);
        assert!(error(&flags(Some("fmt"), None, true)).contains("use one"));
    }

    #[test]
    fn only_a_required_stage_fails_when_skipped() {
        let plan = Plan::new(ALL, &flags(None, Some("deny"), false)).unwrap();
        let skipped = Outcome::Skipped("no tool".to_owned());
        let enforce = |name| {
            let entry = Entry {
                name,
                outcome: skipped.clone(),
                time: Duration::ZERO,
            };
            plan.enforce(entry).outcome
        };
        assert_eq!(enforce("fmt"), skipped);
        let failed = Outcome::Failed("required, but skipped: no tool".to_owned());
        assert_eq!(enforce("deny"), failed);
    }
}
