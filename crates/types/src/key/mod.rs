//! Keys as bytes: compared with `memcmp`, they order exactly as their values do.
//!
//! A key is its columns one after the other, each in a form that is ordered and that is never a
//! prefix of another value of its type; so composite keys order column by column, and no key is a
//! prefix of another. Key columns are never NULL, but those of an index.
//!
//! | type | bytes |
//! |---|---|
//! | boolean | 0 or 1 |
//! | smallint, integer, bigint | big-endian, sign bit flipped (2, 4, 8) |
//! | real, double | big-endian bits; negative: all bits flipped; else: sign bit flipped |
//! | decimal(p,s) | number times 10^s as a big-endian integer, sign bit flipped (8 or 12) |
//! | oid | big-endian (4) |
//! | inet | the version (4 or 6), the network in 16 bytes, its length in bits, the address in 16 bytes |
//! | cidr | the same without the address |
//! | macaddr | its 6 bytes |
//! | timetz | microseconds in UTC as bigint, then seconds west of it as integer |
//! | char, varchar, text, name, bytes | the bytes, 0x00 written as 0x00 0xFF, then 0x00 0x00 as the end |
//! | numeric | as in a row, without the digits that it is shown with |
//! | uuid | its 16 bytes, as written |
//! | date | as integer; time, timestamp, timestamptz: as bigint |
//!
//! A key column of an index has a byte in front: 0 for NULL that comes first, 1 for a value, 2 for NULL that comes
//! last. All bits of a value that descends are flipped.
//!
//! Rules that follow: text orders by its UTF-8 bytes (the "C" collation). Trailing blanks of `char`
//! are left out of the key and come back as padding. In floats -0 becomes 0, and every NaN becomes
//! one NaN above infinity, so that values that are equal are one key. Decimals that are equal are
//! one key and come back at their declared scale; so do numerics, and one without a declared scale with
//! as many digits as it needs, which is why it is no primary key.

use crate::DataType;
use crate::network::INET_KEY_BYTES;

mod decode;
mod encode;

/// Most bytes of an encoded key.
pub const KEY_BYTES_MAX: usize = 1024;

/// Ends a text or bytes value inside a key.
const END_MARK: [u8; 2] = [0, 0];
/// Stands for a zero byte inside a text or bytes value.
const ESCAPED_ZERO: [u8; 2] = [0, 0xFF];

/// In front of a key column of an index.
const NULL_FIRST: u8 = 0;
const NOT_NULL: u8 = 1;
const NULL_LAST: u8 = 2;

/// Bytes of a value in a key, where all values of its type take the same.
pub(crate) fn width_bytes(data_type: DataType) -> Option<usize> {
    match data_type {
        DataType::Inet => Some(INET_KEY_BYTES),
        text if text.is_text() => None,
        other => other.fixed_width_bytes(),
    }
}

/// The smallest byte string above every string that starts with `prefix`: the open end of a range
/// scan over a prefix. None when there is none (the prefix is empty or all 0xFF): scan to the end.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::prefix_end;

    #[test]
    fn prefix_end_is_the_next_string_that_does_not_start_with_the_prefix() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(&[1, 0xFF, 0xFF]), Some(vec![2]));
        assert_eq!(prefix_end(&[0xFF, 0xFF]), None);
        assert_eq!(prefix_end(&[]), None);
    }
}
