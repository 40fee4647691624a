//! Numbers as bytes, in rows, in keys and inside of queries.
//!
//! Compared as bytes they are ordered as the numbers are:
//!
//! ```text
//! u8    1 negative infinity, 2 below zero, 3 zero, 4 above zero, 5 infinity, 6 NaN; of 2 and 4 alone:
//! u16   the place of the first digit of base 10000 that is not zero, counted from the point, with 32768 added;
//!       big-endian
//! ...   the digits of base 100, from the first of that place on, without zeros at the end, each with 1 added
//! u8    0
//! ```
//!
//! All bits behind the first byte are flipped below zero. A row has the digits shown after the point behind that, as a
//! big-endian u16; a key has not, so that equal numbers are one key.

use dashu_int::IBig;
use dashu_int::ops::UnsignedAbs;

use super::Numeric;

const NEGATIVE_INFINITY: u8 = 1;
const BELOW_ZERO: u8 = 2;
const ZERO: u8 = 3;
const ABOVE_ZERO: u8 = 4;
const INFINITY: u8 = 5;
const NAN: u8 = 6;

/// Bytes of the digits shown after the point.
const SCALE_BYTES: usize = 2;
const PLACE_ZERO: i32 = 1 << 15;

const ENDS: &str = "a numeric value ends inside its digits";
const DAMAGED: &str = "a numeric value has digits that there are not";

impl Numeric {
    /// Appends the bytes of a row.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_key(out);
        out.extend_from_slice(&self.scale().unwrap_or(0).to_be_bytes());
    }

    /// The bytes of a row.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16);
        self.write(&mut bytes);
        bytes
    }

    /// Appends the bytes of a key.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        let (digits, scale) = match self {
            Numeric::NegativeInfinity => return out.push(NEGATIVE_INFINITY),
            Numeric::Infinity => return out.push(INFINITY),
            Numeric::NaN => return out.push(NAN),
            Numeric::Finite(digits, _) if *digits == IBig::ZERO => return out.push(ZERO),
            Numeric::Finite(digits, scale) => (digits, i32::from(*scale)),
        };
        let is_negative = *digits < IBig::ZERO;
        let size = digits.clone().unsigned_abs();
        let written = match u128::try_from(size.clone()) {
            Ok(small) => small.to_string(),
            Err(_) => size.to_string(),
        };
        // The place of the first decimal digit, and how many zeros go in front of it.
        let first = i32::try_from(written.len()).unwrap_or(i32::MAX) - scale - 1;
        let zeros = usize::try_from(3 - first.rem_euclid(4)).unwrap_or(0);
        let place = u16::try_from(first.div_euclid(4) + PLACE_ZERO).unwrap_or(u16::MAX);
        out.push(if is_negative { BELOW_ZERO } else { ABOVE_ZERO });
        let start = out.len();
        out.extend_from_slice(&place.to_be_bytes());
        let mut digit = std::iter::repeat_n(0, zeros)
            .chain(written.trim_end_matches('0').bytes().map(|digit| digit - b'0'));
        while let Some(high) = digit.next() {
            out.push(high * 10 + digit.next().unwrap_or(0) + 1);
        }
        out.push(0);
        if is_negative {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// The number of the bytes of a row.
    ///
    /// # Errors
    /// Bytes that are none.
    pub fn read(bytes: &[u8]) -> Result<Numeric, &'static str> {
        let (key, scale) = bytes.split_last_chunk::<SCALE_BYTES>().ok_or(ENDS)?;
        if key_length(key)? != key.len() {
            return Err("bytes are left over behind a numeric value");
        }
        Numeric::read_key(key, Some(u16::from_be_bytes(*scale)))
    }

    /// The number of the bytes of a key, with so many digits after the point, or as many as it has.
    ///
    /// # Errors
    /// Bytes that are none.
    pub fn read_key(key: &[u8], scale: Option<u16>) -> Result<Numeric, &'static str> {
        let class = *key.first().ok_or(ENDS)?;
        let is_negative = match class {
            NEGATIVE_INFINITY => return Ok(Numeric::NegativeInfinity),
            INFINITY => return Ok(Numeric::Infinity),
            NAN => return Ok(Numeric::NaN),
            ZERO => return Ok(Numeric::Finite(IBig::ZERO, scale.unwrap_or(0))),
            class => class == BELOW_ZERO,
        };
        let flip = if is_negative { 0xFF } else { 0 };
        let (place, pairs) = key[1..].split_first_chunk::<2>().ok_or(ENDS)?;
        let place = i32::from(u16::from_be_bytes(place.map(|byte| byte ^ flip))) - PLACE_ZERO;
        let (_, pairs) = pairs.split_last().ok_or(ENDS)?;
        let count = i32::try_from(pairs.len()).map_err(|_| DAMAGED)?;
        // The place of the last digit, counted from the point.
        let unit = place * 4 + 4 - 2 * count;
        let pair = |byte: &u8| (*byte ^ flip).wrapping_sub(1);
        let mut digits = if count <= 18 {
            IBig::from(pairs.iter().fold(0u128, |made, byte| made * 100 + u128::from(pair(byte))))
        } else {
            let mut written = String::with_capacity(pairs.len() * 2);
            for byte in pairs {
                let pair = pair(byte);
                written.push(char::from(b'0' + pair / 10));
                written.push(char::from(b'0' + pair % 10));
            }
            written.parse().map_err(|_| DAMAGED)?
        };
        let needed = match digits.clone() % IBig::from(10) == IBig::ZERO {
            true => -unit - 1,
            false => -unit,
        };
        let scale = match scale {
            Some(scale) => i32::from(scale),
            None => needed.max(0),
        };
        match unit + scale {
            0 => {}
            up @ 1.. => digits *= super::power_of_ten(up),
            -1 if needed <= scale => digits /= IBig::from(10),
            _ => return Err("a numeric value has more digits after the point than it shows"),
        }
        Numeric::new(if is_negative { -digits } else { digits }, scale).map_err(|_| DAMAGED)
    }
}

/// How many bytes of a key belong to the number that it begins with.
///
/// # Errors
/// Bytes that are no number.
pub fn key_length(key: &[u8]) -> Result<usize, &'static str> {
    let end = match *key.first().ok_or(ENDS)? {
        NEGATIVE_INFINITY | ZERO | INFINITY | NAN => return Ok(1),
        BELOW_ZERO => 0xFF,
        ABOVE_ZERO => 0,
        _ => return Err("a numeric value is of a kind that there is not"),
    };
    let digits = key.get(3..).ok_or(ENDS)?;
    let length = digits.iter().position(|byte| *byte == end).ok_or(ENDS)?;
    let is_digit = |byte: &u8| (1..=100).contains(&(*byte ^ end));
    let (last, ends_in_zero) = (length.checked_sub(1).ok_or(DAMAGED)?, 1 ^ end);
    match digits[..length].iter().all(is_digit) && digits[last] != ends_in_zero {
        true => Ok(3 + length + 1),
        false => Err(DAMAGED),
    }
}

/// The bytes of a row without the digits shown: equal for equal numbers, and ordered as they are.
#[must_use]
pub fn comparable(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().saturating_sub(SCALE_BYTES)]
}

/// Whether these are the bytes of a row.
///
/// # Errors
/// What is wrong with them.
pub fn check_code(bytes: &[u8]) -> Result<(), &'static str> {
    Numeric::read(bytes).map(|_| ())
}
