//! `pg_type`: the types that columns can have, and those of the catalogue itself.

use onrush::{CompositeType, DataType, Database, EnumType, Row, Table, Value};
use onrush_query::{Client, ColumnType, QueryError, SystemFunction};
use postgres_types::Type;

use super::functions::number;
use super::kinds::{BOOL, CHAR, INT2, INT4, INT8, NAME, OID, REAL, TEXT, TEXTS};
use super::names::{self, Naming, OWNER_OID, PG_CATALOG_OID};
use super::roles::{self, Rights};
use super::{PG_CATALOG, SystemTable, domains, oid};
use crate::execute::seen_by;
use crate::seen::Seen;
use crate::sql::Lookup;
use crate::values;

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_type",
        columns: &[
            ("oid", OID),
            ("typname", NAME),
            ("typnamespace", OID),
            ("typowner", OID),
            ("typlen", INT2),
            ("typbyval", BOOL),
            ("typtype", CHAR),
            ("typcategory", CHAR),
            ("typispreferred", BOOL),
            ("typisdefined", BOOL),
            ("typdelim", CHAR),
            ("typrelid", OID),
            ("typelem", OID),
            ("typarray", OID),
            ("typinput", TEXT),
            ("typnotnull", BOOL),
            ("typbasetype", OID),
            ("typtypmod", INT4),
            ("typndims", INT4),
            ("typcollation", OID),
            ("typdefault", TEXT),
            ("typdefaultbin", TEXT),
            ("typacl", TEXTS),
            ("typalign", CHAR),
            ("typstorage", CHAR),
        ],
        rows: |seen, statement| {
            let known = KNOWN.iter().copied().map(Known::built_in);
            let own = seen.enum_types();
            let of_enum = |(table, of): &(Table, EnumType)| Known {
                column_type: ColumnType::Stored(DataType::Enum(*of)),
                category: "E",
                schema: names::schema_of(table),
                kind: "e",
            };
            let composites = seen.composite_types();
            let of_composite = |(table, of): &(Table, CompositeType)| Known {
                column_type: ColumnType::Stored(DataType::Composite(*of)),
                category: "C",
                schema: names::schema_of(table),
                kind: "c",
            };
            let all = known.clone().chain(own.iter().map(of_enum));
            let all = all.chain(composites.iter().map(of_composite));
            let arrays: Vec<Known> = all.filter_map(|of| of.array()).collect();
            let (naming, rights) = (Naming::of(seen, &statement.client), Rights::of(seen));
            let domain = |domain: Table| {
                let over = domains::value(&domain).data_type;
                let row = domains::type_row(&naming, &domain, row(Known::of(over)));
                with_rights(&rights, &domain, row)
            };
            let domains = seen.domains().into_iter().map(domain);
            let enums = own.iter().map(|it| with_rights(&rights, &it.0, row(of_enum(it))));
            let composites = composites.iter().map(|it| {
                let mut row = row(of_composite(it));
                if let Some(at) = position("typrelid") {
                    row[at] = oid(names::table_oid(&it.0));
                }
                with_rights(&rights, &it.0, row)
            });
            let own = enums.chain(composites);
            known.map(row).chain(own).chain(arrays.into_iter().map(row)).chain(domains).collect()
        },
    },
    SystemTable {
        schema: PG_CATALOG,
        name: "pg_enum",
        columns: &[("oid", OID), ("enumtypid", OID), ("enumsortorder", REAL), ("enumlabel", NAME)],
        rows: |seen, _| {
            let of_type = |(table, of): (Table, EnumType)| labels(&table, of);
            seen.enum_types().into_iter().flat_map(of_type).collect()
        },
    },
];

/// A row of `pg_type` with the owner of a type of users, and what was granted on it.
fn with_rights(rights: &Rights, of: &Table, mut row: Row) -> Row {
    let owner = oid(roles::owner_oid(rights.owner(of)));
    for (name, other) in [("typowner", owner), ("typacl", rights.on(of))] {
        if let Some(at) = position(name) {
            row[at] = other;
        }
    }
    row
}

