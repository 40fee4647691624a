//! Timestamps and intervals by a pattern, and moments out of text by one.

use super::not_supported;
use super::template::{Field, Node, parts};
use onrush::Interval;

use crate::error::{QueryError, Result};
use crate::interval::MICROS_PER_DAY;
use crate::timestamp::{
    Day, date, day_at, day_of, day_of_year, julian_day, julian_days, out_of_range, shown_year,
    timestamp_at, timestamp_out_of_range,
};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
/// Names are filled with blanks to the width of the longest.
const NAME_WIDTH: usize = 9;

/// A moment or an interval, broken down into what patterns ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken<'z> {
    year: i64,
    month: i64,
    day: i64,
    /// What is less than a day; of an interval as much as it has.
    micros: i64,
    /// None for an interval.
    date: Option<Day>,
    /// The offset, in seconds, and the abbreviation of its zone, if there is one.
    zone: Option<(i32, &'z str)>,
}

impl<'z> Broken<'z> {
    /// A timestamp in microseconds, as clocks show it.
    pub(crate) fn timestamp(micros: i64, zone: Option<(i32, &'z str)>) -> Broken<'z> {
        let day = day_at(micros);
        Broken {
            year: day.year(),
            month: day.month().into(),
            day: day.day().into(),
            micros: micros.rem_euclid(MICROS_PER_DAY),
            date: Some(day),
            zone,
        }
    }

    pub(crate) fn interval(interval: Interval) -> Broken<'z> {
        Broken {
            year: (interval.months / 12).into(),
            month: (interval.months % 12).into(),
            day: interval.days.into(),
            micros: interval.micros,
            date: None,
            zone: None,
        }
    }

    /// The year as it is shown: before Christ without its sign.
    fn year_of_era(&self) -> i64 {
        if self.date.is_some() && self.year <= 0 { 1 - self.year } else { self.year }
    }

    fn date(&self) -> Result<Day> {
        self.date.ok_or_else(|| {
            QueryError::refused("22007", "invalid format specification for an interval value")
        })
    }

    fn seconds(&self) -> i64 {
        self.micros / 1_000_000
    }
}

/// The moment as the pattern says.
///
/// # Errors
/// Words that intervals do not have, or that are not understood.
pub(crate) fn write_timestamp(pattern: &str, timestamp: &Broken<'_>) -> Result<String> {
    let mut written = String::new();
    for node in parts(pattern)? {
        match node {
            Node::Literal(text) => written.push_str(&text),
            Node::Field(field) => written.push_str(&write_field(&field, timestamp)?),
        }
    }
    Ok(written)
}

fn write_field(field: &Field, timestamp: &Broken<'_>) -> Result<String> {
    let hour = timestamp.seconds() / 3600;
    let fraction = timestamp.micros.abs() % 1_000_000;
    let within = || timestamp.date().map(Day::within);
    let iso = || within().map(jiff::civil::Date::iso_week_date);
    let year = timestamp.year_of_era();
    // Of a week before Christ the year is shown without its sign.
    let iso_year = || timestamp.date().map(|day| shown_year(day.iso_year()).abs());
    let (number, width) = match field.word {
        "AM" | "PM" => return Ok(field.case.of(if hour % 24 >= 12 { "PM" } else { "AM" })),
        "A.M." | "P.M." => return Ok(field.case.of(if hour % 24 >= 12 { "P.M." } else { "A.M." })),
        "AD" | "BC" => return Ok(field.case.of(if timestamp.year > 0 { "AD" } else { "BC" })),
        "A.D." | "B.C." => {
            return Ok(field.case.of(if timestamp.year > 0 { "A.D." } else { "B.C." }));
        }
        "TZ" => return Ok(field.case.of(timestamp.zone.map_or("", |(_, name)| name))),
        "TZH" | "TZM" | "OF" => return Ok(write_zone(field.word, timestamp)),
        "DAY" | "DY" => {
            let name =
                WEEKDAYS[usize::from(within()?.weekday().to_monday_zero_offset().unsigned_abs())];
            return Ok(name_of(field, name, field.word == "DY"));
        }
        "MONTH" | "MON" => {
            let month = usize::from(timestamp.date()?.month().unsigned_abs());
            return Ok(name_of(field, MONTHS[month - 1], field.word == "MON"));
        }
        "RM" => {
            let month = usize::from(timestamp.date()?.month().unsigned_abs());
            let roman = field.case.of(ROMAN[month - 1]);
            return Ok(if field.is_tight { roman } else { format!("{roman:4}") });
        }
        "Y,YYY" => {
            return Ok(format!("{},{:03}", year / 1000, year % 1000));
        }
        "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let digits = usize::from(field.word.as_bytes()[2] - b'0');
            return Ok(format!("{fraction:06}")[..digits].to_owned());
        }
        "HH" | "HH12" => (if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
        "HH24" => (hour, 2),
        "MI" => (timestamp.seconds() / 60 % 60, 2),
        "SS" => (timestamp.seconds() % 60, 2),
        "SSSS" | "SSSSS" => (timestamp.seconds(), 0),
        "MS" => (fraction / 1000, 3),
        "US" => (fraction, 6),
        "YYYY" => (year, 4),
        "YYY" => (year % 1000, 3),
        "YY" => (year % 100, 2),
        "Y" => (year % 10, 1),
        "IYYY" => (iso_year()?, 4),
        "IYY" => (iso_year()? % 1000, 3),
        "IY" => (iso_year()? % 100, 2),
        "I" => (iso_year()? % 10, 1),
        "CC" if timestamp.date.is_none() => (timestamp.year / 100, 2),
        "CC" if timestamp.year <= 0 => ((timestamp.year - 100) / 100, 2),
        "CC" => ((timestamp.year + 99) / 100, 2),
        "Q" => ((timestamp.date()?.month() as i64 - 1) / 3 + 1, 0),
        "MM" => (timestamp.month, 2),
        // All days that an interval has, about.
        "DDD" if timestamp.date.is_none() => {
            ((timestamp.year * 12 + timestamp.month) * 30 + timestamp.day, 3)
        }
        "DDD" => (within()?.day_of_year().into(), 3),
        "DD" => (timestamp.day, 2),
        "D" => (i64::from(within()?.weekday().to_sunday_one_offset()), 0),
        "ID" => (i64::from(within()?.weekday().to_monday_one_offset()), 0),
        "WW" => ((i64::from(within()?.day_of_year()) - 1) / 7 + 1, 2),
        "IW" => (iso()?.week().into(), 2),
        "IDDD" => {
            let of = iso()?;
            let weekday = i64::from(of.weekday().to_monday_one_offset());
            ((i64::from(of.week()) - 1) * 7 + weekday, 3)
        }
        "W" => ((timestamp.day - 1) / 7 + 1, 0),
        "J" => (julian_day(timestamp.date()?), 0),
        other => return Err(not_supported(other)),
    };
    let width = if field.is_tight { 0 } else { width };
    let digits = match number < 0 {
        // The day of an interval counts its sign among its digits.
        true if field.word != "DD" => format!("-{:0width$}", -number),
        _ => format!("{number:0width$}"),
    };
    Ok(match field.ordinal {
        Some(case) => digits + &case.of(ordinal(number)),
        None => digits,
    })
}

fn write_zone(word: &str, timestamp: &Broken<'_>) -> String {
    let seconds = timestamp.zone.map_or(0, |(seconds, _)| seconds);
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
    match word {
        "TZM" => format!("{minutes:02}"),
        "OF" if minutes != 0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}"),
    }
}

