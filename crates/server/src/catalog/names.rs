//! Numbers and names of things.

use onrush::{
    CheckConstraint, ColumnDefinition, DataType, DefaultValue, KeyStrategy, Numeric, Table,
    TableDefinition, Value,
};
use onrush_query::{Client, ColumnType};
use postgres_types::{Kind, Type};

use super::indexes::{self, Index};
use super::{domains, foreign_keys};
use crate::seen::Seen;
use crate::sequences::Identity;
use crate::sql::{self, Lookup, check_as_shown, is_plain};
use crate::values;
use crate::{own_types, schemas};

/// `pg_catalog` itself.
pub(super) const PG_CATALOG_OID: u32 = 11;
/// `pg_class` in itself.
pub(super) const PG_CLASS_OID: u32 = 1259;
/// `pg_type` in it.
pub(super) const PG_TYPE_OID: u32 = 1247;
/// `pg_attrdef` in `pg_class`.
pub(super) const PG_ATTRDEF_OID: u32 = 2604;
/// `pg_rewrite` in `pg_class`.
pub(super) const PG_REWRITE_OID: u32 = 2618;
/// `pg_namespace` in `pg_class`.
pub(super) const PG_NAMESPACE_OID: u32 = 2615;
/// `pg_constraint` in it.
pub(super) const PG_CONSTRAINT_OID: u32 = 2606;
/// `public`.
const PUBLIC_OID: u32 = 2200;
/// `information_schema`.
const INFORMATION_OID: u32 = 13_000;
/// `onrush`, the schema of the system views.
const ONRUSH_OID: u32 = 13_001;
/// Whom everything belongs to; roles have rights, and own nothing.
pub(super) const OWNER_OID: u32 = 10;
/// The role that owns the schema `public` until that is given to another: whoever owns the database.
pub(super) const DATABASE_OWNER_OID: u32 = 6171;
/// Its name.
pub(crate) const DATABASE_OWNER: &str = "pg_database_owner";
/// What the owner is called.
pub(crate) const OWNER: &str = "onrush";
/// The only database.
pub(super) const DATABASE_OID: u32 = 5;
/// Where everything is.
pub(super) const TABLESPACE_OID: u32 = 1663;
/// How the rows of tables are kept.
pub(super) const ACCESS_METHOD_OID: u32 = 2;
/// How keys are found.
pub(super) const BTREE_OID: u32 = 403;
/// The schemas that are always there.
const BUILTIN: [(u32, &str); 4] = [
    (PG_CATALOG_OID, super::PG_CATALOG),
    (PUBLIC_OID, schemas::PUBLIC),
    (INFORMATION_OID, super::INFORMATION_SCHEMA),
    (ONRUSH_OID, crate::sql::SYSTEM_SCHEMA),
];
/// Numbers from here on are those of tables.
const FIRST_OID: u32 = 16_384;

/// The number of a table.
pub(super) fn table_oid(table: &Table) -> u32 {
    oid_of(table.id())
}

/// The number of the table that the engine knows by this one.
pub(crate) fn oid_of(number: u32) -> u32 {
    FIRST_OID + 2 * number
}

/// By which number the engine knows the table with this one.
pub(crate) fn number_of(oid: i64) -> Option<u32> {
    let number = u32::try_from(oid).ok()?.checked_sub(FIRST_OID)?;
    (number % 2 == 0).then_some(number / 2)
}

/// The number of an index, by that of the table of its entries.
pub(super) fn entries_oid(entries: u32) -> u32 {
    FIRST_OID + 2 * entries
}

/// The number of its primary key.
pub(super) fn key_oid(table: &Table) -> u32 {
    table_oid(table) + 1
}

