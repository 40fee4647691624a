//! The page in a real browser: it shows the numbers, goes on showing new ones, and complains of
//! nothing. Left out where there is no Chromium or Chrome; `ONRUSH_SCREENSHOTS=FOLDER` keeps pictures.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush::{
    ColumnDefinition, DataType, Database, Durability, KeyStrategy, Options, TableDefinition,
};
use onrush_dashboard::Dashboard;

const BROWSERS: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path);
    let all = places.flat_map(|place| BROWSERS.iter().map(move |name| place.join(name)));
    all.into_iter().find(|path| path.is_file())
}

/// What the browser has made of the page after five seconds of its own clock, and what it said meanwhile.
fn looked_at(browser: &PathBuf, address: &str, name: &str, more: &[&str]) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let run = |last: &[String]| {
        Command::new(browser)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args(["--enable-logging=stderr", "--virtual-time-budget=5000"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(more)
            .args(last)
            .arg(format!("http://{address}/"))
            .output()
            .unwrap()
    };
    if let Some(folder) = std::env::var_os("ONRUSH_SCREENSHOTS") {
        let picture = PathBuf::from(folder).join(format!("dashboard-{name}.png"));
        run(&[format!("--screenshot={}", picture.display())]);
    }
    let output = run(&["--dump-dom".to_owned()]);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}

/// The text of the element with this id, which has no elements inside.
fn text_of<'p>(page: &'p str, id: &str) -> &'p str {
    let start = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let rest = &page[start..];
    let text = &rest[rest.find('>').unwrap() + 1..];
    &text[..text.find('<').unwrap()]
}

#[test]
fn it_shows_what_happens_and_complains_of_nothing() {
    let Some(browser) = browser() else {
        let is_required = std::env::var_os("ONRUSH_REQUIRE_BROWSER").is_some();
        assert!(!is_required, "no browser on the path: install one of {}", BROWSERS.join(", "));
        println!("left out: no browser on the path (one of {})", BROWSERS.join(", "));
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let database = Database::create(folder.path().join("db"), Options::small()).unwrap();
    let key = ColumnDefinition::new("id", DataType::Int64).not_null();
    let hostile = "<b onclick=alert(1)>orders</b>";
    let table = |name: &str, key: ColumnDefinition| {
        TableDefinition::builder(name).column(key).primary_key(["id"]).build().unwrap()
    };
    let orders =
        database.create_table(table("orders", key.clone().default_key(KeyStrategy::SessionOffset)));
    let orders = orders.unwrap();
    database.create_table(table(hostile, key)).unwrap();
    let dashboard = Dashboard::start(&database, "127.0.0.1:0".parse().unwrap(), None).unwrap();
    let address = dashboard.address().to_string();
    let stop = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = database.session().unwrap();
                session.set_durability(Durability::Durable);
                while !stop.load(Ordering::Relaxed) {
                    session.insert(&orders, &[]).unwrap();
                }
            });
        }
        // The numbers of some seconds, so that there is something to draw.
        while database.history().len() < 4 {
            std::thread::yield_now();
        }
        let wide = looked_at(&browser, &address, "wide", &["--window-size=1280,1400"]);
        let phone = ["--window-size=390,2400", "--force-dark-mode"];
        let phone = looked_at(&browser, &address, "phone", &phone);
        stop.store(true, Ordering::Relaxed);
        [wide, phone]
    });
    for (page, said) in looks {
        let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(complaints.is_empty(), "{complaints:?}");
        assert!(text_of(&page, "state").contains("version"), "{}", text_of(&page, "state"));
        assert_ne!(text_of(&page, "rows"), "-", "no rows a second are shown");
        assert_ne!(text_of(&page, "rows"), "0", "the numbers are not those of the load");
        assert!(page.contains("<i style=\"width"), "the phases between two looks are shown");
        assert!(page.matches("<canvas").count() >= 5, "the charts are drawn");
        assert!(page.contains("<td>orders</td>"), "the tables are listed");
        assert!(!page.contains("<b onclick"), "a name is text, never markup");
        assert!(page.contains("&lt;b onclick"), "and it is shown as it is");
    }
}