fn name_of(field: &Field, name: &str, is_short: bool) -> String {
    let name = field.case.of(if is_short { &name[..3] } else { name });
    if field.is_tight || is_short { name } else { format!("{name:NAME_WIDTH$}") }
}

fn ordinal(number: i64) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// What was read of a moment; what was not is as on the first day of the year.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian_day: Option<i64>,
    hour: i64,
    is_of_twelve: bool,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
}

/// A day, in days.
///
/// # Errors
/// Text that does not follow the pattern; words that are not understood.
pub(crate) fn read_date(pattern: &str, written: &str) -> Result<i32> {
    let day = read(pattern, written)?.date()?;
    let message = || format!("date out of range: \"{written}\"");
    date(day.days()).ok_or_else(|| QueryError::refused("22008", message()))
}

/// A moment, in microseconds.
///
/// # Errors
/// As for [`read_date`].
pub(crate) fn read_timestamp(pattern: &str, written: &str) -> Result<i64> {
    let read = read(pattern, written)?;
    let hour = match (read.is_of_twelve || read.is_afternoon.is_some(), read.is_afternoon) {
        (true, _) if !(1..=12).contains(&read.hour) && read.is_of_twelve => {
            let message = format!("hour \"{}\" is invalid for the 12-hour clock", read.hour);
            return Err(QueryError::refused("22007", message));
        }
        (true, Some(true)) if read.hour < 12 => read.hour + 12,
        (true, Some(false)) if read.hour == 12 => 0,
        (true, None) if read.hour == 12 => 0,
        _ => read.hour,
    };
    if hour > 23 || read.minute > 59 || read.second > 59 {
        return Err(out_of_range());
    }
    let seconds = hour * 3600 + read.minute * 60 + read.second;
    let time = seconds * 1_000_000 + read.micros;
    timestamp_at(read.date()?.days(), time).ok_or_else(timestamp_out_of_range)
}

