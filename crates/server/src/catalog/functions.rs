//! The functions of PostgreSQL's catalogue that tools call.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onrush::{Database, Table, Value};
use onrush_query::{Client, QueryError, SystemFunction, write_array};

use super::kinds::{BOOL, INT8, TEXT, TEXTS, TIMESTAMP};
use super::names::{self, Naming};
use super::{indexes, text_functions};
use crate::execute::seen_by;
use crate::schemas;
use crate::seen::Seen;
use crate::sequences::Sequences;
use crate::sql::{Lookup, written_name};

/// All of them, for one database.
pub(crate) fn functions(database: &Database, sequences: &Arc<Sequences>) -> Vec<SystemFunction> {
    let yes = |_: &[Value<'_>]| Value::Boolean(true);
    let no = |_: &[Value<'_>]| Value::Boolean(false);
    let null = |_: &[Value<'_>]| Value::Null;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let began = i64::try_from(began).map_or(Value::Null, Value::TimestampTz);
    let mut all = vec![
        // Defaults are kept as SQL, so there is nothing to take apart.
        SystemFunction::new("pg_get_expr", TEXT, |given| text(given, 0)),
        // The number of the only encoding of a database here.
        SystemFunction::new("pg_encoding_to_char", TEXT, |given| match given {
            [number] => number.as_i64().map_or(Value::Null, |number| match number {
                6 => "UTF8".into(),
                _ => "".into(),
            }),
            _ => Value::Null,
        }),
        SystemFunction::new("pg_is_in_recovery", BOOL, no),
        SystemFunction::new("pg_postmaster_start_time", TIMESTAMP, move |_| began.clone()),
        SystemFunction::of_client("current_schemas", TEXTS, |client, given| {
            let system = matches!(given, [Value::Boolean(true)]).then_some(super::PG_CATALOG);
            let mut schemas = client.schemas();
            if system.is_none() {
                schemas.retain(|schema| !schemas::is_temporary(schema));
            }
            // Those that are searched without being named stand before the others.
            let named = schemas.iter().position(|schema| !schemas::is_temporary(schema));
            let (before, schemas) = schemas.split_at(named.unwrap_or(schemas.len()));
            let before = before.iter().map(String::as_str);
            let all = before.chain(system.into_iter()).chain(schemas.iter().map(String::as_str));
            write_array(all.map(Some)).into()
        }),
    ];
    all.extend(text_functions::functions());
    all.extend(super::roles::functions(database));
    // Where its arguments are constants the session does it, and this is not called.
    all.push(SystemFunction::new("set_config", TEXT, null).volatile(|_| {
        let message = "set_config of what is computed for each row is not supported".to_owned();
        Err(QueryError::NotSupported { message })
    }));
    for name in [
        "pg_type_is_visible",
        "pg_function_is_visible",
        "pg_collation_is_visible",
        "pg_conversion_is_visible",
        "pg_opclass_is_visible",
        "pg_operator_is_visible",
        "pg_opfamily_is_visible",
        "pg_statistics_obj_is_visible",
        "pg_ts_config_is_visible",
        "pg_ts_dict_is_visible",
        "pg_ts_parser_is_visible",
        "pg_ts_template_is_visible",
        "pg_relation_is_publishable",
    ] {
        all.push(SystemFunction::new(name, BOOL, yes));
    }
    // How large things are is not told by table: onrush.tables counts leaves.
    for name in [
        "pg_database_size",
        "pg_indexes_size",
        "pg_relation_size",
        "pg_table_size",
        "pg_tablespace_size",
        "pg_total_relation_size",
    ] {
        all.push(SystemFunction::new(name, INT8, null));
    }
    for name in [
        "shobj_description",
        "pg_get_statisticsobjdef_columns",
        "pg_get_partkeydef",
        "pg_get_triggerdef",
        "pg_tablespace_location",
    ] {
        all.push(SystemFunction::new(name, TEXT, null));
    }
    all.extend(of_tables(database));
    all.extend(super::comments::functions(database));
    all.extend(super::rights::functions(database));
    all.push(super::members::function(database));
    all.extend(super::sequences::functions(database));
    all.extend(super::types::functions(database));
    all.extend(super::views::functions(database));
    all.extend(crate::sequences::functions(sequences));
    all.extend(crate::advisory::functions());
    all.extend(crate::control::functions());
    all
}

/// Those that look a table up.
fn of_tables(database: &Database) -> Vec<SystemFunction> {
    let indexed = database.clone();
    let (known, looked_up) = (database.clone(), database.clone());
    let (named, visible) = (database.clone(), database.clone());
    vec![
        SystemFunction::of_client("regnamespace_name", TEXT, move |client, given| {
            let seen = seen_by(client, &named);
            let name = number(given, 0).and_then(|oid| names::schema_name(&seen, oid));
            name.map_or(Value::Null, Value::from)
        }),
        SystemFunction::of_client("pg_table_is_visible", BOOL, move |client, given| {
            let seen = seen_by(client, &visible);
            let table = number(given, 0).and_then(|oid| names::table_with(&seen, oid));
            let is_visible = |table| names::is_visible(&seen, &client.schemas(), &table);
            Value::Boolean(table.is_none_or(is_visible))
        }),
        SystemFunction::of_client("pg_get_indexdef", TEXT, move |client, given| {
            let seen = seen_by(client, &indexed);
            let found = number(given, 0).and_then(|oid| indexes::with(&seen, oid));
            let Some((table, index)) = found else { return Value::Null };
            let is_pretty = given.get(2) == Some(&Value::Boolean(true));
            // The number of a column, from 1; 0 is the whole index.
            match number(given, 1).and_then(|at| usize::try_from(at).ok()?.checked_sub(1)) {
                None => index.definition(&table, is_pretty).into(),
                Some(at) => match index.all_keys().get(at) {
                    Some(key) => key.shown(&table, is_pretty).into(),
                    None => Value::from(""),
                },
            }
        }),
        SystemFunction::of_client("pg_get_constraintdef", TEXT, {
            let database = database.clone();
            move |client, given| {
                let seen = seen_by(client, &database);
                let is_pretty = given.get(1) == Some(&Value::Boolean(true));
                let name = |table: &Table| seen_name(&seen, client, table, None);
                let shown = number(given, 0)
                    .and_then(|oid| names::constraint_with(&seen, oid, is_pretty, name));
                shown.map_or(Value::Null, Value::from)
            }
        }),
        SystemFunction::of_client("regclass_name", TEXT, {
            let database = database.clone();
            move |client, given| {
                let Some(oid) = number(given, 0) else { return text(given, 0) };
                let seen = seen_by(client, &database);
                if let Some(identity) = names::identity_with(&seen, oid) {
                    let name = schemas::own_name(&identity.name()).to_owned();
                    return seen_name(&seen, client, &identity.table, Some(name)).into();
                }
                let Some(table) = names::table_with(&seen, oid) else {
                    let of_catalogue = names::catalogue_name(oid).map(str::to_owned);
                    return of_catalogue.unwrap_or_else(|| oid.to_string()).into();
                };
                let index = indexes::with(&seen, oid).map(|(_, index)| index.name);
                seen_name(&seen, client, &table, index).into()
            }
        }),
        SystemFunction::fallible_of_client("regclass_oid", INT8, move |client, given| {
            let name = match given.first() {
                Some(Value::Text(name)) => name,
                Some(number) => return Ok(number.as_i64().map_or(Value::Null, Value::Int64)),
                None => return Ok(Value::Null),
            };
            if let Ok(oid) = name.parse::<i64>() {
                return Ok(Value::Int64(oid));
            }
            let seen = seen_by(client, &known);
            let lookup = Lookup { seen: &seen, path: &client.schemas() };
            let table = lookup.written(name).and_then(|name| seen.table(&name).ok());
            let table = table.map(|table| names::table_oid(&table).into());
            let index = || {
                let (_, index) = indexes::named(&seen, &lookup.written_index(name)?)?;
                Some(i64::from(index.number))
            };
            let identity = || {
                let identity = lookup.written_identity(name)?;
                Some(i64::from(names::identity_oid(&identity)))
            };
            let of_catalogue = name.trim_start_matches("pg_catalog.");
            let found = table.or_else(index).or_else(identity);
            match found.or_else(|| names::catalogue_oid(of_catalogue)) {
                Some(oid) => Ok(Value::Int64(oid)),
                // Tools ask for what is of catalogues that are not here, and there is nothing of them.
                None if ["pg_", "information_schema."]
                    .iter()
                    .any(|it| of_catalogue.starts_with(it)) =>
                {
                    Ok(Value::Null)
                }
                None => {
                    let message = format!("relation \"{}\" does not exist", written_name(name));
                    Err(QueryError::refused("42P01", message))
                }
            }
        }),
        // By its name, as a regclass is seen.
        SystemFunction::of_client("to_regclass", TEXT, move |client, given| {
            let Some(Value::Text(name)) = given.first() else { return Value::Null };
            let seen = seen_by(client, &looked_up);
            let lookup = Lookup { seen: &seen, path: &client.schemas() };
            let table = lookup.written(name).and_then(|name| seen.table(&name).ok());
            if let Some(table) = table {
                return seen_name(&seen, client, &table, None).into();
            }
            let index = lookup.written_index(name).and_then(|name| indexes::named(&seen, &name));
            if let Some((table, index)) = index {
                return seen_name(&seen, client, &table, Some(index.name)).into();
            }
            if let Some(identity) = lookup.written_identity(name) {
                let own = schemas::own_name(&identity.name()).to_owned();
                return seen_name(&seen, client, &identity.table, Some(own)).into();
            }
            let name = name.trim_start_matches("pg_catalog.");
            names::catalogue_oid(name).map_or(Value::Null, |_| name.to_owned().into())
        }),
    ]
}

/// The name by which a client sees a table, or one of its indexes.
fn seen_name(seen: &Seen, client: &Client, table: &onrush::Table, index: Option<String>) -> String {
    let naming = Naming::of(seen, client);
    index.map_or_else(|| naming.relation(table), |index| naming.beside(table, &index))
}

pub(super) fn number(given: &[Value<'_>], at: usize) -> Option<i64> {
    given.get(at)?.as_i64()
}

fn text(given: &[Value<'_>], at: usize) -> Value<'static> {
    match given.get(at) {
        Some(Value::Text(text)) => text.clone().into_owned().into(),
        _ => Value::Null,
    }
}
