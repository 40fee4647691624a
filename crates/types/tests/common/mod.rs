//! Random types, values and tables for the property tests.

#![allow(dead_code, missing_docs)]

use std::cmp::Ordering;
use std::sync::Arc;

use onrush_types::array::write_array;
use onrush_types::calendar::{
    DATE_DAYS_MAX, DATE_DAYS_MIN, DATE_INFINITIES, TIMESTAMP_INFINITIES, TIMESTAMP_MICROS_MAX,
    TIMESTAMP_MICROS_MIN, is_timestamp,
};
use onrush_types::{
    Clock, ColumnDefinition, CompositeType, DataType, Decimal, DefaultValue, EncodedRow,
    EnumLabels, EnumType, Interval, IntervalFields, MacAddress, Network, Numeric, Schema,
    TableDefinition, TimeTz, TypeError, Uuid, Value, write_record,
};
use proptest::prelude::*;

/// Any type but JSON, whose values are not any text.
pub fn any_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::Boolean),
        Just(DataType::Int16),
        Just(DataType::Int32),
        Just(DataType::Int64),
        Just(DataType::Float32),
        Just(DataType::Float64),
        (1u8..=28).prop_flat_map(|precision| (0..=precision)
            .prop_map(move |scale| DataType::Decimal { precision, scale })),
        prop_oneof![1u16..20, 250u16..300].prop_map(DataType::Char),
        (1u32..20).prop_map(DataType::Varchar),
        Just(DataType::Text),
        Just(DataType::Bytes),
        Just(DataType::Uuid),
        Just(DataType::Date),
        Just(DataType::Time),
        Just(DataType::Timestamp),
        Just(DataType::TimestampTz),
        Just(DataType::Interval),
        Just(DataType::Name),
        Just(DataType::Oid),
        Just(DataType::TimeTz),
        Just(DataType::Inet),
        Just(DataType::Cidr),
        Just(DataType::MacAddress),
        Just(DataType::Enum(moods())),
        Just(DataType::Int32.array().expect("a type of arrays")),
        Just(DataType::Composite(pairs())),
        Just(DataType::Numeric(None)),
        (29u16..60, -5i16..70)
            .prop_map(|(precision, scale)| DataType::Numeric(Some((precision, scale)))),
        (0u8..6).prop_map(|digits| DataType::Rounded(Clock::Timestamp, Some(digits))),
        (0u8..6).prop_map(|digits| DataType::Rounded(Clock::Time, Some(digits))),
        (0u8..6).prop_map(|digits| {
            DataType::Rounded(Clock::Interval(IntervalFields::DayToSecond), Some(digits))
        }),
        Just(DataType::Rounded(Clock::Interval(IntervalFields::HourToMinute), None)),
    ]
}

/// A type whose labels are not ordered as their texts are.
pub fn moods() -> EnumType {
    let labels = EnumLabels::new(["sad", "ok", "", "happy", "an\u{e9}mic"]);
    EnumType::new(7, "mood", &labels.expect("labels that differ"))
}

/// A type of records, the second field of which is one, too.
pub fn pairs() -> CompositeType {
    let inner = vec![("word".into(), DataType::Text)];
    let inner = DataType::Composite(CompositeType::new(8, "inner", inner));
    let fields = vec![("number".into(), DataType::Int32), ("inner".into(), inner)];
    CompositeType::new(9, "pair", fields)
}