/// The tables of the catalogue, with PostgreSQL's numbers: by those others name them.
const CATALOGUE: [(&str, u32); 47] = [
    ("pg_default_acl", 826),
    ("pg_tablespace", 1213),
    ("pg_type", PG_TYPE_OID),
    ("pg_attribute", 1249),
    ("pg_proc", 1255),
    ("pg_class", PG_CLASS_OID),
    ("pg_auth_members", 1261),
    ("pg_database", 1262),
    ("pg_foreign_server", 1417),
    ("pg_sequence", 2224),
    ("pg_foreign_data_wrapper", 2328),
    ("pg_shdescription", 2396),
    ("pg_am", 2601),
    ("pg_amop", 2602),
    ("pg_amproc", 2603),
    ("pg_attrdef", PG_ATTRDEF_OID),
    ("pg_cast", 2605),
    ("pg_constraint", PG_CONSTRAINT_OID),
    ("pg_conversion", 2607),
    ("pg_depend", 2608),
    ("pg_description", 2609),
    ("pg_index", 2610),
    ("pg_inherits", 2611),
    ("pg_language", 2612),
    ("pg_namespace", PG_NAMESPACE_OID),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_rewrite", PG_REWRITE_OID),
    ("pg_trigger", 2620),
    ("pg_opfamily", 2753),
    ("pg_largeobject_metadata", 2995),
    ("pg_extension", 3079),
    ("pg_foreign_table", 3118),
    ("pg_policy", 3256),
    ("pg_partitioned_table", 3350),
    ("pg_statistic_ext", 3381),
    ("pg_init_privs", 3394),
    ("pg_event_trigger", 3466),
    ("pg_enum", 3501),
    ("pg_range", 3541),
    ("pg_transform", 3576),
    ("pg_ts_dict", 3600),
    ("pg_ts_parser", 3601),
    ("pg_ts_config", 3602),
    ("pg_ts_template", 3764),
    ("pg_subscription", 6100),
    ("pg_publication", 6104),
];

/// The number of such a table.
pub(super) fn catalogue_oid(name: &str) -> Option<i64> {
    CATALOGUE.into_iter().find(|(known, _)| *known == name).map(|(_, number)| number.into())
}

/// The name of such a table.
pub(super) fn catalogue_name(oid: i64) -> Option<&'static str> {
    CATALOGUE.into_iter().find(|(_, number)| i64::from(*number) == oid).map(|(name, _)| name)
}

/// The number of a role, made of its name.
pub(super) fn role_oid(name: &str) -> u32 {
    hashed_oid(1 << 30, name)
}

/// The number of a CHECK constraint or a foreign key, made of its name and its table's number.
pub(super) fn constraint_oid(table: &Table, name: &str) -> u32 {
    hashed_oid(1 << 29, &format!("{} {name}", table.id()))
}

/// The number of the default of a column, made of its number and that of its table.
pub(super) fn default_oid(table: &Table, position: usize) -> u32 {
    let number = table.definition().column_number(position);
    hashed_oid(1 << 26, &format!("{} {number}", table.id()))
}

/// The number of what a role's things of a kind are granted in a schema, made of their numbers.
pub(super) fn default_grants_oid(owner: &str, schema: u32, kind: &str) -> u32 {
    hashed_oid(1 << 25, &format!("{owner} {schema} {kind}"))
}

/// The number of the rule that a view is.
pub(super) fn rule_oid(view: &Table) -> u32 {
    table_oid(view) + 1
}

/// The number of a schema.
pub(super) fn schema_oid(name: &str) -> u32 {
    let known = BUILTIN.into_iter().find(|(_, known)| *known == name);
    known.map_or_else(|| hashed_oid(1 << 28, name), |(number, _)| number)
}

/// The number of the schema that a table is in.
pub(super) fn schema_of(table: &Table) -> u32 {
    schema_oid(schemas::parts(table.name()).0)
}

/// Whether a schema is always there, for everyone.
pub(super) fn is_built_in(name: &str) -> bool {
    BUILTIN.iter().any(|(_, known)| *known == name)
}

