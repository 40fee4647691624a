//! `onrush stats`: of a database that is closed, and of one that another process has open.

#![allow(clippy::unwrap_used)]

mod common;

use common::World;
#[cfg(unix)]
use common::load::Load;
use serde_json::Value;

#[test]
fn a_closed_database_tells_what_opening_it_took() {
    let world = World::with_orders();
    world.ok(&["insert", "shop", "orders", "note=one"]);
    let text = world.ok(&["stats", "shop"]);
    for part in ["rows inserted/s", "recovery", "Waits: the top 95 %", "Latches", "Spins", "Phases"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let json: Value = serde_json::from_str(&world.ok(&["stats", "shop", "--json"])).unwrap();
    assert!(json["statistics"]["leaves"].as_u64().unwrap() >= 1, "{json:#}");
    let page = world.ok(&["stats", "shop", "--prometheus"]);
    assert!(page.contains("# TYPE onrush_events_total counter"), "{page}");
}

#[test]
fn to_attach_somebody_must_have_it_open() {
    let world = World::with_orders();
    let ran = world.run(&["stats", "shop", "--attach"]);
    assert!(ran.code == 1 && ran.err.contains("shop"), "{}", ran.err);
}

#[cfg(unix)]
#[test]
fn the_process_that_has_it_open_is_asked() {
    let world = World::new();
    let flags =
        ["--dir", "db", "--keep", "--rows", "1m", "--sessions", "1", "--log-capacity", "768m"];
    let (load, _) = Load::start(&world, &flags, "inserting");
    let look = ["stats", "db", "--attach", "--seconds", "1", "--json"];
    let json: Value = serde_json::from_str(&world.ok(&look)).unwrap();
    assert_eq!(json["process"].as_u64(), Some(u64::from(load.process())), "{json:#}");
    let nanos = json["statistics"]["elapsed_nanos"].as_u64().unwrap();
    assert!((900_000_000..60_000_000_000).contains(&nanos), "{nanos}");
    let waits = json["sessions"].as_array().unwrap().iter().flat_map(|one| one["waits"].as_array());
    let of_commits = waits.flatten().find(|wait| wait["wait"] == "WRITELOG").unwrap();
    for name in ["count", "nanos", "signal_nanos", "nanos_max", "histogram"] {
        assert!(!of_commits[name].is_null(), "{of_commits}");
    }
    let page = world.ok(&["stats", "db", "--attach", "--seconds", "1", "--prometheus"]);
    let rows = page.lines().find_map(|line| {
        line.strip_prefix("onrush_events_total{counter=\"ROWS_INSERTED\"} ")?.parse::<f64>().ok()
    });
    assert!(rows.unwrap() > 0.0, "{page}");

    assert_eq!(load.interrupt(), Some(130));
}
