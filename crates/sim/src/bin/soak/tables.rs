//! The tables of the soak, one for each kind of key, and the bytes of their rows.
//!
//! Every row says who wrote it, with which number, and which operation changed it last; the filling
//! follows from these, so that a row shows by itself whether it is whole.

use anyhow::{Context, Result, bail, ensure};
use onrush::{
    ColumnDefinition, DataType, Database, KeyStrategy, Options, Row, Table, TableDefinition, Uuid,
    Value,
};
use onrush_sim::Random;

use super::model::{Change, Live};

/// A table, by the kind of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Identity values of the engine.
    Ascending,
    /// Random UUIDs of the engine.
    Random,
    /// UUIDs of the engine that ascend with the clock.
    ByTime,
    /// Two columns, chosen by the client: session and number.
    Chosen,
    /// Text, chosen by the client, in no order.
    Named,
    /// Filled and truncated, by one session alone.
    Scratch,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] =
        [Kind::Ascending, Kind::Random, Kind::ByTime, Kind::Chosen, Kind::Named, Kind::Scratch];
    /// Those that all sessions use.
    pub(crate) const SHARED: usize = 5;

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ascending => "ascending",
            Kind::Random => "random",
            Kind::ByTime => "by_time",
            Kind::Chosen => "chosen",
            Kind::Named => "named",
            Kind::Scratch => "scratch",
        }
    }

    fn definition(self) -> Result<TableDefinition> {
        let whole = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
        let generated = |data_type, strategy| {
            ColumnDefinition::new("id", data_type).not_null().default_key(strategy)
        };
        let id = match self {
            Kind::Ascending => {
                Some(generated(DataType::Int64, KeyStrategy::Identity { start: 1, strict: false }))
            }
            Kind::Random => Some(generated(DataType::Uuid, KeyStrategy::UuidV4)),
            Kind::ByTime => Some(generated(DataType::Uuid, KeyStrategy::UuidV7)),
            Kind::Chosen => None,
            Kind::Named => Some(ColumnDefinition::new("id", DataType::Varchar(60)).not_null()),
            Kind::Scratch => Some(generated(DataType::Int64, KeyStrategy::SessionOffset)),
        };
        let builder = TableDefinition::builder(self.name())
            .column(whole("session"))
            .column(whole("number"))
            .column(whole("version"))
            .column(ColumnDefinition::new("filling", DataType::Bytes).not_null());
        let builder = match id {
            Some(id) => builder.column(id).primary_key(["id"]),
            None => builder.primary_key(["session", "number"]),
        };
        Ok(builder.build()?)
    }
}

/// Opens the database, or makes it, with all tables.
pub(crate) fn open(folder: &std::path::Path, options: &Options) -> Result<(Database, Vec<Table>)> {
    let database = Database::open_or_create(folder, options.clone())
        .with_context(|| format!("open {}", folder.display()))?;
    let mut tables = Vec::new();
    for kind in Kind::ALL {
        let table = match database.table(kind.name()) {
            Err(onrush::Error::UnknownTable { .. }) => database.create_table(kind.definition()?)?,
            table => table?,
        };
        tables.push(table);
    }
    Ok((database, tables))
}

/// The bytes in which a row's filling lies: between 20 and 399 of them.
pub(crate) fn filling(session: u64, live: Live) -> Vec<u8> {
    let mut random = Random::for_part(live.number ^ (session << 56), live.version);
    let mut bytes = vec![0; 20 + random.below(380) as usize];
    random.fill(&mut bytes);
    bytes
}

/// About how many bytes the rows of a table take on average.
pub(crate) const ROW_BYTES_MEAN: u64 = 270;

fn name_of(session: u64, number: u64) -> String {
    let scattered = Random::for_part(session, number).next_number();
    format!("{scattered:016x}-{session}-{number}")
}

/// All values of a row.
pub(crate) fn values(kind: Kind, session: u64, live: Live) -> Vec<Value<'static>> {
    let mut row: Vec<Value<'static>> = vec![
        (session as i64).into(),
        (live.number as i64).into(),
        (live.version as i64).into(),
        filling(session, live).into(),
    ];
    match kind {
        Kind::Chosen => {}
        Kind::Named => row.push(name_of(session, live.number).into()),
        _ => row.push(Value::Default),
    }
    row
}

/// What an update sets.
pub(crate) fn assignments(session: u64, live: Live) -> [(&'static str, Value<'static>); 2] {
    [("version", (live.version as i64).into()), ("filling", filling(session, live).into())]
}

/// A generated key in 16 bytes; 0 where the key follows from the row's number.
pub(crate) type Key = u128;

/// The key of a row, to find it by.
pub(crate) fn key_values(kind: Kind, session: u64, number: u64, key: Key) -> Vec<Value<'static>> {
    match kind {
        Kind::Ascending | Kind::Scratch => vec![(key as i64).into()],
        Kind::Random | Kind::ByTime => vec![Value::Uuid(Uuid::from_u128(key))],
        Kind::Chosen => vec![(session as i64).into(), (number as i64).into()],
        Kind::Named => vec![name_of(session, number).into()],
    }
}

/// The first value of a primary key, if it was generated.
pub(crate) fn generated_key(kind: Kind, value: &Value<'_>) -> Result<Key> {
    Ok(match (kind, value) {
        (Kind::Ascending | Kind::Scratch, Value::Int64(number)) => *number as u128,
        (Kind::Random | Kind::ByTime, Value::Uuid(id)) => id.as_u128(),
        (Kind::Chosen | Kind::Named, _) => 0,
        (_, other) => bail!("{} has the key {other:?}", kind.name()),
    })
}

/// A stored row, found to be whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) session: u64,
    pub(crate) live: Live,
    pub(crate) key: Key,
}

/// Reads a row and compares its filling and its key with what it says of itself.
pub(crate) fn read(kind: Kind, row: &Row) -> Result<Stored> {
    let number = |column: usize| {
        let value = row.get(column).and_then(Value::as_i64);
        let value = value.and_then(|value| u64::try_from(value).ok());
        value.with_context(|| format!("{}: column {column} of {row:?}", kind.name()))
    };
    let (session, live) = (number(0)?, Live { number: number(1)?, version: number(2)? });
    let is_whole = row[3].as_bytes() == Some(&filling(session, live));
    ensure!(is_whole, "{}: the filling of {row:?} is not that of its version", kind.name());
    let key = match kind {
        Kind::Chosen => 0,
        Kind::Named => {
            let named = row[4].as_str() == Some(&name_of(session, live.number));
            ensure!(named, "{}: the key of {row:?} is another row's", kind.name());
            0
        }
        _ => generated_key(kind, &row[4])?,
    };
    Ok(Stored { session, live, key })
}

/// The change that a new row is.
pub(crate) fn added(kind: Kind, number: u64, version: u64) -> Change {
    Change::Add { kind, live: Live { number, version } }
}