/// Where a column stands in `pg_type`.
pub(super) fn position(column: &str) -> Option<usize> {
    ALL[0].columns.iter().position(|(name, _)| *name == column)
}

/// The functions that ask for types.
pub(super) fn functions(database: &Database) -> Vec<SystemFunction> {
    let of_client =
        |name, returns, call: fn(&Seen, &Client, &[Value<'_>]) -> Option<Value<'static>>| {
            let database = database.clone();
            SystemFunction::of_client(name, returns, move |client, given| {
                call(&seen_by(client, &database), client, given).unwrap_or(Value::Null)
            })
        };
    vec![
        of_client("format_type", TEXT, |seen, client, given| {
            let (naming, modifier) = (Naming::of(seen, client), number(given, 1).unwrap_or(-1));
            names::type_with(&naming, number(given, 0)?, modifier).map(Value::from)
        }),
        of_client("to_regtype", INT8, |seen, client, given| {
            let Some(Value::Text(name)) = given.first() else { return None };
            Some(Value::Int64(number_of(seen, client, name)?.into()))
        }),
        regtype_name(database.clone()),
    ]
}

/// The name of a type that is given by its number, or by any name that it has.
fn regtype_name(database: Database) -> SystemFunction {
    SystemFunction::fallible_of_client("regtype_name", TEXT, move |client, given| {
        let seen = seen_by(client, &database);
        let named = |number| {
            let named = names::type_with(&Naming::of(&seen, client), number, -1);
            Ok(named.map_or("-".into(), Value::from))
        };
        match given.first() {
            Some(Value::Text(name)) => match name.parse::<i64>() {
                Ok(number) => named(number),
                Err(_) => match number_of(&seen, client, name) {
                    Some(number) => named(number.into()),
                    None => {
                        let message = format!("type \"{}\" does not exist", name.trim());
                        Err(QueryError::refused("42704", message))
                    }
                },
            },
            _ => number(given, 0).map_or(Ok(Value::Null), named),
        }
    })
}

/// The number of the type of this name: one of those that were made here, in quotes as `pg_type` has it, or as SQL
/// writes it.
fn number_of(seen: &Seen, client: &Client, name: &str) -> Option<u32> {
    let lookup = Lookup { seen, path: &client.schemas() };
    if let Some(own) = lookup.written_own_type(name) {
        return Some(names::table_oid(&own));
    }
    let plain = name.trim();
    let plain = plain.strip_prefix("pg_catalog.").unwrap_or(plain);
    let quoted = plain.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let in_catalogue = |wanted: &str| {
        let numbers = KNOWN.iter().map(|(column_type, _)| values::oid_of(*column_type));
        numbers
            .into_iter()
            .find(|number| Type::from_oid(*number).is_some_and(|known| known.name() == wanted))
    };
    match quoted {
        Some(exact) => in_catalogue(exact),
        None => {
            let written = plain.parse::<DataType>().ok().map(values::oid_of);
            written.or_else(|| in_catalogue(&plain.to_ascii_lowercase()))
        }
    }
}

/// Rows of `pg_enum`.
fn labels(table: &Table, of: EnumType) -> Vec<Row> {
    let row = |(position, (_, label)): (u16, (u32, &str))| {
        vec![
            oid(names::constraint_oid(table, label)),
            oid(names::table_oid(table)),
            Value::Float32(f32::from(position)),
            label.to_owned().into(),
        ]
    };
    (1..).zip(of.labels().iter()).map(row).collect()
}

/// A row of `pg_type`.
#[derive(Clone, Copy)]
struct Known {
    column_type: ColumnType,
    /// The letter of its category.
    category: &'static str,
    schema: u32,
    kind: &'static str,
}

impl Known {
    fn built_in((column_type, category): (ColumnType, &'static str)) -> Known {
        Known { column_type, category, schema: PG_CATALOG_OID, kind: "b" }
    }

    /// A type of a column, whose category is that of its kind.
    fn of(data_type: DataType) -> Known {
        let column_type = ColumnType::from(data_type);
        let number = values::oid_of(column_type);
        let known = KNOWN.iter().find(|(known, _)| values::oid_of(*known) == number);
        let category = match data_type {
            DataType::Array(_) => "A",
            DataType::Enum(_) => "E",
            DataType::Composite(_) => "C",
            _ => known.map_or("U", |(_, category)| category),
        };
        Known::built_in((column_type, category))
    }

    fn array(&self) -> Option<Known> {
        let column_type = array_of(self.column_type)?;
        Some(Known { column_type, category: "A", kind: "b", ..*self })
    }
}

/// Each with the letter of its category.
const KNOWN: &[(ColumnType, &str)] = &[
    (ColumnType::Stored(DataType::Boolean), "B"),
    (ColumnType::Stored(DataType::Bytes), "U"),
    (ColumnType::Char, "Z"),
    (ColumnType::Stored(DataType::Name), "S"),
    (ColumnType::Stored(DataType::Int64), "N"),
    (ColumnType::Stored(DataType::Int16), "N"),
    (ColumnType::Stored(DataType::Int32), "N"),
    (ColumnType::Stored(DataType::Text), "S"),
    (ColumnType::Stored(DataType::Oid), "N"),
    (ColumnType::Stored(DataType::Float32), "N"),
    (ColumnType::Stored(DataType::Float64), "N"),
    (ColumnType::Stored(DataType::Char(1)), "S"),
    (ColumnType::Stored(DataType::Varchar(1)), "S"),
    (ColumnType::Stored(DataType::Date), "D"),
    (ColumnType::Stored(DataType::Time), "D"),
    (ColumnType::Stored(DataType::TimeTz), "D"),
    (ColumnType::Stored(DataType::Timestamp), "D"),
    (ColumnType::Stored(DataType::TimestampTz), "D"),
    (ColumnType::Stored(DataType::Interval), "T"),
    (ColumnType::Stored(DataType::Numeric(None)), "N"),
    (ColumnType::Stored(DataType::Uuid), "U"),
    (ColumnType::Stored(DataType::Inet), "I"),
    (ColumnType::Stored(DataType::Cidr), "I"),
    (ColumnType::Stored(DataType::MacAddress), "U"),
    (ColumnType::Stored(DataType::Json), "U"),
    (ColumnType::Stored(DataType::Jsonb), "U"),
];

fn array_of(column_type: ColumnType) -> Option<ColumnType> {
    match column_type {
        ColumnType::Stored(data_type) => Some(ColumnType::Array(data_type)),
        _ => None,
    }
}

fn row(Known { column_type, category, schema, kind }: Known) -> Row {
    let wire = values::wire_type(column_type);
    let (number, name) = (wire.oid(), wire.name().to_owned());
    let size = values::type_size(column_type);
    let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
    let is_text = category == "S";
    let element = match column_type {
        ColumnType::Array(element) => values::oid_of(element),
        _ => 0,
    };
    vec![
        oid(number),
        name.clone().into(),
        oid(schema),
        oid(OWNER_OID),
        Value::Int16(size),
        Value::Boolean((1..=8).contains(&size)),
        kind.into(),
        category.into(),
        Value::Boolean(matches!(
            name.as_str(),
            "bool" | "float8" | "oid" | "text" | "timestamptz" | "interval" | "inet"
        )),
        yes,
        ",".into(),
        oid(0),
        oid(element),
        oid(array_of(column_type).map_or(0, values::oid_of)),
        match (element, kind) {
            (0, "e") => "enum_in".into(),
            (0, "c") => "record_in".into(),
            (0, _) => format!("{name}in").into(),
            _ => "array_in".into(),
        },
        no,
        oid(0),
        Value::Int32(-1),
        Value::Int32(0),
        oid(if is_text { 100 } else { 0 }),
        Value::Null,
        Value::Null,
        Value::Null,
        match size {
            1 => "c".into(),
            2 => "s".into(),
            8 => "d".into(),
            _ => "i".into(),
        },
        if size < 0 { "x".into() } else { "p".into() },
    ]
}