impl Read {
    fn date(&self) -> Result<Day> {
        if let Some(day) = self.julian_day {
            let day = i32::try_from(julian_days(day)).map_err(|_| out_of_range())?;
            return Ok(Day::at(day.into()));
        }
        let year = self.year.filter(|year| (1..=i64::from(i32::MAX)).contains(year));
        let year = year.ok_or_else(out_of_range)?;
        match self.day_of_year {
            Some(day) if self.month.is_none() && self.day.is_none() => day_of_year(year, day),
            _ => day_of(year, self.month.unwrap_or(1), self.day.unwrap_or(1)),
        }
    }
}

fn read(pattern: &str, written: &str) -> Result<Read> {
    let nodes = parts(pattern)?;
    let mut read = Read::default();
    let mut rest = written.trim_start();
    for (at, node) in nodes.iter().enumerate() {
        match node {
            Node::Literal(text) => {
                for character in text.chars() {
                    rest = if character.is_alphanumeric() {
                        rest.char_indices().nth(1).map_or("", |(next, _)| &rest[next..])
                    } else {
                        rest.trim_start_matches(|c: char| !c.is_alphanumeric())
                    };
                }
            }
            Node::Field(field) => {
                rest = rest.trim_start();
                if rest.is_empty() {
                    break;
                }
                let is_bounded = !field.is_tight && is_number(nodes.get(at + 1));
                rest = read_field(field, is_bounded, rest, &mut read)?;
            }
        }
    }
    Ok(read)
}

/// Whether what follows begins with digits, so that those in front must be counted.
fn is_number(node: Option<&Node>) -> bool {
    match node {
        Some(Node::Field(field)) => {
            !matches!(field.word, "DAY" | "DY" | "MONTH" | "MON" | "AM" | "PM" | "A.M." | "P.M.")
        }
        Some(Node::Literal(text)) => text.starts_with(|c: char| c.is_ascii_digit()),
        None => false,
    }
}

