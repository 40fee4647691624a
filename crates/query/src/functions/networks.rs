//! Functions and operators of addresses and networks, called as PostgreSQL calls them.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Network, Value};

use super::typed::{Call, Given, TypedFunction};
use super::types::type_name;
use crate::error::{QueryError, Result};
use crate::types::ColumnType;

/// An address with the length of its network: what a cast to text makes.
pub(crate) const NETWORK_SHOW: &str = "network_show";
/// The network of an address: what a cast to `cidr` makes.
pub(crate) const NETWORK: &str = "network";
/// A network as an address.
pub(crate) const NETWORK_AS_ADDRESS: &str = "inet";

/// The type of what a function makes of arguments of these types.
type Returns = fn(&[ColumnType]) -> ColumnType;

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions: [(&'static str, Returns, Call); 24] = [
        (NETWORK_SHOW, text, |given| one(given, |address| format!("{address:#}").into())),
        (NETWORK, cidr, |given| one(given, |address| Value::Cidr(address.network()))),
        (NETWORK_AS_ADDRESS, inet, |given| one(given, Value::Inet)),
        ("abbrev", text, |given| match given.values {
            [Value::Cidr(network)] => Ok(abbreviated(*network).into()),
            _ => one(given, |address| address.to_string().into()),
        }),
        ("broadcast", inet, |given| {
            one(given, |address| Value::Inet(address.with_bits(address.bits() | !address.mask())))
        }),
        ("family", int4, |given| {
            one(given, |address| Value::Int32(if address.address.is_ipv4() { 4 } else { 6 }))
        }),
        ("host", text, |given| one(given, |address| alone(address).to_string().into())),
        ("hostmask", inet, |given| {
            one(given, |address| Value::Inet(alone(address.with_bits(!address.mask()))))
        }),
        ("masklen", int4, |given| one(given, |address| Value::Int32(address.length_bits.into()))),
        ("netmask", inet, |given| {
            one(given, |address| Value::Inet(alone(address.with_bits(address.mask()))))
        }),
        ("inet_merge", cidr, |given| two(given, |one, other| merged(one, other).map(Value::Cidr))),
        ("inet_same_family", boolean, |given| {
            two(given, |one, other| Ok(is_of_one_version(one, other).into()))
        }),
        ("set_masklen", first, with_length),
        ("network_sub", boolean, |given| {
            two(given, |one, other| {
                Ok((other.contains(one) && one.length_bits > other.length_bits).into())
            })
        }),
        ("network_subeq", boolean, |given| two(given, |one, other| Ok(other.contains(one).into()))),
        ("network_sup", boolean, |given| {
            two(given, |one, other| {
                Ok((one.contains(other) && one.length_bits < other.length_bits).into())
            })
        }),
        ("network_supeq", boolean, |given| two(given, |one, other| Ok(one.contains(other).into()))),
        ("network_overlap", boolean, |given| {
            two(given, |one, other| Ok((one.contains(other) || other.contains(one)).into()))
        }),
        ("inetnot", inet, |given| {
            one(given, |address| Value::Inet(address.with_bits(!address.bits())))
        }),
        ("inetand", inet, |given| two(given, |one, other| bitwise("AND", one, other))),
        ("inetor", inet, |given| two(given, |one, other| bitwise("OR", one, other))),
        ("inetpl", inet, |given| moved(given, 1)),
        ("inetmi_int8", inet, |given| moved(given, -1)),
        ("inetmi", int8, |given| two(given, distance)),
    ];
    functions
        .into_iter()
        .map(|(name, returns, call)| TypedFunction::new(name, returns, call).strict().into_udf())
        .collect()
}

fn text(_: &[ColumnType]) -> ColumnType {
    DataType::Text.into()
}

fn inet(_: &[ColumnType]) -> ColumnType {
    DataType::Inet.into()
}

fn cidr(_: &[ColumnType]) -> ColumnType {
    DataType::Cidr.into()
}

fn boolean(_: &[ColumnType]) -> ColumnType {
    DataType::Boolean.into()
}

fn int4(_: &[ColumnType]) -> ColumnType {
    DataType::Int32.into()
}

fn int8(_: &[ColumnType]) -> ColumnType {
    DataType::Int64.into()
}

fn first(given: &[ColumnType]) -> ColumnType {
    match given.first() {
        Some(ColumnType::Stored(DataType::Cidr)) => DataType::Cidr.into(),
        _ => DataType::Inet.into(),
    }
}

fn one(given: &Given<'_>, call: impl Fn(Network) -> Value<'static>) -> Result<Value<'static>> {
    match given.values {
        [Value::Inet(address) | Value::Cidr(address)] => Ok(call(*address)),
        _ => Err(no_such(given)),
    }
}

