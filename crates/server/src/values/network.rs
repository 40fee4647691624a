//! Addresses and networks in binary: the version, the bits of the network, whether it is a `cidr`, and the bytes of
//! the address behind their number.

use std::net::IpAddr;

use bytes::{BufMut, BytesMut};
use onrush::{Network, Value};

use crate::error::{Result, SqlError, state};

/// Version 4, as PostgreSQL counts; 6 is the next.
const VERSION_4: u8 = 2;
const VERSION_6: u8 = VERSION_4 + 1;

pub(super) fn write_binary(address: Network, is_cidr: bool, out: &mut BytesMut) {
    let version = if address.address.is_ipv4() { VERSION_4 } else { VERSION_6 };
    out.put_slice(&[version, address.length_bits, u8::from(is_cidr)]);
    match address.address {
        IpAddr::V4(address) => {
            out.put_u8(4);
            out.put_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            out.put_u8(16);
            out.put_slice(&address.octets());
        }
    }
}

/// Reads an address, which may be one of a `cidr`.
pub(super) fn read_binary(bytes: &[u8], is_cidr: bool) -> Result<Value<'static>> {
    let type_name = if is_cidr { "cidr" } else { "inet" };
    let bad = |what: &str| {
        SqlError::new(
            state::INVALID_BINARY,
            format!("invalid {what} in external \"{type_name}\" value"),
        )
    };
    let [version, length_bits, _, count, address @ ..] = bytes else { return Err(bad("length")) };
    if usize::from(*count) != address.len() {
        return Err(bad("length"));
    }
    let address: IpAddr = match *version {
        VERSION_4 => <[u8; 4]>::try_from(address).map_err(|_| bad("length"))?.into(),
        VERSION_6 => <[u8; 16]>::try_from(address).map_err(|_| bad("length"))?.into(),
        _ => return Err(bad("address family")),
    };
    let read = Network { address, length_bits: *length_bits };
    match is_cidr {
        _ if !read.is_sound() => Err(bad("bits")),
        true if !read.is_network() => {
            let error = SqlError::new(state::INVALID_BINARY, "invalid external \"cidr\" value");
            Err(error.with_detail("Value has bits set to right of mask."))
        }
        true => Ok(Value::Cidr(read)),
        false => Ok(Value::Inet(read)),
    }
}
