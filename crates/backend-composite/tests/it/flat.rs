//! A composite behaves like a single backend with the same files: random routes and
//! files, random calls, the same results and errors.

use proptest::prelude::*;

use backend_core::VPath;
use backend_core::ops::GlobOrder;

use crate::support::call::{Call, Search};
use crate::support::pair::{Layout, Names, Pair, RouteAt};
use crate::support::strategy;

/// Returns the configuration. Its default takes the number of cases from the environment.
fn config() -> ProptestConfig {
    ProptestConfig {
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_call_is_answered_alike(
        layout in strategy::layout(),
        files in strategy::files(),
        calls in strategy::calls(),
    ) {
        let mut pair = Pair::new(&layout, &files);
        for call in &calls {
            if let Err(difference) = pair.try_call(call) {
                return Err(TestCaseError::fail(difference));
            }
        }
        pair.check_trees().map_err(TestCaseError::fail)?;
    }

    #[test]
    fn every_search_is_answered_alike(
        layout in strategy::layout(),
        files in strategy::files(),
        calls in strategy::searches(),
    ) {
        let mut pair = Pair::new(&layout, &files);
        for call in &calls {
            if let Err(difference) = pair.try_call(call) {
                return Err(TestCaseError::fail(difference));
            }
        }
    }
}

/// Routes at, beneath and above generated directories. A child that gets a pattern
/// without the names above its own paths must still skip the same directories.
#[test]
fn generated_directories_are_passed_by_alike() {
    let files = "/a /build/b /plain/a /plain/build/a /plain/build/venv/a /plain/x/target/a \
        /target/a /target/build/a /target/sub/dist/a";
    let file = |path| (VPath::parse(path).unwrap(), "needle\n");
    let files: Vec<_> = files.split(' ').map(file).collect();
    let patterns = "** target/** /target/** /target/* **/build/* plain/build/** \
        /plain/{build,x}/** */build/** pl*/*/target/a {build/b,plain/**} /*/build/**";
    for prefixes in [
        "/plain",
        "/target",
        "/plain /target",
        "/plain/build",
        "/target/sub",
    ] {
        for names in [Names::Below, Names::Full, Names::Directory] {
            let routes = prefixes.split(' ').map(|prefix| RouteAt {
                prefix: VPath::parse(prefix).unwrap(),
                names,
                rules_above: None,
                blocking: false,
            });
            let layout = Layout {
                routes: routes.collect(),
                shadows: Vec::new(),
            };
            let mut pair = Pair::new(&layout, &files);
            for (start, pattern) in ["/", "/plain", "/target"]
                .into_iter()
                .flat_map(|start| patterns.split(' ').map(move |pattern| (start, pattern)))
            {
                let search = Search {
                    start: VPath::parse(start).unwrap(),
                    pattern: Some(pattern),
                    limit: 1000,
                    hidden: false,
                    ignored: false,
                    generated: false,
                    hide: &[],
                };
                let call = Call::Glob(search, GlobOrder::Path);
                let same = pair.try_call(&call);
                assert_eq!(same, Ok(()), "{prefixes:?} {names:?} {call:?}");
            }
        }
    }
}
