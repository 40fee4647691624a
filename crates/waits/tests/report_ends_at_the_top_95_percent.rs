//! The wait report has the classic columns and ends with the wait that makes it up to 95 percent.

use std::time::Duration;

use onrush_waits::{Recorder, Registry, Wait};

fn registry() -> Registry {
    let registry = Registry::new();
    let recorder = Recorder::new(&registry, "session");
    let add = |wait, millis, signal| {
        recorder.waited(wait, Duration::from_millis(millis), Duration::from_millis(signal));
    };
    add(Wait::WriteLog, 20_000, 450);
    add(Wait::PageIoLatchEx, 70_000, 10);
    add(Wait::PageLatchEx, 6_000, 0);
    add(Wait::Admission, 4_000, 0);
    add(Wait::LogIdle, 500_000, 0);
    registry
}

#[test]
fn report_text() {
    let expected = "\
WaitType         Wait_S Resource_S Signal_S   Max_Ms WaitCount Percentage
PAGEIOLATCH_EX    70.00      69.99     0.01 70000.00         1      70.00
WRITELOG          20.00      19.55     0.45 20000.00         1      20.00
PAGELATCH_EX       6.00       6.00     0.00  6000.00         1       6.00
";
    assert_eq!(registry().totals().wait_report(), expected);
}

#[test]
fn no_line_of_the_report_is_longer_than_a_terminal_is_wide() {
    for wait in Wait::ALL {
        let registry = Registry::new();
        let recorder = Recorder::new(&registry, "session");
        let hours = Duration::from_secs(20 * 3600);
        (0..1000).for_each(|_| recorder.waited(*wait, Duration::from_millis(99_999), hours / 1000));
        let report = registry.totals().wait_report();
        assert!(report.lines().all(|line| line.len() <= 80), "{report}");
    }
}

#[test]
fn json_names_waits_as_the_report_does() {
    let json = serde_json::to_value(registry().totals()).expect("totals serialize");
    let waits = json["waits"].as_array().expect("a list");
    let write_log = waits.iter().find(|entry| entry["wait"] == "WRITELOG").expect("its name");
    assert_eq!(write_log["signal_nanos"], 450_000_000_u64);
}
