//! The command line: subcommands, flags and their shared list type.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

xflags::xflags! {
    /// The workspace's own commands.
    cmd xtask {
        /// Print this help.
        cmd help {}

        /// Run every check, continue after a failing one, end with a table.
        cmd test-all {
            /// Install the tools that the selected stages miss.
            optional --provision
            /// Run just these stages (comma-separated names).
            optional --only list: List
            /// Leave these stages out (comma-separated names).
            optional --skip list: List
            /// Fail when one of these stages is skipped (comma-separated names).
            optional --require list: List
            /// Run only the stages that need no extra tool and little time.
            optional --quick
            /// Run everything: adds licences, packages, coverage, others' command lines, fuzzing and
            /// the client frameworks.
            optional --full
            /// Let property tests and fuzzing try new inputs; fuzz each target for two minutes.
            optional --random
        }

        /// Check manifests, dependency rules, sources and Markdown.
        cmd tidy {
            /// Rewrite the table of docs/weight.md, and the plots of docs/benchmarks.md.
            optional --fix
        }

        /// Compare what the published libraries offer with docs/api.
        cmd api {
            /// Write down what they offer now.
            optional --fix
        }

        /// Build the program that is carried into sandboxes, static and small.
        cmd agent {
            /// Build it for this target of rustc; this machine's unless given.
            optional --target target: String
            /// Copy it to this directory.
            optional --output directory: PathBuf
        }

        /// Make the archive of a release: the program with the agents in it, completions, manual
        /// pages, licences.
        cmd dist {
            /// Build the program without optimisation, to try this command.
            optional --dev
            /// Where the archive goes; target/dist unless given.
            optional --output directory: PathBuf
            /// Make none, but try this one in a container that has only a shell and a C library.
            optional --check archive: PathBuf
        }

        /// Fetch xterm.js, which draws the terminal of the example web_app.
        cmd xterm {}

        /// A real Kubernetes cluster of one node, for tests.
        cmd cluster {
            /// Start it, unless KUBECONFIG names another one. The first time, its programs are compiled.
            cmd up {}

            /// End it, with everything that it left.
            cmd down {}

            /// Print which of its daemons run.
            cmd status {}

            /// Run kubectl; put `--` before its arguments.
            cmd kubectl {
                repeated args: OsString
            }

            /// Run a command where the cluster can be reached; put `--` before it. A cluster that
            /// had to be started ends with it.
            cmd run {
                repeated command: OsString
            }
        }

        /// Make a book of the documentation in target/book, and check its links.
        cmd book {}

        /// Measure against the peers and write docs/benchmarks.md.
        cmd bench {
            /// The suites to measure (comma-separated names), or `all`, as unless given: those that
            /// cannot be measured here are left out, with the reason.
            optional suites: List
            /// Measure just these rows (comma-separated ids); writes no file.
            optional --only list: List
            /// Measure our side alone; writes no file.
            optional --no-peer
            /// Measure in fewer rounds and without the largest sizes; writes no file.
            optional --quick
            /// Measure nothing: draw the plots of docs/benchmarks.md again.
            optional --plots
        }
    }
}

impl Xtask {
    /// Returns the text that `help` and `--help` print.
    pub(crate) fn help() -> &'static str {
        Self::HELP_
    }
}

/// A comma-separated list of names, without empty ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct List(Vec<String>);

impl List {
    /// Returns the names. Fails, listing the valid ones, if a name is not in `known`.
    pub(crate) fn checked(&self, kind: &str, known: &[&str]) -> anyhow::Result<&[String]> {
        match self.0.iter().find(|name| !known.contains(&name.as_str())) {
            Some(name) => anyhow::bail!("unknown {kind} `{name}`; valid: {}", known.join(", ")),
            None => Ok(&self.0),
        }
    }
}

impl FromStr for List {
    type Err = EmptyName;

    fn from_str(text: &str) -> Result<Self, EmptyName> {
        text.split(',')
            .map(|name| match name.trim() {
                "" => Err(EmptyName),
                name => Ok(name.to_owned()),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// A [`List`] with nothing before, after or between its commas.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EmptyName;

impl fmt::Display for EmptyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name in the list is empty")
    }
}

impl std::error::Error for EmptyName {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> xflags::Result<Xtask> {
        Xtask::from_vec(args.iter().map(Into::into).collect())
    }

    #[test]
    fn list_splits_and_trims() {
        let list: List = "fmt, test".parse().unwrap();
        assert_eq!(list, List(vec!["fmt".to_owned(), "test".to_owned()]));
        assert_eq!("fmt,,test".parse::<List>(), Err(EmptyName));
        assert_eq!("".parse::<List>(), Err(EmptyName));
    }

    #[test]
    fn unknown_name_is_refused_with_the_valid_ones() {
        let list: List = "fmt,nope".parse().unwrap();
        let error = list.checked("stage", &["fmt", "test"]).unwrap_err();
        assert_eq!(error.to_string(), "unknown stage `nope`; valid: fmt, test");
        assert!(list.checked("stage", &["fmt", "nope"]).is_ok());
    }

    #[test]
    fn test_all_takes_all_its_switches() {
        let flags = parse(&["test-all", "--quick", "--require", "fmt", "--only", "a,b"]).unwrap();
        let XtaskCmd::TestAll(flags) = flags.subcommand else {
            panic!("not test-all: {flags:?}");
        };
        assert!(flags.quick && !flags.full && !flags.provision);
        assert_eq!(flags.only, Some("a,b".parse().unwrap()));
        assert_eq!(flags.require, Some("fmt".parse().unwrap()));
    }

    #[test]
    fn agent_takes_a_target_and_a_place() {
        let flags = parse(&["agent", "--target", "t", "--output", "out"]).unwrap();
        let XtaskCmd::Agent(flags) = flags.subcommand else {
            panic!("not agent: {flags:?}");
        };
        assert_eq!(flags.target.as_deref(), Some("t"));
        assert_eq!(flags.output, Some(PathBuf::from("out")));
    }

    #[test]
    fn a_command_for_the_cluster_follows_two_dashes() {
        let flags = parse(&["cluster", "run", "--", "sh", "-c", "true"]).unwrap();
        let XtaskCmd::Cluster(flags) = flags.subcommand else {
            panic!("not cluster: {flags:?}");
        };
        let ClusterCmd::Run(flags) = flags.subcommand else {
            panic!("not run: {flags:?}");
        };
        assert_eq!(flags.command, ["sh", "-c", "true"]);
    }

    #[test]
    fn bench_takes_suites_by_name() {
        let flags = parse(&["bench", "state,local", "--quick"]).unwrap();
        let XtaskCmd::Bench(flags) = flags.subcommand else {
            panic!("not bench: {flags:?}");
        };
        assert!(flags.quick && !flags.no_peer && flags.only.is_none());
        assert_eq!(flags.suites, Some("state,local".parse().unwrap()));
    }

    #[test]
    fn wrong_usage_is_an_error() {
        assert!(parse(&["test-all", "--only"]).is_err());
        assert!(parse(&["test-all", "--only", ","]).is_err());
        assert!(parse(&["nope"]).is_err());
        assert!(parse(&[]).is_err());
    }

    #[test]
    fn help_names_every_command() {
        for command in [
            "xtask test-all",
            "xtask tidy",
            "xtask api",
            "xtask agent",
            "xtask dist",
            "xtask cluster",
            "xtask bench",
        ] {
            assert!(Xtask::help().contains(command), "{command}");
        }
    }
}