/// A value that a column of this type can hold. Small domains, so that equal values occur.
pub fn value_of(data_type: DataType) -> BoxedStrategy<Value<'static>> {
    match data_type {
        DataType::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        DataType::Int16 => any::<i16>().prop_map(Value::Int16).boxed(),
        DataType::Int32 => any::<i32>().prop_map(Value::Int32).boxed(),
        DataType::Int64 => prop_oneof![any::<i64>(), -3i64..3].prop_map(Value::Int64).boxed(),
        DataType::Float32 => {
            prop_oneof![any::<u32>().prop_map(f32::from_bits), Just(-0.0), Just(0.0)]
                .prop_map(Value::Float32)
                .boxed()
        }
        DataType::Float64 => {
            prop_oneof![any::<u64>().prop_map(f64::from_bits), Just(-0.0), Just(0.0)]
                .prop_map(Value::Float64)
                .boxed()
        }
        DataType::Decimal { precision, scale } => {
            let limit = 10i128.pow(u32::from(precision));
            prop_oneof![1 - limit..limit, (-2i128).max(1 - limit)..2.min(limit)]
                .prop_map(move |digits| {
                    Value::Decimal(Decimal::from_i128_with_scale(digits, u32::from(scale)))
                })
                .boxed()
        }
        DataType::Char(length) => text(usize::from(length)),
        DataType::Varchar(length) => text(length as usize),
        DataType::Text | DataType::Name => text(40),
        DataType::Array(_) => prop::collection::vec(prop::option::of(0i32..300), 0..6)
            .prop_map(|numbers| {
                let texts: Vec<Option<String>> =
                    numbers.iter().map(|number| number.map(|it| it.to_string())).collect();
                Value::from(write_array(texts.iter().map(Option::as_deref)))
            })
            .boxed(),
        DataType::Composite(_) => (prop::option::of(0i32..300), prop::option::of(".{0,6}"))
            .prop_map(|(number, word)| {
                let number = number.map(|it| it.to_string());
                let inner = write_record([word.as_deref()]);
                Value::from(write_record([number.as_deref(), Some(&inner)]))
            })
            .boxed(),
        DataType::Enum(of) => {
            let labels: Vec<&str> = of.labels().iter().map(|(_, label)| label).collect();
            prop::sample::select(labels).prop_map(Value::from).boxed()
        }
        DataType::TimeTz => (0..=86_400_000_000i64, -57_599..57_600)
            .prop_map(|(micros, offset_seconds)| TimeTz { micros, offset_seconds }.into())
            .boxed(),
        DataType::Inet => any_address().prop_map(Value::Inet).boxed(),
        DataType::Cidr => any_address().prop_map(|address| Value::Cidr(address.network())).boxed(),
        DataType::MacAddress => any::<[u8; 6]>().prop_map(|it| MacAddress(it).into()).boxed(),
        DataType::Oid => any::<u32>().prop_map(|number| Value::Int64(i64::from(number))).boxed(),
        DataType::Bytes => {
            prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xFF), any::<u8>()], 0..20)
                .prop_map(Value::from)
                .boxed()
        }
        DataType::Numeric(None) => {
            let number =
                (any::<i128>(), 0..60i32).prop_map(|(digits, scale)| numeric(digits, scale));
            let others = [Numeric::NaN, Numeric::Infinity, Numeric::NegativeInfinity];
            let others = others.map(Value::Numeric).to_vec();
            prop_oneof![4 => number, 1 => prop::sample::select(others)].boxed()
        }
        DataType::Numeric(Some((_, scale))) => {
            // Of fewer digits than any of these types has.
            let digits = -(10i128.pow(28))..10i128.pow(28);
            digits.prop_map(move |digits| numeric(digits, i32::from(scale))).boxed()
        }
        DataType::Uuid => any::<u128>().prop_map(|bits| Uuid::from_u128(bits).into()).boxed(),
        DataType::Date => {
            let days = prop_oneof![
                4 => -719_162..=2_932_896,
                2 => DATE_DAYS_MIN..=DATE_DAYS_MAX,
                1 => prop::sample::select(DATE_INFINITIES.to_vec()),
            ];
            days.prop_map(Value::Date).boxed()
        }
        DataType::Time => (0..=86_400_000_000i64).prop_map(Value::Time).boxed(),
        DataType::Timestamp => timestamp().prop_map(Value::Timestamp).boxed(),
        DataType::TimestampTz => timestamp().prop_map(Value::TimestampTz).boxed(),
        DataType::Rounded(clock, _) => {
            let rounded = move |value| data_type.rounded(value);
            let in_range = |value: &Value<'_>| {
                !matches!(value, Value::Timestamp(micros) | Value::TimestampTz(micros)
                    if !is_timestamp(*micros))
            };
            value_of(clock.data_type()).prop_map(rounded).prop_filter("in range", in_range).boxed()
        }
        DataType::Interval => (any::<i32>(), any::<i32>(), any::<i64>())
            .prop_map(|(months, days, micros)| Interval { months, days, micros }.into())
            .boxed(),
        DataType::Json | DataType::Jsonb => {
            any::<i64>().prop_map(|number| Value::from(format!("[{number}]"))).boxed()
        }
    }
}

fn timestamp() -> impl Strategy<Value = i64> {
    const MICROS: i64 = 62_135_596_800_000_000;
    prop_oneof![
        4 => -MICROS..=MICROS,
        2 => TIMESTAMP_MICROS_MIN..=TIMESTAMP_MICROS_MAX,
        1 => prop::sample::select(TIMESTAMP_INFINITIES.to_vec()),
    ]
}

fn numeric(digits: i128, scale: i32) -> Value<'static> {
    Value::Numeric(Numeric::new(digits, scale).expect("a number of few digits"))
}