/// All schemas, by number. That of the system's views is none that a dump should make again.
pub(super) fn all_schemas(seen: &Seen) -> Vec<(u32, String)> {
    let builtin = BUILTIN.into_iter().filter(|(number, _)| *number != ONRUSH_OID);
    let builtin = builtin.map(|(number, name)| (number, name.to_owned()));
    // Of a database that has stopped nothing is told.
    let made = schemas::all(seen).unwrap_or_default().into_iter();
    builtin.chain(made.map(|name| (schema_oid(&name), name))).collect()
}

/// Whether it is a client's own.
pub(super) fn is_temporary(table: &Table) -> bool {
    schemas::has_temporary(table.name())
}

/// Whether a table is what its name alone means.
pub(super) fn is_visible(seen: &Seen, path: &[String], table: &Table) -> bool {
    let lookup = Lookup { seen, path };
    lookup.on_path(schemas::own_name(table.name())) == table.name()
}

/// What things are called by a client: with their schema in front where their name alone means something else.
pub(super) struct Naming<'s> {
    pub(super) seen: &'s Seen,
    path: Vec<String>,
}

impl Naming<'_> {
    pub(super) fn of<'s>(seen: &'s Seen, client: &Client) -> Naming<'s> {
        Naming { seen, path: client.schemas() }
    }

    pub(super) fn relation(&self, table: &Table) -> String {
        self.beside(table, schemas::own_name(table.name()))
    }

    /// What stands in the schema of a table and is found with it: the table, or an index of it.
    pub(super) fn beside(&self, table: &Table, own: &str) -> String {
        let (schema, _) = schemas::parts(table.name());
        match is_visible(self.seen, &self.path, table) {
            true => quoted(own),
            false => format!("{}.{}", quoted(schema), quoted(own)),
        }
    }

    pub(super) fn data_type(&self, data_type: DataType) -> String {
        self.column_type(data_type.into())
    }

    fn column_type(&self, column_type: ColumnType) -> String {
        let own = |number: u32| self.seen.numbered(number).map(|table| self.relation(&table));
        let number = own_types::number_of_values(column_type);
        let found = match (number.and_then(own), column_type) {
            (Some(own), ColumnType::Array(_)) => Some(own + "[]"),
            (found, _) => found,
        };
        found.unwrap_or_else(|| values::name_of(column_type))
    }
}

/// A number from `first` on, a power of two, and below its double.
fn hashed_oid(first: u32, name: &str) -> u32 {
    let hash = xxhash_rust::xxh3::xxh3_64(name.as_bytes());
    first | u32::try_from(hash & u64::from(first - 1)).unwrap_or(0)
}

/// Whether it was made with a primary key.
pub(super) fn has_key(table: &Table) -> bool {
    table.definition().row_id().is_none()
}

/// Positions of the columns of its primary key; none if it was made without one.
pub(super) fn key(table: &Table) -> &[usize] {
    if has_key(table) { table.definition().primary_key() } else { &[] }
}

/// The name of its primary key.
pub(super) fn key_name(table: &Table) -> String {
    schemas::key_name(table.definition()).unwrap_or_default()
}

/// The table with a number, or with a primary key or an index of that number.
pub(crate) fn table_with(seen: &Seen, oid: i64) -> Option<Table> {
    // Two numbers are a table's, so that most are found without looking at all tables.
    let number = u32::try_from(oid).ok()?.checked_sub(FIRST_OID)?;
    let own = seen.numbered(number / 2).filter(|table| !table.definition().is_type());
    match own {
        Some(table) if number % 2 == 0 || has_key(&table) => Some(table),
        _ if number % 2 == 0 => {
            let mut tables = seen.relations().into_iter();
            tables.find(|table| {
                let mut indexes = table.definition().indexes().iter();
                indexes.any(|index| i64::from(entries_oid(index.entries)) == oid)
            })
        }
        _ => None,
    }
}

