//! `pg_settings`: the settings of a session as it begins. SHOW tells what they are now.

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
    rows: |_, _| Settings::at_the_beginning().into_iter().map(row).collect(),
}];

fn row((name, setting): (&'static str, String)) -> Row {
    let null = Value::Null;
    vec![
        name.into(),
        setting.clone().into(),
        null.clone(),
        "Onrush".into(),
        null.clone(),
        null.clone(),
        "user".into(),
        "string".into(),
        "default".into(),
        null.clone(),
        null.clone(),
        null.clone(),
        setting.clone().into(),
        setting.into(),
        null.clone(),
        null,
        Value::Boolean(false),
    ]
}