/// Reads one field, and returns what is behind it.
fn read_field<'t>(
    field: &Field,
    is_bounded: bool,
    text: &'t str,
    read: &mut Read,
) -> Result<&'t str> {
    let bad = || {
        let given: String = text.chars().take(field.word.len()).collect();
        let message = format!("invalid value \"{given}\" for \"{}\"", field.written());
        QueryError::refused("22007", message)
    };
    let name = |names: &[&str], is_short: bool| {
        names.iter().enumerate().find_map(|(index, name)| {
            let name = if is_short { &name[..3] } else { name };
            let is_here = text.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
            is_here.then(|| (index as i64 + 1, &text[name.len()..]))
        })
    };
    let digits = |width: usize| -> Result<(i64, usize, &'t str)> {
        let many = text.bytes().take_while(u8::is_ascii_digit).count();
        let many = if is_bounded { many.min(width) } else { many };
        let number = text[..many].parse().map_err(|_| bad())?;
        Ok((number, many, &text[many..]))
    };
    // Of a fraction the digits that are not written are zeros.
    let fraction = |width: usize| -> Result<(i64, &'t str)> {
        let (_, many, rest) = digits(width)?;
        let shown = format!("{:0<6}", &text[..many.min(6)]);
        Ok((shown.parse().map_err(|_| bad())?, rest))
    };
    let rest = match field.word {
        "MONTH" | "MON" => {
            let (month, rest) = name(&MONTHS, field.word == "MON").ok_or_else(bad)?;
            read.month = Some(month);
            rest
        }
        // It says nothing that the date does not.
        "DAY" | "DY" => name(&WEEKDAYS, field.word == "DY").ok_or_else(bad)?.1,
        "AM" | "PM" | "A.M." | "P.M." => {
            let names = if field.word.contains('.') { ["a.m.", "p.m."] } else { ["am", "pm"] };
            let is_here = |name: &&str| {
                text.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name))
            };
            let found = names.iter().position(is_here).ok_or_else(bad)?;
            read.is_afternoon = Some(found == 1);
            &text[names[found].len()..]
        }
        "YYYY" | "YYY" | "YY" | "Y" => {
            let (year, many, rest) = digits(field.word.len())?;
            read.year = Some(whole_year(year, many, field.word.len()));
            rest
        }
        "MS" => {
            let (micros, rest) = fraction(3)?;
            read.micros = micros;
            rest
        }
        word @ ("US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6") => {
            let (micros, rest) = fraction(6)?;
            if text.len() - rest.len() > 6 {
                return Err(out_of_range());
            }
            // Of as many digits as the pattern has.
            let kept = word.strip_prefix("FF").and_then(|kept| kept.parse().ok());
            let unit = 10i64.pow(6 - kept.unwrap_or(6u32).min(6));
            read.micros = (micros + unit / 2) / unit * unit;
            rest
        }
        word => {
            let width = match word {
                "DDD" => 3,
                "J" => 7,
                "SSSS" | "SSSSS" => 5,
                "D" | "Q" => 1,
                _ => 2,
            };
            let (number, _, rest) = digits(width)?;
            match word {
                "MM" => read.month = Some(number),
                "DD" => read.day = Some(number),
                "DDD" => read.day_of_year = Some(number),
                "J" => read.julian_day = Some(number),
                "HH24" => read.hour = number,
                "HH" | "HH12" => (read.hour, read.is_of_twelve) = (number, true),
                "MI" => read.minute = number,
                "SS" => read.second = number,
                "SSSS" | "SSSSS" => {
                    (read.hour, read.minute, read.second) =
                        (number / 3600, number / 60 % 60, number % 60);
                }
                // They say nothing that the date does not.
                "D" | "Q" => {}
                other => return Err(not_supported(&format!("reading {other}"))),
            }
            rest
        }
    };
    if field.ordinal.is_some() { Ok(rest.get(2..).unwrap_or("")) } else { Ok(rest) }
}

/// A year of which fewer than four digits are wanted is the one nearest to 2020.
fn whole_year(year: i64, digits: usize, wanted: usize) -> i64 {
    match year {
        _ if wanted == 4 || digits > 3 => year,
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        100..=519 => year + 2000,
        _ => year + 1000,
    }
}
