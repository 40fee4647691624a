//! Times of day that say how far their clock is from UTC.

use std::cmp::Ordering;
use std::fmt;

use crate::calendar::DAY_MICROS;

/// Bytes of such a time, in a row, in a key and in an array.
pub(crate) const TIME_TZ_BYTES: usize = 12;
/// Seconds that a clock may be away from UTC; all are less.
const OFFSET_SECONDS: i32 = 16 * 3600;

/// See the module. Those that are equal are written alike: of the same moment the one further east comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeTz {
    /// Microseconds since midnight, by its own clock.
    pub micros: i64,
    /// Seconds that its clock is ahead of UTC.
    pub offset_seconds: i32,
}

impl TimeTz {
    /// Whether there is such a time.
    #[must_use]
    pub fn is_sound(self) -> bool {
        (0..=DAY_MICROS).contains(&self.micros) && self.offset_seconds.abs() < OFFSET_SECONDS
    }

    /// Microseconds since midnight by a clock in UTC; less than none, and more than a day's, too.
    #[must_use]
    pub fn utc_micros(self) -> i64 {
        self.micros - i64::from(self.offset_seconds) * 1_000_000
    }

    /// The same moment by another clock.
    #[must_use]
    pub fn at_offset(self, offset_seconds: i32) -> TimeTz {
        let micros = self.utc_micros() + i64::from(offset_seconds) * 1_000_000;
        TimeTz { micros: micros.rem_euclid(DAY_MICROS), offset_seconds }
    }

    /// Ordered as the values are: microseconds in UTC, then seconds to the west, both big-endian with the sign bit
    /// flipped.
    #[must_use]
    pub fn to_ordered_bytes(self) -> [u8; TIME_TZ_BYTES] {
        let mut bytes = [0; TIME_TZ_BYTES];
        let micros = self.utc_micros().cast_unsigned() ^ (1 << 63);
        bytes[..8].copy_from_slice(&micros.to_be_bytes());
        let west = (-self.offset_seconds).cast_unsigned() ^ (1 << 31);
        bytes[8..].copy_from_slice(&west.to_be_bytes());
        bytes
    }

    /// What [`to_ordered_bytes`](Self::to_ordered_bytes) gave; of other bytes something that may be no such time.
    #[must_use]
    pub fn from_ordered_bytes(bytes: [u8; TIME_TZ_BYTES]) -> TimeTz {
        let [a, b, c, d, e, f, g, h, west @ ..] = bytes;
        let utc = (u64::from_be_bytes([a, b, c, d, e, f, g, h]) ^ (1 << 63)).cast_signed();
        let west = (u32::from_be_bytes(west) ^ (1 << 31)).cast_signed();
        let offset_seconds = west.wrapping_neg();
        let micros = utc.wrapping_add(i64::from(offset_seconds) * 1_000_000);
        TimeTz { micros, offset_seconds }
    }
}

impl Ord for TimeTz {
    fn cmp(&self, other: &TimeTz) -> Ordering {
        let in_utc = self.utc_micros().cmp(&other.utc_micros());
        in_utc.then(other.offset_seconds.cmp(&self.offset_seconds))
    }
}

impl PartialOrd for TimeTz {
    fn partial_cmp(&self, other: &TimeTz) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for TimeTz {
    /// As PostgreSQL does: `04:05:06.7-08`, `04:05:06+05:30`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_time(self.micros, formatter)?;
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let seconds = self.offset_seconds.unsigned_abs();
        write!(formatter, "{sign}{:02}", seconds / 3600)?;
        if !seconds.is_multiple_of(3600) {
            write!(formatter, ":{:02}", seconds / 60 % 60)?;
        }
        if !seconds.is_multiple_of(60) {
            write!(formatter, ":{:02}", seconds % 60)?;
        }
        Ok(())
    }
}

/// Seconds of `+05:30`; a sign and two digits, and as many for minutes and seconds.
pub(crate) fn offset_of(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-'])?;
    let mut seconds = 0;
    let mut unit = 3600;
    for part in digits.split(':') {
        let number: i32 = part.parse().ok().filter(|_| part.len() == 2)?;
        if unit == 0 || number > 59 {
            return None;
        }
        seconds += number * unit;
        unit /= 60;
    }
    Some(if text.starts_with('-') { -seconds } else { seconds })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_time() -> impl Strategy<Value = TimeTz> {
        (0..=DAY_MICROS, -57_599..57_600i32)
            .prop_map(|(micros, offset_seconds)| TimeTz { micros, offset_seconds })
    }

    proptest! {
        #[test]
        fn bytes_are_ordered_as_times_are(one in any_time(), other in any_time()) {
            let (left, right) = (one.to_ordered_bytes(), other.to_ordered_bytes());
            prop_assert_eq!(left.cmp(&right), one.cmp(&other));
            prop_assert_eq!(TimeTz::from_ordered_bytes(left), one);
            prop_assert_eq!(one.cmp(&other).is_eq(), one == other);
        }

        #[test]
        fn any_bytes_are_something(bytes: [u8; 12]) {
            let _ = TimeTz::from_ordered_bytes(bytes).is_sound();
        }
    }
}
