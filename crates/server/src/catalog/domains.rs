//! What the catalogue tells of domains, in `pg_type`, `pg_constraint` and `information_schema`.

use onrush::{CheckConstraint, ColumnDefinition, DataType, Row, Table, Value};
use onrush_query::{ColumnType, Statement};

use super::kinds::{INT4, NAME, TEXT};
use super::names::{self, Naming};
use super::{INFORMATION_SCHEMA, SystemTable, information, oid};
use crate::seen::Seen;
use crate::sql::check_as_shown;
use crate::{schemas, values};

pub(super) const ALL: &[SystemTable] = &[
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "domains",
        columns: &[
            ("domain_catalog", NAME),
            ("domain_schema", NAME),
            ("domain_name", NAME),
            ("data_type", TEXT),
            ("character_maximum_length", INT4),
            ("numeric_precision", INT4),
            ("numeric_scale", INT4),
            ("datetime_precision", INT4),
            ("interval_type", TEXT),
            ("domain_default", TEXT),
            ("udt_name", NAME),
        ],
        rows: |seen, statement| {
            let row = |domain: &Table| domain_row(seen, domain, statement);
            seen.domains().iter().map(row).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "domain_constraints",
        columns: &[
            ("constraint_catalog", NAME),
            ("constraint_schema", NAME),
            ("constraint_name", NAME),
            ("domain_catalog", NAME),
            ("domain_schema", NAME),
            ("domain_name", NAME),
            ("is_deferrable", TEXT),
            ("initially_deferred", TEXT),
        ],
        rows: |seen, statement| {
            let rows = |domain: Table| -> Vec<Row> {
                let row = |check: &CheckConstraint| {
                    let mut row = information::constraint(&domain, check.name.clone(), statement);
                    row.extend(information::place(&domain, statement));
                    row.extend(["NO".into(), "NO".into()]);
                    row
                };
                domain.definition().checks().iter().map(row).collect()
            };
            seen.domains().into_iter().flat_map(rows).collect()
        },
    },
    SystemTable {
        schema: INFORMATION_SCHEMA,
        name: "column_domain_usage",
        columns: &[
            ("domain_catalog", NAME),
            ("domain_schema", NAME),
            ("domain_name", NAME),
            ("table_catalog", NAME),
            ("table_schema", NAME),
            ("table_name", NAME),
            ("column_name", NAME),
        ],
        rows: |seen, statement| {
            let rows = |table: Table| -> Vec<Row> {
                let row = |column: &ColumnDefinition| {
                    let domain = seen.numbered(column.domain.as_ref()?.number)?;
                    let mut row = information::place(&domain, statement);
                    row.extend(information::place(&table, statement));
                    row.push(column.name.clone().into());
                    Some(row)
                };
                table.definition().columns().iter().filter_map(row).collect()
            };
            seen.tables().into_iter().flat_map(rows).collect()
        },
    },
];

/// The column that tells what the values of a domain are.
pub(super) fn value(domain: &Table) -> &ColumnDefinition {
    &domain.definition().columns()[0]
}

/// Whether a domain itself, whatever it is over, refuses NULL.
pub(super) fn refuses_null(domain: &Table) -> bool {
    !value(domain).nullable
}

/// The domain that a domain is over; none if that is another type.
pub(super) fn over(seen: &Seen, domain: &Table) -> Option<Table> {
    seen.numbered(value(domain).domain.as_ref()?.number)
}

fn domain_row(seen: &Seen, domain: &Table, statement: &Statement) -> Row {
    let naming = Naming::of(seen, &statement.client);
    let value = value(domain);
    let column_type = ColumnType::from(value.data_type);
    let mut row = information::place(domain, statement);
    let over = over(seen, domain);
    let plain = || information::type_columns(column_type);
    row.extend(over.as_ref().map_or_else(plain, |_| information::of_user()));
    row.push(names::default_of(&naming, value).map_or(Value::Null, Value::from));
    let plain = || names::udt_name(column_type);
    row.push(over.map_or_else(plain, |over| information::own_name(&over)).into());
    row
}

/// What a domain's row of `pg_type` has otherwise than that of the type that it is over.
pub(super) fn type_row(naming: &Naming<'_>, domain: &Table, mut row: Row) -> Row {
    let value = value(domain);
    let (base, modifier) = match &value.domain {
        Some(of) => (names::oid_of(of.number), -1),
        None => (values::oid_of(value.data_type), values::type_modifier(value.data_type.into())),
    };
    let is_array = matches!(value.data_type, DataType::Array(_));
    let default = names::default_of(naming, value).map_or(Value::Null, Value::from);
    let own = schemas::own_name(domain.name()).to_owned();
    for (name, other) in [
        ("oid", oid(names::table_oid(domain))),
        ("typname", own.into()),
        ("typnamespace", oid(names::schema_of(domain))),
        ("typtype", "d".into()),
        ("typispreferred", Value::Boolean(false)),
        ("typelem", oid(0)),
        ("typarray", oid(0)),
        ("typinput", "domain_in".into()),
        ("typnotnull", Value::Boolean(!value.nullable)),
        ("typbasetype", oid(base)),
        ("typtypmod", Value::Int32(modifier)),
        ("typndims", Value::Int32(i32::from(is_array))),
        ("typdefault", default.clone()),
        ("typdefaultbin", default),
    ] {
        if let Some(at) = super::types::position(name) {
            row[at] = other;
        }
    }
    row
}

/// Rows of `pg_constraint`: the checks of a domain.
pub(super) fn constraints(domain: &Table) -> Vec<Row> {
    let row = |check: &CheckConstraint| {
        let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
        vec![
            oid(names::constraint_oid(domain, &check.name)),
            check.name.clone().into(),
            oid(names::schema_of(domain)),
            "c".into(),
            no.clone(),
            no,
            Value::Boolean(is_validated(domain, &check.name)),
            oid(0),
            oid(names::table_oid(domain)),
            oid(0),
            oid(0),
            oid(0),
            " ".into(),
            " ".into(),
            " ".into(),
            yes,
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    };
    domain.definition().checks().iter().map(row).collect()
}

fn is_validated(domain: &Table, check: &str) -> bool {
    let domain = domain.definition().domain();
    domain.is_none_or(|domain| domain.unvalidated.iter().all(|name| name != check))
}

/// The definition of the check of a domain with a number, as `pg_get_constraintdef` shows it.
pub(super) fn constraint_with(seen: &Seen, number: i64, is_pretty: bool) -> Option<String> {
    seen.domains().iter().find_map(|domain| {
        let mut checks = domain.definition().checks().iter();
        let is_it = |check: &&CheckConstraint| {
            i64::from(names::constraint_oid(domain, &check.name)) == number
        };
        let check = checks.find(is_it)?;
        let shown = check_as_shown(domain.definition(), check, is_pretty);
        let suffix = if is_validated(domain, &check.name) { "" } else { " NOT VALID" };
        Some(format!("{shown}{suffix}"))
    })
}
