//! Tests of the report.

use super::*;
use crate::bench::suite::suites;

/// The suites `state` and `local`.
fn state_and_local() -> &'static [Suite] {
    let all = suites().unwrap().leak();
    assert_eq!([&all[0].name, &all[1].name], ["state", "local"]);
    &all[..2]
}

fn comparison(target: Option<Target>, peer: Result<Figure, &'static str>) -> Comparison<'static> {
    let mut rows = state_and_local().iter().flat_map(|suite| &suite.rows);
    Comparison {
        row: rows.find(|row| row.target == target).unwrap(),
        ours: Figure::exact(1_500.0),
        peer,
        rounds: None,
    }
}

fn is(nanos: f64) -> Result<Figure, &'static str> {
    Ok(Figure::exact(nanos))
}

fn section_of(suite: &Suite, run: &Run<'_>) -> String {
    let facts = [
        "Date: 2026-01-31",
        "CPU: Some CPU, 2 cores",
        "Compiler: rustc 1.95.0",
    ];
    section(suite, &facts.map(str::to_owned), "Python 3.12.1", run)
}

fn run(comparisons: Vec<Comparison<'_>>) -> Run<'_> {
    Run {
        comparisons,
        facts: vec!["Tree: small".to_owned()],
        is_peer_missing: false,
    }
}

#[test]
fn times_have_three_digits() {
    let shown = [0.5, 812.4, 1_234.0, 45_600.0, 7.5e6, 1.2e10].map(duration);
    assert_eq!(
        shown,
        [
            "0.50 ns", "812 ns", "1.23 µs", "45.6 µs", "7.50 ms", "12.0 s"
        ]
    );
}

#[test]
fn target_is_met_from_its_ratio_on() {
    let is_met = |target, peer| comparison(target, peer).is_met();
    let faster = Some(Target::Faster(20.0));
    assert_eq!(is_met(faster, is(30_000.0)), Some(true));
    assert_eq!(is_met(faster, is(29_999.0)), Some(false));
    assert_eq!(is_met(faster, Err("not available")), None);
    let within = Some(Target::Within(1.25));
    assert_eq!(is_met(within, is(1_200.0)), Some(true));
    assert_eq!(is_met(within, is(1_199.0)), Some(false));
    assert_eq!(is_met(None, is(1.0)), None);
}

#[test]
fn memory_needs_no_peer() {
    let mut memory = comparison(Some(Target::Below(64e6)), Err(""));
    memory.ours = Figure::exact(5.04e6);
    assert_eq!(memory.is_met(), Some(true));
    let [.., ours, theirs, ratio, asked, is_met] = memory.cells();
    assert_eq!(
        [ours, theirs, ratio, asked, is_met],
        ["5.0 MB", "", "", "under 64.0 MB", "yes"]
    );
    memory.ours = Figure::exact(64e6);
    assert_eq!(memory.is_met(), Some(false));
}

#[test]
fn cells_show_what_is_known() {
    let faster = Some(Target::Faster(20.0));
    let [.., peer, ours, theirs, ratio, asked, is_met] = comparison(faster, is(3_000.0)).cells();
    assert_eq!(
        [peer, ours, theirs, ratio, asked, is_met],
        ["python", "1.50 µs", "3.00 µs", "2.00x", "20.0x", "NO"]
    );
    let [.., theirs, ratio, _, is_met] = comparison(faster, Err("not available")).cells();
    assert_eq!([theirs, ratio, is_met], ["not available", "", ""]);
    let mut within = comparison(Some(Target::Within(1.1)), is(3_000.0));
    within.ours.p90 = Some(2_000.0);
    let [.., ours, _, _, asked, _] = within.cells();
    assert_eq!([ours, asked], ["1.50 µs (p90 2.00 µs)", "0.91x"]);
}

#[test]
fn a_difference_in_results_is_told() {
    let compared = |ours, theirs| {
        let sized = |size, nanos| Figure {
            size: Some(size),
            ..Figure::exact(nanos)
        };
        let peer = Ok(sized(theirs, 3_000.0));
        Comparison {
            ours: sized(ours, 1_500.0),
            ..comparison(Some(Target::Within(1.1)), peer)
        }
    };
    assert!(!results(&run(vec![])).contains("differs"));
    assert_eq!(compared(7, 7).difference(), None);
    let text = results(&run(vec![compared(7, 8)]));
    assert!(text.ends_with("differs in:\n\n- `local_grep_main_rg`: ours 7, rg 8\n"));
}

#[test]
fn section_says_how_it_was_made() {
    let apart = comparison(Some(Target::Faster(10.0)), is(30_000.0));
    let [state, local] = state_and_local() else {
        panic!("two suites");
    };
    let section = section_of(state, &run(vec![apart]));
    for part in [
        "## Files in memory\n",
        "2026-01-31",
        "Some CPU, 2 cores",
        "rustc 1.95.0",
        "pydantic-ai-backend 0.2.29 on Python 3.12.1\n",
        "- Tree: small\n",
        "We are measured first",
        "(../xtask/bench/peer_state.py)",
        "| 20.0x | 10.0x | yes |",
    ] {
        assert!(section.contains(part), "{part}");
    }
    let mut turns = comparison(Some(Target::Within(1.1)), is(30_000.0));
    turns.rounds = Some(9);
    let section = section_of(local, &run(vec![turns]));
    assert!(section.contains("by turns, each row in 9 to 9 rounds"));
    let peers = "ripgrep 15.2.0, pydantic-ai-backend 0.2.29 on Python 3.12.1, a bare tokio";
    assert!(section.contains(peers));
}

#[test]
fn a_page_keeps_the_sections_of_other_suites() {
    let suites = state_and_local();
    let local = format!("{SECTION}{}\n\nlocal\n", suites[1].title);
    let state = |text: &str| format!("{SECTION}{}\n\n{text}\n", suites[0].title);
    let with_state = |old: &str, text| page(old, suites, &suites[0], &state(text));
    let with_local = |old: &str| page(old, suites, &suites[1], &local);
    let first = with_local("# Something older\n");
    assert_eq!(first, format!("{HEAD}{local}"));
    let both = with_state(&first, "one");
    assert_eq!(both, format!("{HEAD}{}{local}", state("one")));
    let newer = with_state(&both, "two");
    assert_eq!(newer, format!("{HEAD}{}{local}", state("two")));
    assert_eq!(with_local(&newer), newer);
}

#[test]
fn cpu_model_is_the_first_of_the_cores() {
    let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n";
    assert_eq!(cpu_model(cpuinfo), Some("Some CPU @ 2 GHz"));
    assert_eq!(cpu_model(""), None);
}
