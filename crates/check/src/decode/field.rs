//! What the bytes of one column may be, as stored in a row.

use onrush_types::{DataType, EnumType};

use super::address::{NETWORK_BYTES, is_address, is_network};

/// 4714-11-24 BC and the day after 5874897-12-31, in days since 1970-01-01.
const DATE_DAYS: std::ops::Range<i32> = -2_440_588..2_145_042_906;
/// Microseconds of a day.
pub(crate) const DAY_MICROS: i64 = 86_400_000_000;
/// From the same day to the end of the year 294246, in microseconds.
const TIMESTAMP_MICROS: std::ops::Range<i64> =
    DATE_DAYS.start as i64 * DAY_MICROS..106_751_982 * DAY_MICROS;

/// Whether there is such a day. The least and the greatest number are the infinities.
pub(crate) fn is_date(days: i32) -> bool {
    DATE_DAYS.contains(&days) || matches!(days, i32::MIN | i32::MAX)
}

/// Whether there is such a timestamp; as of days.
pub(crate) fn is_timestamp(micros: i64) -> bool {
    TIMESTAMP_MICROS.contains(&micros) || matches!(micros, i64::MIN | i64::MAX)
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// Any bytes of this width.
    Any(usize),
    Boolean,
    /// The number times 10^scale, of so many digits, in 8 or 12 bytes.
    Decimal(u8),
    /// Blanks at the end up to this width.
    Char(usize),
    /// Text of up to so many bytes.
    Text(usize),
    /// Text of up to so many characters.
    Characters(usize),
    Bytes,
    Date,
    Time,
    TimeTz,
    /// An address of a host.
    Address,
    /// An address of a network.
    Network,
    Timestamp,
    Numeric,
    /// The code of a label of the type of this number.
    Label(EnumType),
}

impl Rule {
    pub(crate) fn of(data_type: DataType) -> Rule {
        match data_type {
            DataType::Boolean => Rule::Boolean,
            DataType::Int16 => Rule::Any(2),
            DataType::Int32 | DataType::Float32 | DataType::Oid => Rule::Any(4),
            DataType::Name => Rule::Text(63),
            DataType::TimeTz => Rule::TimeTz,
            DataType::Inet => Rule::Address,
            DataType::Cidr => Rule::Network,
            DataType::MacAddress => Rule::Any(6),
            DataType::Int64 | DataType::Float64 => Rule::Any(8),
            DataType::Decimal { precision, .. } => Rule::Decimal(precision),
            DataType::Char(length) => Rule::Char(usize::from(length)),
            DataType::Varchar(length) => Rule::Characters(length as usize),
            DataType::Text
            | DataType::Json
            | DataType::Jsonb
            | DataType::Array(_)
            | DataType::Composite(_) => Rule::Text(usize::MAX),
            DataType::Bytes => Rule::Bytes,
            DataType::Uuid | DataType::Interval => Rule::Any(16),
            DataType::Rounded(clock, _) => Rule::of(clock.data_type()),
            DataType::Date => Rule::Date,
            DataType::Time => Rule::Time,
            DataType::Timestamp | DataType::TimestampTz => Rule::Timestamp,
            DataType::Numeric(_) => Rule::Numeric,
            DataType::Enum(of) => Rule::Label(of),
        }
    }

    /// Bytes in a row, where all values take the same.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            Rule::Any(width) | Rule::Char(width) => Some(width),
            Rule::Boolean => Some(1),
            Rule::Decimal(digits) => Some(if digits > 18 { 12 } else { 8 }),
            Rule::Date | Rule::Label(_) => Some(4),
            Rule::TimeTz => Some(12),
            Rule::Address | Rule::Network => Some(NETWORK_BYTES),
            Rule::Time | Rule::Timestamp => Some(8),
            Rule::Text(_) | Rule::Characters(_) | Rule::Bytes | Rule::Numeric => None,
        }
    }

    /// Checks bytes of the right width.
    #[inline(always)]
    pub(crate) fn check(self, bytes: &[u8]) -> Result<(), &'static str> {
        let sound = match self {
            Rule::Any(_) | Rule::Bytes => true,
            Rule::Numeric => {
                let (key, scale) = bytes.split_last_chunk::<2>().ok_or(NOT_NUMERIC)?;
                is_numeric(key) && u16::from_be_bytes(*scale) <= 16_383
            }
            Rule::Boolean => bytes[0] <= 1,
            Rule::Char(_) => return if is_text(bytes) { Ok(()) } else { Err(NOT_TEXT) },
            Rule::Text(limit) | Rule::Characters(limit) if bytes.len() <= limit => {
                return if is_text(bytes) { Ok(()) } else { Err(NOT_TEXT) };
            }
            Rule::Characters(_) if !is_text(bytes) => return Err(NOT_TEXT),
            Rule::Characters(limit) if characters(bytes) <= limit => true,
            Rule::Text(_) | Rule::Characters(_) => return Err("a text is longer than declared"),
            Rule::Decimal(digits @ ..=18) => {
                let limit = 10u64.pow(u32::from(digits));
                number(bytes).is_some_and(|number| number.unsigned_abs() < limit)
            }
            Rule::Decimal(digits) => signed_96(bytes).abs() < 10i128.pow(u32::from(digits)),
            Rule::Date => {
                bytes.first_chunk::<4>().is_some_and(|days| is_date(i32::from_le_bytes(*days)))
            }
            Rule::TimeTz => is_time_tz(bytes),
            Rule::Address => is_address(bytes),
            Rule::Network => is_network(bytes),
            Rule::Label(of) => bytes
                .first_chunk::<4>()
                .is_some_and(|code| of.label(u32::from_le_bytes(*code)).is_some()),
            Rule::Time => number(bytes).is_some_and(|micros| (0..=DAY_MICROS).contains(&micros)),
            Rule::Timestamp => number(bytes).is_some_and(is_timestamp),
        };
        if sound { Ok(()) } else { Err(self.fault()) }
    }

    /// Checks bytes of any width.
    pub(crate) fn check_any(self, bytes: &[u8]) -> Result<(), &'static str> {
        match self.width() {
            Some(width) if width != bytes.len() => Err("a value has the wrong width"),
            _ => self.check(bytes),
        }
    }

    fn fault(self) -> &'static str {
        match self {
            Rule::Boolean => "a boolean is neither 0 nor 1",
            Rule::Decimal(_) => "a decimal has more digits than declared",
            Rule::Date => "a date is not in the years 4714 BC to 5874897",
            Rule::TimeTz => "a time of day is not up to 24:00:00 or too far from UTC",
            Rule::Time => "a time of day is not up to 24:00:00",
            Rule::Address => "an address has another version than 4 or 6, or too long a network",
            Rule::Network => "a network is none, or has bits set to the right of its mask",
            Rule::Numeric => NOT_NUMERIC,
            Rule::Label(_) => NOT_LABEL,
            Rule::Timestamp => "a timestamp is not in the years 4714 BC to 294246",
            _ => NOT_TEXT,
        }
    }
}

