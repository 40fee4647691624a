//! A table of the user's own, so that a load measures it instead of the classic one.
//!
//! Like the classic table it is loaded with rows of defaults: every column that has no default gets
//! a typical value of its type as one. The key is made by the strategy of the load, in the last
//! column of the primary key that can hold one.
//!
//! - [`sql`]: from a CREATE TABLE statement. [`sample`]: such a statement from rows of a CSV file.

pub mod sample;
pub mod sql;
#[cfg(test)]
mod tests;

use std::path::Path;

use onrush::{ColumnDefinition, DataType, DefaultValue, KeyStrategy, TableDefinition, Value};
use onrush_types::TableBuilder;

/// Text of columns that have no length.
const TEXT_BYTES: usize = 64;

/// A table as its owner described it.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnTable {
    /// Its name.
    pub name: String,
    columns: Vec<ColumnDefinition>,
    /// Names of the key columns, in key order.
    key: Vec<String>,
    /// The column whose values the load's strategy makes.
    generated: usize,
    logged: bool,
}

impl OwnTable {
    /// Reads a file with one CREATE TABLE statement.
    ///
    /// # Errors
    /// A sentence with the place and the cure.
    pub fn read(path: &Path) -> Result<OwnTable, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the table in {}: {error}", path.display()))?;
        sql::read(&text).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    fn new(
        name: String,
        columns: Vec<ColumnDefinition>,
        key: Vec<String>,
        logged: bool,
    ) -> Result<OwnTable, String> {
        let can_hold = |name: &String| {
            let position = columns.iter().position(|column| column.name == *name)?;
            let is_number_or_uuid = matches!(
                columns[position].data_type,
                DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Uuid
            );
            is_number_or_uuid.then_some(position)
        };
        let generated = key.iter().rev().find_map(can_hold).ok_or_else(|| {
            format!(
                "the primary key of {name} has no column whose values could be made; the lab \
                 needs one of type bigint or uuid"
            )
        })?;
        let table = OwnTable { name, columns, key, generated, logged };
        // The engine's own checks, before anything runs.
        table.definition(table.strategies()[0], &table.name)?;
        Ok(table)
    }

    /// Key strategies worth measuring, the usual one of its type first.
    pub fn strategies(&self) -> Vec<KeyStrategy> {
        let identity = KeyStrategy::Identity { start: 1, strict: false };
        match self.columns[self.generated].data_type {
            DataType::Uuid => vec![
                KeyStrategy::UuidV4,
                KeyStrategy::UuidV7,
                KeyStrategy::SequentialGuid,
                KeyStrategy::SessionOffset,
            ],
            _ => vec![
                identity,
                KeyStrategy::SessionOffset,
                KeyStrategy::BitReversed,
                KeyStrategy::HashPrefix,
            ],
        }
    }

    /// The definition with keys of `strategy`, under another name, every column with a default.
    ///
    /// # Errors
    /// What the engine refuses, in a sentence.
    pub fn definition(&self, strategy: KeyStrategy, name: &str) -> Result<TableDefinition, String> {
        let builder = self.builder(strategy, name);
        let builder = if self.logged { builder } else { builder.unlogged() };
        builder.build().map_err(|error| error.to_string())
    }

    /// The same table, not logged: a front for it.
    ///
    /// # Errors
    /// As [`definition`](Self::definition).
    pub fn front(&self, strategy: KeyStrategy) -> Result<TableDefinition, String> {
        let builder = self.builder(strategy, &format!("{} front", self.name));
        builder.unlogged().build().map_err(|error| error.to_string())
    }

    fn builder(&self, strategy: KeyStrategy, name: &str) -> TableBuilder {
        let mut builder = TableDefinition::builder(name);
        for (position, column) in self.columns.iter().enumerate() {
            let column = if position == self.generated {
                ColumnDefinition::new(&column.name, strategy.natural_type()).default_key(strategy)
            } else {
                with_default(column)
            };
            builder = builder.column(column);
        }
        builder.primary_key(self.key.iter().map(String::as_str))
    }
}

fn with_default(column: &ColumnDefinition) -> ColumnDefinition {
    let mut column = column.clone();
    if matches!(column.default, DefaultValue::None | DefaultValue::Key(_)) {
        column.default = typical(column.data_type);
    }
    column
}

/// 10.0.0.7.
const SEVENTH_HOST: onrush::Network = onrush::Network {
    address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7)),
    length_bits: 32,
};

/// What stands for a value that the load does not know: half the length that a text may have.
fn typical(data_type: DataType) -> DefaultValue {
    let text = |bytes: usize| Value::from("abcdefgh".repeat(bytes.div_ceil(8))[..bytes].to_owned());
    DefaultValue::Constant(match data_type {
        DataType::Rounded(clock, _) => return typical(clock.data_type()),
        DataType::Boolean => Value::Boolean(true),
        DataType::Int16 => Value::Int16(7),
        DataType::Int32 => Value::Int32(77),
        DataType::Int64 => Value::Int64(777),
        DataType::Float32 => Value::Float32(7.5),
        DataType::Float64 => Value::Float64(7.5),
        DataType::Decimal { .. } | DataType::Numeric(_) => Value::Decimal(onrush::Decimal::ZERO),
        DataType::Char(bytes) => text(usize::from(bytes)),
        DataType::Varchar(bytes) => text((bytes as usize).div_ceil(2).min(4000)),
        DataType::Text => text(TEXT_BYTES),
        DataType::Name => text(8),
        DataType::Oid => Value::Int64(77),
        DataType::Array(_) => Value::from("{}"),
        // Each field of it is NULL.
        DataType::Composite(of) => {
            Value::from(format!("({})", ",".repeat(of.fields().len().saturating_sub(1))))
        }
        DataType::Enum(of) => of
            .labels()
            .iter()
            .next()
            .map_or(Value::Null, |(_, label)| Value::from(label.to_owned())),
        DataType::Json | DataType::Jsonb => Value::from("{\"a\": 7}"),
        DataType::Bytes => Value::from(vec![7_u8; TEXT_BYTES]),
        DataType::Inet => Value::Inet(SEVENTH_HOST),
        DataType::Cidr => Value::Cidr(SEVENTH_HOST),
        DataType::MacAddress => Value::MacAddress(onrush::MacAddress([7; 6])),
        DataType::TimeTz => Value::TimeTz(onrush::TimeTz { micros: 7, offset_seconds: 0 }),
        DataType::Interval => Value::Interval(onrush::Interval::seconds(7)),
        DataType::Uuid => Value::Uuid(onrush::Uuid::from_u128(7)),
        DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz => {
            return DefaultValue::Now;
        }
    })
}
