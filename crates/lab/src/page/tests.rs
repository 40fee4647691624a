//! What the page must hold, and how a browser draws it, on an invented result of a shipped study.

use onrush_browser::{Browser, DARK};
use onrush_measure::disk::SyncTime;
use onrush_measure::machine::{FileSystem, Machine};

use super::*;
use crate::study::outcome::{CaseOutcome, DeviceUse, Repeat};
use crate::study::{Size, shipped};
use crate::target::record::{CounterRecord, CounterSeries, Mark, PhaseRecord, Spins, WaitRecord};

/// The study of keys as if it had run: every kind of case, wait, phase, series and mark.
pub(crate) fn invented() -> StudyResult {
    invented_of("keys")
}

fn invented_of(name: &str) -> StudyResult {
    let study = shipped::study(name, Size::Quick).unwrap();
    let cases = study.cases().into_iter().map(|case| {
        let mut outcome = CaseOutcome {
            number: case.number,
            target: case.target,
            part: case.part,
            note: "A note <on> the part.".to_owned(),
            proof: vec!["PAGELATCH_EX".to_owned()],
            settings: case.settings,
            ..CaseOutcome::default()
        };
        match case.number {
            3 => outcome.skipped = Some("not installed; install it".to_owned()),
            4 => outcome.failed = Some("it died".to_owned()),
            number => outcome.repeats = (0..3).map(|one| run(number, one)).collect(),
        }
        outcome.conclude();
        outcome
    });
    let device = FileSystem { kind: "ext4".into(), device: "/dev/x".into(), free_bytes: 1 << 40 };
    let mut result = StudyResult {
        repeats: 3,
        seed: 1,
        version: "0.0.0".to_owned(),
        settings_hash: "0123456789abcdef".to_owned(),
        started_unix_s: 1_700_000_000,
        command: "onrush-lab run keys --quick".to_owned(),
        machine: Machine {
            cpus: 2,
            cpu_name: "Invented".to_owned(),
            memory_bytes: 1 << 34,
            system: "linux".to_owned(),
        },
        sync_time_us: SyncTime { p50_us: 250.0, p99_us: 400.0, mean_us: 260.0, samples: 9 },
        ..StudyResult::begun(&study, device, cases.collect())
    };
    crate::verdict::judge(&mut result);
    result
}

fn run(case: usize, number: usize) -> Repeat {
    let rows_per_s = 2.0e6 / (1.0 + case as f64) * (1.0 + 0.03 * number as f64);
    let wait = |name: &str, seconds, collisions| WaitRecord {
        group: if collisions > 0 { "latch" } else { "wait" }.to_owned(),
        name: name.to_owned(),
        count: 1234,
        seconds,
        resource_s: Some(seconds),
        requests: (collisions > 0).then_some(99),
        spins: (collisions > 0).then(|| Spins { collisions, spins: 9, ..Spins::default() }),
        ..WaitRecord::default()
    };
    let points = |scale: f64| (1..40).map(move |n| (f64::from(n) / 10.0, scale * f64::from(n % 7)));
    Repeat {
        number,
        rows: 1_000_000,
        commits: 1_000_000,
        elapsed_s: 4.0,
        rows_per_s,
        cpu_percent: 70.0,
        commits_per_sync: Some(if case.is_multiple_of(5) { 12.0 } else { 300.0 }),
        device: Some(DeviceUse::default()),
        waits: vec![wait("WRITELOG", 60.0, 0), wait("ADMISSION", 9.5, 0), wait("LEAF", 1.0, 7)],
        phases: vec![
            PhaseRecord { name: "SEEK".into(), count: 9, seconds: 0.7, is_idle: false },
            PhaseRecord { name: "PLACE".into(), count: 9, seconds: 0.3, is_idle: false },
        ],
        series: vec![
            CounterSeries {
                name: "ROWS".into(),
                unit: "1/s".into(),
                points: points(1e6).collect(),
            },
            CounterSeries {
                name: "A_COUNTER_WITH_A_RATHER_LONG_NAME".into(),
                unit: "bytes/s".into(),
                points: points(123_456_789.0).collect(),
            },
        ],
        counters: vec![CounterRecord::level("TREE_DEPTH", "1", 3)],
        marks: vec![Mark { at_s: 2.0, label: "checkpoint".to_owned() }],
        warnings: vec!["the sync time drifted".to_owned()],
        ..Repeat::default()
    }
}

#[test]
fn flame_graphs_are_linked_where_there_are_any() {
    let mut result = invented();
    assert!(!html(&result).contains("Time by stack"));
    let ran = result.cases.iter_mut().find(|case| !case.repeats.is_empty()).unwrap();
    ran.repeats[0].stacks = Some("r-stacks-1-1.svg".to_owned());
    assert!(html(&result).contains("<a href=\"r-stacks-1-1.svg\">"));
}

