//! A table with a column of every type, and its rows by number. The tests of repair use it, too.

use onrush::{
    Clock, ColumnDefinition, DataType, Decimal, EnumLabels, EnumType, Interval, MacAddress,
    Network, Numeric, TableBuilder, TableDefinition, TimeTz, Uuid, Value,
};

/// Every type, in columns that may be NULL, and a key of three.
pub fn types_table() -> TableBuilder {
    let column = ColumnDefinition::new;
    TableDefinition::builder("types")
        .column(column("name", DataType::Varchar(40)).not_null())
        .column(column("b", DataType::Boolean))
        .column(column("i2", DataType::Int16).not_null())
        .column(column("i4", DataType::Int32).default_value(7))
        .column(column("i8", DataType::Int64))
        .column(column("f4", DataType::Float32))
        .column(column("f8", DataType::Float64).not_null())
        .column(column("d", DataType::Decimal { precision: 12, scale: 2 }))
        .column(column("dd", DataType::Decimal { precision: 28, scale: 9 }))
        .column(column("c", DataType::Char(9)).not_null().default_value("x"))
        .column(column("t", DataType::Text))
        .column(column("by", DataType::Bytes))
        .column(column("u", DataType::Uuid))
        .column(column("day", DataType::Date))
        .column(column("tm", DataType::Time))
        .column(column("at", DataType::Timestamp).default_now())
        .column(column("atz", DataType::TimestampTz))
        .column(column("n", DataType::Numeric(None)))
        .column(column("nn", DataType::Numeric(Some((40, 3)))))
        .column(column("iv", DataType::Interval))
        .column(column("ttz", DataType::TimeTz))
        .column(column("host", DataType::Inet))
        .column(column("net", DataType::Cidr))
        .column(column("card", DataType::MacAddress))
        .column(column("nm", DataType::Name))
        .column(column("o", DataType::Oid))
        .column(column("at2", DataType::Rounded(Clock::Timestamp, Some(2))))
        .column(column("j", DataType::Jsonb))
        .column(column("m", DataType::Enum(moods())).default_value("ok"))
        .column(column("ar", DataType::Int32.array().unwrap()))
        .primary_key(["name", "i2", "f8"])
}

/// Of version 4 and 6 in turn.
fn address(number: i64) -> Network {
    let wide = std::net::Ipv6Addr::from_bits(1 << 120 | number as u128).into();
    let short = std::net::Ipv4Addr::from_bits(10 << 24 | number as u32).into();
    let address = if number % 2 == 0 { wide } else { short };
    Network { address, length_bits: (number % 33) as u8 }
}

fn moods() -> EnumType {
    EnumType::new(1_000_000, "mood", &EnumLabels::new(["sad", "ok", "happy"]).unwrap())
}

/// NULL in each column that may be, now and then.
pub fn types_row(number: i64) -> Vec<Value<'static>> {
    let some = |wanted: i64, value: Value<'static>| {
        if number % 7 == wanted { Value::Null } else { value }
    };
    vec![
        format!("a name, number {:05}", number * 37 % 1000).into(),
        some(1, (number % 2 == 0).into()),
        Value::Int16((number - 300) as i16),
        some(2, Value::Int32(number as i32)),
        some(3, Value::Int64(-number)),
        some(4, Value::Float32(number as f32 / 3.0)),
        Value::Float64(-(number as f64)),
        some(5, Decimal::new(-number * 31, 2).into()),
        some(6, Decimal::new(number * 1_000_000_007, 9).into()),
        if number % 3 == 0 { Value::Default } else { "é".into() },
        some(0, "text\0with a zero".into()),
        some(1, vec![number as u8; (number % 90) as usize].into()),
        some(2, Uuid::from_u128(number as u128).into()),
        some(3, Value::Date(number as i32)),
        some(4, Value::Time(number * 1000)),
        Value::Default,
        some(5, Value::TimestampTz(number)),
        some(6, Numeric::new(i128::from(number) * 1_001, 2).unwrap().into()),
        some(0, Numeric::new(-i128::from(number), 3).unwrap().into()),
        some(1, Interval { months: number as i32, days: -1, micros: number }.into()),
        some(2, TimeTz { micros: number, offset_seconds: 3600 }.into()),
        some(3, Value::Inet(address(number))),
        some(4, Value::Cidr(address(number).network())),
        some(5, MacAddress([1, 2, 3, 4, 5, number as u8]).into()),
        some(3, format!("name_{number}").into()),
        some(4, Value::Int64(number)),
        some(5, Value::Timestamp(number * 10_000)),
        some(6, "{\"a\": [1, null]}".into()),
        if number % 7 == 3 {
            Value::Null
        } else {
            ["sad", "ok", "happy"][(number % 3) as usize].into()
        },
        some(0, format!("{{{number},NULL}}").into()),
    ]
}
