//! `pg_settings`: the settings of the session that asks.

use onrush::{Row, Value};

use super::kinds::{BOOL, INT4, NAME, TEXT, TEXTS};
use super::{PG_CATALOG, SystemTable};
use crate::execute::Settings;

pub(super) const ALL: &[SystemTable] = &[SystemTable {
    schema: PG_CATALOG,
    name: "pg_settings",
    columns: &[
        ("name", NAME),
        ("setting", TEXT),
        ("unit", TEXT),
        ("category", TEXT),
        ("short_desc", TEXT),
        ("extra_desc", TEXT),
        ("context", TEXT),
        ("vartype", TEXT),
        ("source", TEXT),
        ("min_val", TEXT),
        ("max_val", TEXT),
        ("enumvals", TEXTS),
        ("boot_val", TEXT),
        ("reset_val", TEXT),
        ("sourcefile", TEXT),
        ("sourceline", INT4),
        ("pending_restart", BOOL),
    ],
    rows: |_, statement| {
        let settings = statement.client.settings.as_ref();
        let row = |(name, first): (&'static str, String)| {
            let now = settings.and_then(|settings| settings.setting(name));
            row(name, now.unwrap_or_else(|| first.clone()), first)
        };
        Settings::at_the_beginning().into_iter().map(row).collect()
    },
}];

fn row(name: &'static str, setting: String, first: String) -> Row {
    let null = Value::Null;
    let source = if setting == first { "default" } else { "session" };
    vec![
        name.into(),
        setting.into(),
        null.clone(),
        "Onrush".into(),
        null.clone(),
        null.clone(),
        "user".into(),
        "string".into(),
        source.into(),
        null.clone(),
        null.clone(),
        null.clone(),
        first.clone().into(),
        first.into(),
        null.clone(),
        null,
        Value::Boolean(false),
    ]
}