/// The number of the sequence that an identity is shown as, made of its table's number and its column's.
pub(super) fn identity_oid(identity: &Identity) -> u32 {
    hashed_oid(1 << 27, &format!("{} {}", identity.table.id(), identity.number()))
}

/// The identity column whose sequence has a number.
pub(crate) fn identity_with(seen: &Seen, oid: i64) -> Option<Identity> {
    if !(1 << 27..1 << 28).contains(&oid) {
        return None;
    }
    let is_it = |identity: &Identity| i64::from(identity_oid(identity)) == oid;
    seen.tables().iter().flat_map(Identity::all).find(is_it)
}

/// The definition of the constraint with a number, as `pg_get_constraintdef` shows it; `shown` is what a table is
/// called.
pub(super) fn constraint_with(
    seen: &Seen,
    oid: i64,
    is_pretty: bool,
    shown: impl Fn(&Table) -> String,
) -> Option<String> {
    let is_foreign = |key: &foreign_keys::Key| i64::from(key.number()) == oid;
    if let Some(key) = foreign_keys::all(seen).into_iter().find(is_foreign) {
        return Some(key.shown(&shown(&key.referenced)));
    }
    let of_table = seen.tables().iter().find_map(|table| {
        let is_made_for = |index: &&Index| index.constraint.is_some_and(|it| i64::from(it) == oid);
        if let Some(index) = indexes::all(table).iter().find(is_made_for) {
            return Some(index.constraint_definition(table));
        }
        let definition = table.definition();
        let is_it = |check: &&CheckConstraint| i64::from(constraint_oid(table, &check.name)) == oid;
        let check = definition.checks().iter().find(is_it)?;
        let not_valid = if check.is_validated { "" } else { " NOT VALID" };
        Some(format!("{}{not_valid}", check_as_shown(definition, check, is_pretty)))
    });
    of_table.or_else(|| domains::constraint_with(seen, oid, is_pretty))
}

/// A schema's name.
pub(super) fn schema_name(seen: &Seen, oid: i64) -> Option<String> {
    let mut known = all_schemas(seen).into_iter();
    known.find(|(known, _)| i64::from(*known) == oid).map(|(_, name)| name)
}

/// The enumerated or composite type with a number, or the arrays of one.
pub(crate) fn own_type_with(seen: &Seen, oid: u32) -> Option<ColumnType> {
    let of = |oid: u32| own_types::of_table(&seen.numbered(number_of(oid.into())?)?);
    let own = of(oid).map(ColumnType::Stored);
    own.or_else(|| of(oid.checked_sub(1)?).map(ColumnType::Array))
}

/// `format_type`: a type by number and modifier.
pub(super) fn type_with(naming: &Naming<'_>, oid: i64, modifier: i64) -> Option<String> {
    let oid = u32::try_from(oid).ok()?;
    if let Some(own) = own_type_with(naming.seen, oid) {
        return Some(naming.column_type(own));
    }
    let domain = number_of(oid.into()).and_then(|number| naming.seen.numbered(number));
    if let Some(domain) = domain.filter(|table| table.definition().domain().is_some()) {
        return Some(naming.relation(&domain));
    }
    let known = Type::from_oid(oid)?;
    if let Kind::Array(element) = known.kind() {
        return type_with(naming, element.oid().into(), modifier).map(|element| element + "[]");
    }
    let plain = match known {
        Type::OID => "oid".to_owned(),
        Type::NAME => "name".to_owned(),
        Type::CHAR => "\"char\"".to_owned(),
        Type::VARCHAR => "character varying".to_owned(),
        Type::BPCHAR => "character".to_owned(),
        Type::NUMERIC => "numeric".to_owned(),
        known => match values::column_type_of(oid) {
            Some(ColumnType::Stored(data_type)) => values::type_name(data_type),
            _ => known.name().to_owned(),
        },
    };
    if modifier >= 0
        && let Some(ColumnType::Stored(data_type)) = values::column_type_of(oid)
        && let Some(rounded) = values::with_modifier(data_type, modifier)
    {
        return Some(values::type_name(rounded));
    }
    if modifier < 4 {
        return Some(plain);
    }
    let modifier = modifier - 4;
    Some(match Type::from_oid(oid)? {
        Type::NUMERIC => {
            let scale = ((modifier & 0x7FF) ^ 0x400) - 0x400;
            format!("numeric({},{scale})", modifier >> 16 & 0xFFFF)
        }
        Type::VARCHAR | Type::BPCHAR => format!("{plain}({modifier})"),
        _ => plain,
    })
}

