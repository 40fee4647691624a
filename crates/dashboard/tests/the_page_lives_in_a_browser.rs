//! The page in a real browser: it shows the numbers, goes on showing new ones, and complains of
//! nothing.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};

use onrush::{
    ColumnDefinition, DataType, Database, Durability, KeyStrategy, Options, TableDefinition,
};
use onrush_browser::{Browser, DARK, Look};
use onrush_dashboard::Dashboard;

/// How often the page is opened until it shows what it is to show.
const LOOKS_MAX: usize = 10;
/// The bar of a phase.
const PHASES: &str = "<i style=\"width";

/// The text of the element with this id, which has no elements inside.
fn text_of<'p>(page: &'p str, id: &str) -> &'p str {
    let start = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let rest = &page[start..];
    let text = &rest[rest.find('>').unwrap() + 1..];
    &text[..text.find('<').unwrap()]
}

#[test]
fn it_shows_what_happens_and_complains_of_nothing() {
    let Some(browser) = Browser::find() else { return };
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
    let address = format!("http://{}/", dashboard.address());
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
        // On a machine with much else to do the browser may have time for one look at the numbers only,
        // and the phases are those between two.
        let look = |name, more: &[&str]| {
            let mut seen = browser.look(&address, name, more).unwrap();
            for _ in 1..LOOKS_MAX {
                if seen.document.contains(PHASES) {
                    break;
                }
                seen = browser.look(&address, name, more).unwrap();
            }
            seen
        };
        let wide = look("dashboard-wide", &["--window-size=1280,1400"]);
        let phone = look("dashboard-phone", &["--window-size=390,2400", DARK]);
        stop.store(true, Ordering::Relaxed);
        [wide, phone]
    });
    for Look { document: page, console } in looks {
        assert_eq!(console, Vec::<String>::new());
        assert!(text_of(&page, "state").contains("version"), "{}", text_of(&page, "state"));
        assert_ne!(text_of(&page, "rows"), "-", "no rows a second are shown");
        assert_ne!(text_of(&page, "rows"), "0", "the numbers are not those of the load");
        assert!(page.contains(PHASES), "the phases between two looks are shown");
        assert!(page.matches("<canvas").count() >= 5, "the charts are drawn");
        assert!(page.contains("<td>orders</td>"), "the tables are listed");
        assert!(page.contains("0 open, 0 KiB of log"), "open large transactions are told");
        assert!(!page.contains("<b onclick"), "a name is text, never markup");
        assert!(page.contains("&lt;b onclick"), "and it is shown as it is");
    }
}
