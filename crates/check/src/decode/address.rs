//! Addresses of hosts and networks: the version (4 or 6), the address in 16 bytes, the length of its network in bits.
//! In a key an address of a host stands behind its network.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of an address in a row, and of a network in a key.
pub(crate) const NETWORK_BYTES: usize = 18;

/// Whether there is such an address.
pub(crate) fn is_address(bytes: &[u8]) -> bool {
    let Some((version, [.., length_bits])) = bytes.split_first() else { return false };
    match version {
        4 => *length_bits <= 32 && bytes[5..17].iter().all(|byte| *byte == 0),
        6 => *length_bits <= 128,
        _ => false,
    }
}

/// Whether it is an address without a bit behind its network.
pub(crate) fn is_network(bytes: &[u8]) -> bool {
    is_address(bytes) && bytes == network_of(bytes)
}

/// Whether a key's network is that of the address behind it.
pub(crate) fn is_inet_key(bytes: &[u8]) -> bool {
    let own = address_of_key(bytes);
    is_address(&own) && bytes[..NETWORK_BYTES] == network_of(&own)
}

/// The address of a key as a row has it.
pub(crate) fn address_of_key(bytes: &[u8]) -> Vec<u8> {
    [&bytes[..1], &bytes[NETWORK_BYTES..], &bytes[NETWORK_BYTES - 1..NETWORK_BYTES]].concat()
}

/// An address in words.
pub(crate) fn address_words(bytes: &[u8]) -> String {
    let length_bits = bytes[NETWORK_BYTES - 1];
    let number = bytes[1..17].iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
    match bytes[0] {
        4 => format!("{}/{length_bits}", Ipv4Addr::from_bits((number >> 96) as u32)),
        _ => format!("{}/{length_bits}", Ipv6Addr::from_bits(number)),
    }
}

/// An address without the bits behind its network.
fn network_of(bytes: &[u8]) -> Vec<u8> {
    let length_bits = usize::from(bytes[NETWORK_BYTES - 1]);
    let mut network = bytes.to_vec();
    for (at, byte) in network[1..17].iter_mut().enumerate() {
        let kept_bits = length_bits.saturating_sub(at * 8).min(8);
        *byte &= !(0xFF_u8.checked_shr(kept_bits as u32).unwrap_or(0));
    }
    network
}