/// What PostgreSQL calls a type inside.
pub(super) fn udt_name(column_type: ColumnType) -> String {
    values::wire_type(column_type).name().to_owned()
}

/// A column's own default as SQL; none where there is none, or where it is an identity.
pub(super) fn default_of(naming: &Naming<'_>, column: &ColumnDefinition) -> Option<String> {
    if column.domain.as_ref().is_some_and(|domain| domain.gives_default) {
        return None;
    }
    match &column.default {
        DefaultValue::None
        | DefaultValue::Generated(_)
        | DefaultValue::Key(KeyStrategy::Identity { .. }) => None,
        DefaultValue::Now => Some("now()".to_owned()),
        DefaultValue::Expression(computed) => {
            let shown = super::sequences::shown(naming, &computed.expression);
            Some(shown.unwrap_or_else(|| format!("({})", computed.expression)))
        }
        DefaultValue::Key(KeyStrategy::UuidV4) => Some("gen_random_uuid()".to_owned()),
        DefaultValue::Key(KeyStrategy::UuidV7) => Some("uuidv7()".to_owned()),
        DefaultValue::Key(strategy) => {
            let written = strategy.to_string().replace('-', "_");
            Some(if written.contains('(') { written } else { format!("{written}()") })
        }
        DefaultValue::Constant(value) => Some(constant(naming, value, column.data_type)),
    }
}

/// What a column is computed of; none if it is not.
pub(super) fn generated_as(definition: &TableDefinition, column: usize) -> Option<String> {
    match &definition.columns()[column].default {
        DefaultValue::Generated(generated) => {
            Some(sql::expression_as_shown(definition, &generated.expression, false))
        }
        _ => None,
    }
}

fn constant(naming: &Naming<'_>, value: &Value<'_>, data_type: DataType) -> String {
    let plain = || match data_type {
        DataType::Char(_) => "bpchar".to_owned(),
        DataType::Varchar(_) => "character varying".to_owned(),
        DataType::Decimal { .. } | DataType::Numeric(_) => "numeric".to_owned(),
        other => naming.data_type(other.unrounded()),
    };
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Int16(_)
        | Value::Int32(_)
        | Value::Int64(_)
        | Value::Decimal(_)
        | Value::Numeric(Numeric::Finite(..)) => value.to_string(),
        Value::Text(text) => format!("'{}'::{}", text.replace('\'', "''"), plain()),
        other => format!("'{other}'::{}", plain()),
    }
}

/// The number of a column, from 1, among those that SQL shows.
pub(super) fn column_number(table: &TableDefinition, position: usize) -> i16 {
    let before = table.shown_columns().take_while(|column| *column < position).count();
    i16::try_from(before + 1).unwrap_or(i16::MAX)
}

/// The column with a number.
pub(super) fn column_with_number(table: &TableDefinition, number: i64) -> Option<usize> {
    table.shown_columns().nth(usize::try_from(number).ok()?.checked_sub(1)?)
}

/// Whether the column is an identity.
pub(crate) fn is_identity(column: &ColumnDefinition) -> bool {
    matches!(column.default, DefaultValue::Key(KeyStrategy::Identity { .. }))
}

/// A name as it stands in SQL.
pub(crate) fn quoted(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