#[test]
fn the_page_holds_all_that_was_found() {
    let result = invented();
    let page = html(&result);
    for text in [
        "Key strategies",
        "not installed; install it",
        "it died",
        "not synchronous",
        "WaitType",
        "What the baselines counted",
        "TREE_DEPTH",
        "Signal_S",
        "Spins per collision",
        "Requests",
        "Max_Ms",
        "onrush-lab run keys --quick",
        "What held it back",
        "750,000 rows/s",
        "160M rows",
        "A note &lt;on&gt; the part.",
        "0123456789abcdef",
    ] {
        assert!(page.contains(text), "{text} is not on the page");
    }
    let pictures = page.matches("<svg").count();
    assert!(pictures > 8);
    assert_eq!(page.matches("<svg role=\"img\"").count(), pictures);
    assert!(page.matches("<desc id=").count() == pictures);
}

#[test]
fn a_bar_is_labelled_by_what_sets_it_apart_at_its_place_only() {
    let labels = |result: &StudyResult| {
        let panels = view::panels(result);
        let values = panels.iter().flat_map(|panel| &panel.groups).flat_map(|group| &group.values);
        values.map(|value| value.series.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    // Its rungs differ in much, and stand at places of their own.
    assert_eq!(labels(&invented_of("ladder")).into_iter().collect::<Vec<_>>(), ["onrush"]);
    // Threads and tasks stand side by side.
    let keys = labels(&invented());
    assert!(keys.contains("onrush, threads") && keys.contains("onrush, tasks"), "{keys:?}");
}

#[test]
fn the_page_loads_nothing() {
    let page = html(&invented());
    for text in ["<script", "http://", "https://", "@import", "url(", "<img", "src="] {
        assert!(!page.contains(text), "{text} is on the page");
    }
}

#[test]
fn flagged_cases_win_nothing() {
    let mut result = invented();
    result.cases.retain(|case| case.failed.is_none());
    let sentence = |result: &StudyResult| headline::sentence(result, &view::panels(result));
    let before = sentence(&result);
    for case in result.cases.iter_mut().filter(|case| !case.target.starts_with("onrush")) {
        case.not_synchronous = true;
    }
    assert!(before.contains("baseline"), "{before}");
    assert!(!sentence(&result).contains("baseline"), "{}", sentence(&result));
}

#[test]
fn every_run_and_every_wait_is_in_the_tables_for_spreadsheets() {
    let result = invented();
    let runs: usize = result.cases.iter().map(|case| case.repeats.len().max(1)).sum();
    assert_eq!(csv::runs(&result).lines().count(), runs + 1);
    let waits = result.cases.iter().flat_map(|case| &case.repeats).map(|one| one.waits.len());
    assert_eq!(csv::waits(&result).lines().count(), waits.sum::<usize>() + 1);
}

#[test]
fn the_picture_file_is_well_formed_and_draws_every_bar() {
    let result = invented();
    let svg = chart_svg(&result).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let is_bar = |node: &roxmltree::Node<'_, '_>| {
        node.attribute("class").is_some_and(|class| class.starts_with("bar "))
    };
    let bars = document.descendants().filter(is_bar).count();
    let panels = view::panels(&result);
    let of_group = |group: &view::Group<'_>| group.values.len() + group.references.len();
    assert_eq!(bars, panels[0].groups.iter().map(of_group).sum::<usize>());
}

/// Of this text between `start` and each next quotation mark, the words.
fn words_behind<'t>(text: &'t str, start: &str) -> std::collections::BTreeSet<&'t str> {
    let values = text.split(start).skip(1).filter_map(|rest| rest.split('"').next());
    values.flat_map(str::split_whitespace).collect()
}