/// Characters of a text: each byte begins one that does not go on with one.
pub(crate) fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// Microseconds in UTC and seconds west of it, big-endian, sign bits flipped.
pub(crate) fn is_time_tz(bytes: &[u8]) -> bool {
    let Some((micros, west)) = bytes.split_at_checked(8) else { return false };
    let (micros, west) = (super::key::integer(micros), super::key::integer(west));
    west.abs() < 16 * 3600 && (0..=i128::from(DAY_MICROS)).contains(&(micros - west * 1_000_000))
}

pub(crate) const NOT_TEXT: &str = "a text is not UTF-8";

pub(crate) const NOT_LABEL: &str = "a label is not one of its type";

pub(crate) const NOT_NUMERIC: &str = "a numeric value is not in its form";

/// Whether a numeric value ends where these bytes end.
pub(crate) fn is_numeric(bytes: &[u8]) -> bool {
    numeric_length(bytes) == Some(bytes.len())
}

/// The bytes of the numeric value that these begin with: what it is, and of a number that is not zero the place of its
/// first digits, the digits, each 1 to 100, the last not 1, and 0. Below zero all bits behind the first byte are
/// flipped.
pub(crate) fn numeric_length(bytes: &[u8]) -> Option<usize> {
    let flip = match bytes.first()? {
        1 | 3 | 5 | 6 => return Some(1),
        2 => 0xFF,
        4 => 0,
        _ => return None,
    };
    let digits = bytes.get(3..)?;
    let count = digits.iter().position(|byte| byte ^ flip == 0)?;
    let last = digits[..count].last()? ^ flip;
    let is_sound = last > 1 && digits[..count].iter().all(|byte| byte ^ flip <= 100);
    is_sound.then_some(3 + count + 1)
}

/// Mostly plain ASCII, which is quicker to see.
#[inline]
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    is_plain(bytes) || std::str::from_utf8(bytes).is_ok()
}

/// As `<[u8]>::is_ascii`, without its loop over the last few bytes: instead some of those before are
/// looked at once more.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    const STEP: usize = 16;
    let Some(tail) = bytes.last_chunk::<STEP>() else { return bytes.is_ascii() };
    let (steps, _) = bytes.as_chunks::<STEP>();
    let tail = u128::from_ne_bytes(*tail);
    let any = steps.iter().fold(tail, |any, step| any | u128::from_ne_bytes(*step));
    any & u128::from_ne_bytes([0x80; STEP]) == 0
}

#[inline]
fn number(bytes: &[u8]) -> Option<i64> {
    bytes.first_chunk::<8>().map(|bytes| i64::from_le_bytes(*bytes))
}

/// Twelve bytes with a sign.
fn signed_96(bytes: &[u8]) -> i128 {
    let mut wide = if bytes[11] >= 0x80 { [0xFF; 16] } else { [0; 16] };
    wide[..12].copy_from_slice(&bytes[..12]);
    i128::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_not_plain_is_seen_wherever_it_stands() {
        for length in 0..70 {
            let mut bytes = vec![b'a'; length];
            assert!(is_plain(&bytes));
            for at in 0..length {
                bytes[at] = 0x80;
                assert!(!is_plain(&bytes), "{at} of {length}");
                bytes[at] = b'a';
            }
        }
        assert!(is_text("über allem".as_bytes()));
    }
}