fn any_address() -> impl Strategy<Value = Network> {
    let short = (any::<u32>(), 0..=32u8).prop_map(|(bits, length_bits)| Network {
        address: std::net::Ipv4Addr::from_bits(bits).into(),
        length_bits,
    });
    let wide = (any::<u128>(), 0..=128u8).prop_map(|(bits, length_bits)| Network {
        address: std::net::Ipv6Addr::from_bits(bits).into(),
        length_bits,
    });
    prop_oneof![short, wide]
}

fn text(bytes_max: usize) -> BoxedStrategy<Value<'static>> {
    prop_oneof!["[ab\0 \u{1}\u{10FFFF}é]{0,12}", "[a-c ]{0,4}"]
        .prop_map(move |mut text| {
            while text.len() > bytes_max {
                text.pop();
            }
            Value::from(text)
        })
        .boxed()
}

pub fn value_or_null(column: &ColumnDefinition) -> BoxedStrategy<Value<'static>> {
    let value = value_of(column.data_type);
    let default = column.default.clone();
    match (column.nullable, default) {
        (true, DefaultValue::None) => {
            prop_oneof![value, Just(Value::Null), Just(Value::Default)].boxed()
        }
        (true, _) => prop_oneof![value, Just(Value::Null), Just(Value::Default)].boxed(),
        (false, DefaultValue::None) => value,
        (false, _) => prop_oneof![value, Just(Value::Default)].boxed(),
    }
}

/// A column that may be nullable and may have a constant default.
fn any_column(position: usize) -> impl Strategy<Value = ColumnDefinition> {
    any_type().prop_flat_map(move |data_type| {
        (any::<bool>(), prop::option::of(value_of(data_type))).prop_map(move |(nullable, value)| {
            let mut column = ColumnDefinition::new(format!("c{position}"), data_type);
            column.nullable = nullable;
            if let Some(value) = value {
                column = column.default_value(value);
            }
            column
        })
    })
}

/// A table of 1 to 12 columns, 1 to 3 of them in the key, in any order.
pub fn any_schema() -> impl Strategy<Value = Arc<Schema>> {
    (1usize..=12)
        .prop_flat_map(|count| {
            let columns: Vec<_> = (0..count).map(any_column).collect();
            let keys = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
            (columns, keys, 1..=count.min(3))
        })
        .prop_filter_map("a key", |(columns, mut keys, key_count)| {
            let is_key = |of: DataType| of.is_ordered() && of != DataType::Numeric(None);
            keys.retain(|key| is_key(columns[*key].data_type));
            (!keys.is_empty()).then_some((columns, keys, key_count))
        })
        .prop_map(|(columns, keys, key_count)| {
            let names = keys.iter().take(key_count).map(|key| format!("c{key}"));
            let builder = columns
                .into_iter()
                .fold(TableDefinition::builder("orders"), |builder, column| builder.column(column));
            let definition = builder.primary_key(names).build().expect("a sound table");
            Arc::new(Schema::new(Arc::new(definition)).expect("a sound schema"))
        })
}

/// A table and some rows for it; DEFAULT and NULL stand where they are allowed.
pub fn schema_with_rows() -> impl Strategy<Value = (Arc<Schema>, Vec<Vec<Value<'static>>>)> {
    any_schema().prop_flat_map(|schema| {
        let row: Vec<_> = schema.definition().columns().iter().map(value_or_null).collect();
        (Just(schema), prop::collection::vec(row, 1..6))
    })
}

pub fn encode(schema: &Schema, values: &[Value<'_>]) -> EncodedRow {
    let mut out = EncodedRow::new();
    schema
        .encode_row::<TypeError, _>(values, |_, _| unreachable!("no computed default"), &mut out)
        .expect("the values fit");
    out
}

/// What a given value is expected to come back as: defaults filled in.
pub fn expected(schema: &Schema, values: &[Value<'static>]) -> Vec<Value<'static>> {
    let columns = schema.definition().columns();
    let pairs = columns.iter().zip(values);
    pairs
        .map(|(column, value)| match (value, &column.default) {
            (Value::Default, DefaultValue::Constant(value)) => value.clone(),
            (Value::Default, _) => Value::Null,
            (value, _) => value.clone(),
        })
        .collect()
}

pub fn same_row(schema: &Schema, left: &[Value<'_>], right: &[Value<'_>]) -> bool {
    let columns = schema.definition().columns();
    left.len() == columns.len()
        && right.len() == columns.len()
        && columns
            .iter()
            .zip(left.iter().zip(right))
            .all(|(column, (left, right))| column.data_type.compare(left, right) == Ordering::Equal)
}