#[test]
fn the_style_sheet_draws_every_class_of_a_picture_and_no_class_that_is_nowhere() {
    let pages = ["keys", "ladder", "sessions", "check"].map(|name| html(&invented_of(name)));
    let (_, body) = pages[0].split_once("</style>").unwrap();
    for class in
        words_behind(body, "<rect class=\"").iter().chain(&words_behind(body, "<span class=\""))
    {
        assert!(STYLE.contains(&format!(".{class}")), "no rule for .{class}");
    }
    let bodies: String = pages.iter().map(|page| page.split_once("</style>").unwrap().1).collect();
    let on_pages = words_behind(&bodies, " class=\"");
    for rule in STYLE.lines().filter(|line| line.contains('{')) {
        for name in rule.split('{').next().unwrap().split('.').skip(1) {
            let name = name.split(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap();
            let is_colour = name == "other" || (name.len() == 2 && name.starts_with('c'));
            assert!(is_colour || on_pages.contains(name), "nothing has the class {name}");
        }
    }
}

#[test]
fn where_a_result_of_others_stands_the_page_says_that_no_server_was_there() {
    for name in shipped::names() {
        let result = invented_of(name);
        let (page, text) = (html(&result), crate::study::table::text(&result));
        let has_some = !result.references.is_empty();
        assert_eq!(text.contains(crate::study::file::NO_SERVER), has_some, "{name}: {text}");
        let classic = page.split_once("<section id=\"classic\">").map(|(_, rest)| rest);
        let said = classic.and_then(|rest| rest.split("</section>").next());
        assert_eq!(
            said.is_some_and(|said| said.contains(crate::study::file::NO_SERVER)),
            has_some,
            "{name}"
        );
        let bars = page.matches("class=\"bar classic\"").count();
        assert_eq!(page.matches(" not run here</text>").count(), bars, "{name}");
        assert!(bars == 0 || page.matches(crate::study::file::NO_SERVER).count() == 2, "{name}");
    }
}

#[test]
fn the_files_are_written_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write(&invented(), &folder.path().join("new"), "keys").unwrap();
    let names: Vec<_> =
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["keys.html", "keys.csv", "keys-waits.csv", "keys.json"]);
    let json = std::fs::read_to_string(&paths[3]).unwrap();
    let back: StudyResult = serde_json::from_str(&json).unwrap();
    assert_eq!(csv::waits(&back), csv::waits(&invented()));
}

/// Opens all that is folded, and tells the page around it which texts of a picture overlap or leave
/// it, and whether the page is wider than its window.
const LOOK: &str = include_str!("look.js");

/// What the script says about a page in a window of this width; None without a browser.
fn looked_at(page: &str, width: u32, more: &[&str]) -> Option<String> {
    let browser = Browser::find()?;
    let folder = tempfile::tempdir().unwrap();
    let inner = page.replace("</body>", &format!("<script>{LOOK}</script></body>"));
    std::fs::write(folder.path().join("page.html"), inner).unwrap();
    // A frame, since a window of a browser may not be made as narrow as a phone.
    let outer = format!(
        "<!doctype html><pre id=said></pre><iframe src=page.html width={width} height=900></iframe>\
         <script>addEventListener('message', e => said.textContent = 'SAID ' + e.data)</script>"
    );
    let around = folder.path().join("around.html");
    std::fs::write(&around, outer).unwrap();
    let address = format!("file://{}", around.display());
    let size = format!("--window-size={},1000", width + 40);
    let look =
        browser.look(&address, &format!("study-{width}"), &[&[&*size], more].concat()).unwrap();
    assert_eq!(look.console, Vec::<String>::new());
    Some(look.document)
}

#[test]
fn a_browser_draws_the_page_without_overlaps_on_phone_and_desk() {
    let page = html(&invented());
    for width in [390, 1280] {
        let Some(document) = looked_at(&page, width, &[]) else { return };
        let said = &document[..document.len().min(2000)];
        assert!(document.contains("SAID fine, light"), "at {width}: {said}");
    }
}

#[test]
fn in_the_dark_the_page_is_dark_and_can_be_read() {
    let Some(document) = looked_at(&html(&invented()), 1280, &[DARK]) else { return };
    assert!(document.contains("SAID fine, dark"), "{}", &document[..document.len().min(2000)]);
}

#[test]
fn on_paper_the_page_takes_a_few_sheets() {
    let Some(browser) = Browser::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, html(&invented())).unwrap();
    let sheets = browser.sheets(&format!("file://{}", file.display())).unwrap();
    assert!((1..=16).contains(&sheets), "{sheets} sheets");
}

#[test]
fn an_overlap_is_seen() {
    let text = "<text x=1 y=20>one text</text><text x=9 y=20>upon another</text>";
    let page = format!("<!doctype html><body><svg width=200 height=40>{text}</svg></body>");
    let Some(document) = looked_at(&page, 390, &[]) else { return };
    assert!(document.contains("SAID overlap: one text / upon another"), "{document}");
}

#[test]
fn a_text_that_is_hard_to_read_is_seen() {
    let style = "<style>body { background: #fff } p { color: #ddd }</style>";
    let page =
        format!("<!doctype html>{style}<body><svg width=9 height=9></svg><p>faint</p></body>");
    let Some(document) = looked_at(&page, 390, &[]) else { return };
    assert!(document.contains("SAID hard to read: faint"), "{document}");
}
