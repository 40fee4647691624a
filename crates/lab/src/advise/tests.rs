//! The advice that results give, with figures made up for the purpose.

use std::path::Path;

use onrush_measure::disk::SyncTime;
use onrush_measure::machine::FileSystem;
use onrush_measure::verify::Verification;

use super::*;
use crate::study::outcome::Repeat;
use crate::study::{SettingValue, Settings};

fn case(
    part: &str,
    setting: Setting,
    value: impl Into<SettingValue>,
    rates: &[f64],
) -> CaseOutcome {
    let repeat = |rate: &f64| Repeat { rows_per_s: *rate, ..Repeat::default() };
    let mut case = CaseOutcome {
        target: "onrush".into(),
        part: Some(part.into()),
        settings: Settings::default().with(setting, value),
        repeats: rates.iter().map(repeat).collect(),
        ..CaseOutcome::default()
    };
    case.conclude();
    case
}

fn result(cases: Vec<CaseOutcome>) -> StudyResult {
    let ladder = Ladder { table: None, target: "onrush".into(), sessions: 8, size: Size::Quick };
    let study = study(&ladder).unwrap();
    let device = FileSystem::under(Path::new(".")).unwrap();
    let sync_time_us = SyncTime { p50_us: 100.0, p99_us: 100.0, mean_us: 100.0, samples: 9 };
    StudyResult { sync_time_us, ..StudyResult::begun(&study, device, cases) }
}

fn about(advice: &Advice, part: &str) -> Recommendation {
    let found = advice.recommendations.iter().find(|one| one.about == part);
    found.unwrap_or_else(|| panic!("no answer about {part}: {:?}", advice.doubts)).clone()
}

fn keys(identity: &[f64], offset: &[f64]) -> Vec<CaseOutcome> {
    vec![
        case(KEY, Setting::Key, "identity", identity),
        case(KEY, Setting::Key, "session-offset", offset),
    ]
}

#[test]
fn a_key_that_is_faster_in_every_run_is_recommended_with_its_gain() {
    let advice = of(&result(keys(&[100.0, 110.0, 105.0], &[210.0, 200.0, 230.0])));
    let key = about(&advice, KEY);
    assert!(key.change && key.best == "session-offset" && key.gain == 2.0, "{key:?}");
    assert!(key.sentence.contains("2.00 times as fast, 210 instead of 105 rows/s"), "{key:?}");
}

#[test]
fn runs_that_overlap_or_gain_little_change_nothing() {
    for (first, other) in [([100.0, 210.0, 105.0], [200.0, 200.0, 200.0]), ([100.0; 3], [104.0; 3])]
    {
        let key = about(&of(&result(keys(&first, &other))), KEY);
        assert!(!key.change && key.best == "identity" && key.gain == 1.0, "{key:?}");
        assert!(key.sentence.starts_with("Keep identity"), "{key:?}");
    }
}

#[test]
fn of_one_run_each_a_gain_must_be_larger() {
    assert!(!about(&of(&result(keys(&[100.0], &[120.0]))), KEY).change);
    assert!(about(&of(&result(keys(&[100.0], &[130.0]))), KEY).change);
}

#[test]
fn the_smallest_batch_that_is_nearly_the_fastest_is_enough() {
    let batch = |rows: u64, rate| case(BATCH, Setting::RowsPerCommit, rows, &[rate; 3]);
    let advice =
        of(&result(vec![batch(1, 10.0), batch(10, 80.0), batch(100, 95.0), batch(1000, 100.0)]));
    assert_eq!(about(&advice, BATCH).best, "100");
    let flat = of(&result(vec![batch(1, 98.0), batch(10, 99.0), batch(100, 100.0)]));
    assert!(!about(&flat, BATCH).change);
}

#[test]
fn delayed_commits_are_offered_with_their_price_and_files_with_their_number() {
    let advice = of(&result(vec![
        case(DURABILITY, Setting::Durability, "durable", &[10.0; 3]),
        case(DURABILITY, Setting::Durability, "delayed", &[90.0; 3]),
        case(LAYOUT, Setting::DataFiles, 1, &[10.0; 3]),
        case(LAYOUT, Setting::DataFiles, 4, &[15.0; 3]),
    ]));
    let durability = about(&advice, DURABILITY);
    assert!(durability.sentence.contains("If a crash may take the last moments"), "{durability:?}");
    assert_eq!(about(&advice, LAYOUT).best, "4");
    let text = advice.text();
    assert!(text.contains("no answer about key: it was not measured"), "{text}");
}

#[test]
fn a_case_that_lost_rows_or_did_not_wait_is_no_advice() {
    let mut lossy = keys(&[100.0; 3], &[500.0; 3]);
    lossy[1].repeats[0].verification = Some(Verification {
        passed: false,
        rows_acknowledged: 2,
        rows_found: 1,
        is_exact: true,
        elapsed_s: 0.0,
        faults: vec!["1 acknowledged rows are missing".into()],
    });
    assert!(!about(&of(&result(lossy)), KEY).change);
    let mut eager = vec![
        case(BATCH, Setting::RowsPerCommit, 1, &[10.0; 3]),
        case(BATCH, Setting::RowsPerCommit, 10, &[90.0; 3]),
    ];
    eager[0].not_synchronous = true;
    let advice = of(&result(eager));
    assert!(advice.recommendations.is_empty(), "{advice:?}");
    assert!(advice.doubts.iter().any(|doubt| doubt.contains("did not wait for the disk")));
}

#[test]
fn the_ladder_measures_the_table_it_is_given_in_both_sizes() {
    let sql = "CREATE TABLE \"my \"\"orders\" (id uuid PRIMARY KEY, note text)";
    let table = crate::own_table::sql::read(sql).unwrap();
    for size in [Size::Quick, Size::Full] {
        let path = "a folder/with \"quotes\".sql";
        let ladder =
            Ladder { table: Some((&table, path)), target: "onrush".into(), sessions: 4, size };
        let study = study(&ladder).unwrap();
        let cases = study.cases();
        assert_eq!(cases.len(), 4 + 4 + 2 + 2);
        assert!(cases.iter().all(|case| case.settings.text(Setting::Table) == path));
        assert!(cases[1..].iter().any(|case| case.settings.is(Setting::Key, "uuid-v7")));
    }
}
