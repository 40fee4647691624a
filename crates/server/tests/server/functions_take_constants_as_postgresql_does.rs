//! Each function of PostgreSQL, called with constants in quotes and nothing that tells their types: Onrush answers as
//! PostgreSQL does, with the value or the error, or does not have the function.

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::{World, code};
use crate::postgresql::Cluster;

/// Constants by the type that a function takes them as. Two of a type where one would not tell much.
const CONSTANTS: &[(&str, &[&str])] = &[
    ("int2", &["3", "-1"]),
    ("int4", &["2", "0"]),
    ("int8", &["5", "-3"]),
    ("float4", &["1.5"]),
    ("float8", &["2.5", "-0.5"]),
    ("numeric", &["1.25", "-7"]),
    ("text", &["abc", "x y"]),
    ("varchar", &["abd"]),
    ("bpchar", &["ab "]),
    ("name", &["nm"]),
    ("bool", &["t", "f"]),
    ("bytea", &["abc", "\\x0102"]),
    ("date", &["2024-02-29"]),
    ("time", &["12:34:56"]),
    ("timetz", &["12:34:56+02"]),
    ("timestamp", &["2024-02-29 12:34:56.5"]),
    ("timestamptz", &["2024-03-31 01:02:03+00"]),
    ("interval", &["1 mon 2 days 03:04:05", "-1 day"]),
    ("uuid", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("json", &["{\"a\":[1,2]}", "[1,null]"]),
    ("jsonb", &["{\"a\":[1,2]}", "[1,\"a\"]"]),
    ("_text", &["{a,b}", "{}"]),
    ("_int4", &["{1,2,3}"]),
    ("oid", &["25"]),
    ("char", &["c"]),
    ("jsonpath", &["$.a"]),
    ("anyarray", &["{1,2}"]),
    ("anyelement", &["1"]),
];

/// Most calls of one signature.
const CALLS_MAX: usize = 6;

/// Functions of the database itself, whose answers are those of one server only, and those whose numbers name things
/// of PostgreSQL's catalogue, as those of rights do.
const OF_ONE_SERVER: &[&str] = &[
    "acldefault",
    "current_database",
    "current_schemas",
    "format_type",
    "has_",
    "obj_description",
    "pg_",
    "to_regclass",
    "to_regtype",
    "txid_",
    "version",
];

/// Functions that differ, each with why.
const DIFFERENT: &[(&str, &str)] = &[
    ("acosh", "the last digit is that of another library"),
    ("cbrt", "the last digit is that of another library"),
    ("json_extract_path", "VARIADIC is not looked for behind a path that is no array"),
    ("json_extract_path_text", "as json_extract_path"),
    ("jsonb_extract_path", "as json_extract_path"),
    ("jsonb_extract_path_text", "as json_extract_path"),
    ("make_timestamptz", "the zone is looked at before the seconds"),
    ("overlay", "another SQLSTATE of what is out of range"),
    ("split_part", "another SQLSTATE of what is out of range"),
    ("timezone", "an interval in quotes is no zone"),
    ("to_date", "a year before 1 is not read of BC alone"),
    ("to_timestamp", "as to_date"),
];

/// PostgreSQL's functions of one row that are no operators' and give the same each time, with the types that they take.
const FUNCTIONS: &str = "SELECT p.proname, \
        (SELECT string_agg(t.typname, ' ' ORDER BY n) \
         FROM unnest(p.proargtypes) WITH ORDINALITY AS u(type, n) JOIN pg_type t ON t.oid = u.type) \
    FROM pg_proc p LEFT JOIN pg_description d \
        ON d.objoid = p.oid AND d.classoid = 'pg_proc'::regclass AND d.objsubid = 0 \
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset \
        AND p.provolatile <> 'v' AND p.pronargs > 0 \
        AND coalesce(d.description, '') NOT LIKE 'implementation of%' \
        AND coalesce(d.description, '') NOT LIKE 'I/O%' \
        AND p.prorettype <> 'internal'::regtype \
    ORDER BY 1, 2";

async fn rows(client: &Client, sql: &str) -> Vec<(String, String)> {
    let messages = client.simple_query(sql).await.unwrap();
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((row.get(0)?.to_owned(), row.get(1).unwrap_or("NULL").to_owned()))
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

/// The value of a call, or the SQLSTATE of its error.
async fn outcome(client: &Client, sql: &str) -> Result<String, String> {
    let messages = client.simple_query(sql).await.map_err(|error| code(&error))?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
        _ => None,
    });
    Ok(row.unwrap_or_default())
}

/// The calls of a function with all constants of the types that it takes, up to some; none for other types.
fn calls(name: &str, types: &str) -> Vec<String> {
    let mut calls = vec![Vec::new()];
    for wanted in types.split(' ') {
        let Some((_, constants)) = CONSTANTS.iter().find(|(own, _)| *own == wanted) else {
            return Vec::new();
        };
        let with = |call: &Vec<String>, constant: &str| {
            let constant = format!("'{}'", constant.replace('\'', "''"));
            [call.as_slice(), &[constant]].concat()
        };
        let longer = |call| constants.iter().map(move |constant| with(call, constant));
        calls = calls.iter().flat_map(longer).take(CALLS_MAX).collect();
    }
    calls.iter().map(|call| format!("SELECT \"{name}\"({})", call.join(", "))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_take_constants_as_postgresql_does() {
    let Some(cluster) = Cluster::start() else { return };
    let postgresql = cluster.client_in_new_database("constants").await;
    let world = World::new();
    let client = world.client().await;
    let (mut compared, mut differences) = (0, Vec::new());
    for (name, types) in rows(&postgresql, FUNCTIONS).await {
        let is_left_out = OF_ONE_SERVER.iter().any(|prefix| name.starts_with(prefix))
            || DIFFERENT.iter().any(|(known, _)| *known == name);
        if is_left_out {
            continue;
        }
        for sql in calls(&name, &types) {
            let given = outcome(&client, &sql).await;
            // It is not there, or is refused by name.
            if matches!(&given, Err(state) if matches!(state.as_str(), "42883" | "0A000")) {
                continue;
            }
            let right = outcome(&postgresql, &sql).await;
            compared += 1;
            if given != right {
                differences.push(format!("{sql}\n  PostgreSQL: {right:?}\n  Onrush: {given:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 400, "only {compared} calls were compared");
}
