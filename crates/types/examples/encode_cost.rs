//! What encoding costs: nanoseconds per row of the classic table, and per generated key.
//!
//! `cargo run --release -p onrush-types --example encode_cost`

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use onrush_types::{
    ColumnDefinition, ColumnName, DataType, DefaultValue, EncodedRow, KeyGenerator, KeyStrategy,
    Schema, TableDefinition, TypeError, Value,
};

const ROWS: u64 = 5_000_000;

fn main() -> Result<(), TypeError> {
    for strategy in KeyStrategy::ALL {
        let schema = classic_table(strategy)?;
        println!(
            "{:16} key {:6.1} ns   all defaults {:6.1} ns   values given {:6.1} ns   {}",
            strategy.to_string(),
            key_cost_ns(&schema)?,
            best_of(3, || row_cost_ns(&schema, &[]))?,
            best_of(3, || row_cost_ns(&schema, &given_values(&schema)))?,
            sizes(&schema)?,
        );
    }
    Ok(())
}

fn classic_table(strategy: KeyStrategy) -> Result<Schema, TypeError> {
    let definition = TableDefinition::builder("MyBigTable")
        .column(ColumnDefinition::new("c1", strategy.natural_type()).default_key(strategy))
        .column(ColumnDefinition::new("c2", DataType::Timestamp).default_now())
        .column(ColumnDefinition::new("c3", DataType::Char(111)).default_value("a"))
        .column(ColumnDefinition::new("c4", DataType::Int32).default_value(1))
        .column(ColumnDefinition::new("c5", DataType::Int32).default_value(2))
        .column(ColumnDefinition::new("c6", DataType::Int64).default_value(42i64))
        .primary_key(["c1"])
        .build()?;
    Schema::new(Arc::new(definition))
}

/// Every column but the key given, all different from the defaults.
fn given_values(schema: &Schema) -> Vec<Value<'static>> {
    assert_eq!(schema.column_count(), 6);
    vec![
        Value::Default,
        Value::Timestamp(1_700_000_000_000_000),
        Value::from("some text of middling length"),
        Value::Int32(7),
        Value::Int32(8),
        Value::Int64(9),
    ]
}

fn lease_from(next: &mut u64) -> impl FnMut(u64) -> Result<Range<u64>, TypeError> + '_ {
    |count| {
        let start = *next;
        *next += count;
        Ok(start..*next)
    }
}

fn generator(schema: &Schema) -> Result<KeyGenerator, TypeError> {
    let none = || TypeError::MissingValue(ColumnName::new(schema.name(), "c1"));
    schema.key_generator(0)?.ok_or_else(none)
}

fn key_cost_ns(schema: &Schema) -> Result<f64, TypeError> {
    best_of(3, || {
        let mut generator = generator(schema)?;
        let mut next = 0;
        let mut lease = lease_from(&mut next);
        let start = Instant::now();
        for _ in 0..ROWS {
            match generator.next(&mut lease) {
                Ok(ref key) => black_box(key),
                Err(error) => return Err(error),
            };
        }
        Ok(start.elapsed().as_nanos() as f64 / ROWS as f64)
    })
}

fn row_cost_ns(schema: &Schema, values: &[Value<'_>]) -> Result<f64, TypeError> {
    let mut generator = generator(schema)?;
    let mut next = 0;
    let mut lease = lease_from(&mut next);
    let mut out = EncodedRow::new();
    let start = Instant::now();
    for row in 0..ROWS {
        let now = 1_700_000_000_000_000 + row.cast_signed();
        schema.encode_row(
            black_box(values),
            |_, default| match default {
                DefaultValue::Now => Ok(Value::Timestamp(now)),
                _ => generator.next(&mut lease),
            },
            &mut out,
        )?;
        black_box(&out);
    }
    Ok(start.elapsed().as_nanos() as f64 / ROWS as f64)
}

fn sizes(schema: &Schema) -> Result<String, TypeError> {
    let mut generator = generator(schema)?;
    let mut next = 0;
    let mut out = EncodedRow::new();
    let mut lease = lease_from(&mut next);
    schema.encode_row(
        &[],
        |_, default| match default {
            DefaultValue::Now => Ok(Value::Timestamp(0)),
            _ => generator.next(&mut lease),
        },
        &mut out,
    )?;
    let (key, row, elided) = (out.key.len(), out.row.len(), out.elided.len());
    Ok(format!("key {key} B, row {row} B, elided {elided} B"))
}

fn best_of(
    times: usize,
    mut measure: impl FnMut() -> Result<f64, TypeError>,
) -> Result<f64, TypeError> {
    let mut best = f64::INFINITY;
    for _ in 0..times {
        best = best.min(measure()?);
    }
    Ok(best)
}