fn two(
    given: &Given<'_>,
    call: impl Fn(Network, Network) -> Result<Value<'static>>,
) -> Result<Value<'static>> {
    match given.values {
        [Value::Inet(one) | Value::Cidr(one), Value::Inet(other) | Value::Cidr(other)] => {
            call(*one, *other)
        }
        _ => Err(no_such(given)),
    }
}

fn no_such(given: &Given<'_>) -> QueryError {
    let types: Vec<String> = given.types.iter().map(|given| type_name(*given)).collect();
    let message = format!("function of addresses does not exist for {}", types.join(", "));
    QueryError::UnknownFunction { message }
}

/// The same with all its bits as the network's.
fn alone(address: Network) -> Network {
    Network { length_bits: address.length_bits_max(), ..address }
}

fn is_of_one_version(one: Network, other: Network) -> bool {
    one.address.is_ipv4() == other.address.is_ipv4()
}

/// Of version 4 without the numbers behind the network.
fn abbreviated(network: Network) -> String {
    let length_bits = network.length_bits;
    match network.address {
        std::net::IpAddr::V4(address) => {
            let count = usize::from(length_bits).div_ceil(8).max(1);
            let numbers = address.octets().map(|number| number.to_string());
            format!("{}/{length_bits}", numbers[..count].join("."))
        }
        std::net::IpAddr::V6(_) => {
            let whole = alone(network).to_string();
            let shown = match whole.strip_suffix("::") {
                Some(shown) if !shown.is_empty() => shown,
                _ => &whole,
            };
            format!("{shown}/{length_bits}")
        }
    }
}

/// The smallest network that has both.
fn merged(one: Network, other: Network) -> Result<Network> {
    if !is_of_one_version(one, other) {
        let message = "cannot merge addresses from different families";
        return Err(QueryError::refused("22023", message));
    }
    let shortest = one.length_bits.min(other.length_bits);
    let differing = (one.bits() ^ other.bits()) << (128 - u32::from(one.length_bits_max()));
    let common = u8::try_from(differing.leading_zeros()).unwrap_or(128);
    Ok(Network { length_bits: shortest.min(common), ..one }.network())
}

fn with_length(given: &Given<'_>) -> Result<Value<'static>> {
    let (address, is_network) = match given.values {
        [Value::Inet(address), _] => (*address, false),
        [Value::Cidr(network), _] => (*network, true),
        _ => return Err(no_such(given)),
    };
    let Some(wanted) = given.values[1].as_i64() else { return Err(no_such(given)) };
    let length_bits = match wanted {
        -1 => Some(address.length_bits_max()),
        bits => u8::try_from(bits).ok().filter(|bits| *bits <= address.length_bits_max()),
    };
    let length_bits = length_bits
        .ok_or_else(|| QueryError::refused("22023", format!("invalid mask length: {wanted}")))?;
    let made = Network { length_bits, ..address };
    Ok(if is_network { Value::Cidr(made.network()) } else { Value::Inet(made) })
}

fn bitwise(name: &str, one: Network, other: Network) -> Result<Value<'static>> {
    if !is_of_one_version(one, other) {
        let message = format!("cannot {name} inet values of different sizes");
        return Err(QueryError::refused("22023", message));
    }
    let bits = match name {
        "AND" => one.bits() & other.bits(),
        _ => one.bits() | other.bits(),
    };
    let length_bits = one.length_bits.max(other.length_bits);
    Ok(Value::Inet(Network { length_bits, ..one.with_bits(bits) }))
}

/// An address so many later.
fn moved(given: &Given<'_>, sign: i128) -> Result<Value<'static>> {
    let ([Value::Inet(address) | Value::Cidr(address), by]
    | [by, Value::Inet(address) | Value::Cidr(address)]) = given.values
    else {
        return Err(no_such(given));
    };
    let by = sign * i128::from(by.as_i64().ok_or_else(|| no_such(given))?);
    let moved = address.bits().checked_add_signed(by);
    let moved = moved.filter(|bits| *bits <= alone(*address).mask());
    let bits = moved.ok_or_else(|| QueryError::refused("22003", "result is out of range"))?;
    Ok(Value::Inet(address.with_bits(bits)))
}

/// How many addresses are between two.
fn distance(one: Network, other: Network) -> Result<Value<'static>> {
    if !is_of_one_version(one, other) {
        let message = "cannot subtract inet values of different sizes";
        return Err(QueryError::refused("22023", message));
    }
    // Of version 6 the number between them may have another sign, which is out of range either way.
    let between = one.bits().wrapping_sub(other.bits()).cast_signed();
    let is_wrapped = (between < 0) != (one.bits() < other.bits());
    let between = i64::try_from(between).ok().filter(|_| !is_wrapped);
    between.map(Value::Int64).ok_or_else(|| QueryError::refused("22003", "result is out of range"))
}
