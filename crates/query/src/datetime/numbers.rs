//! Numbers in dates and times: what they are follows from how many digits they have and from what is known already.

use super::decode::{Known, Parts};
use super::{Bad, Decoded};
use crate::style::DateOrder;

/// Hours of the largest offset.
const OFFSET_HOURS_MAX: i32 = 15;

impl Known {
    /// A number that stands alone.
    pub(super) fn number(&mut self, text: &str, order: DateOrder, known: u8) -> Decoded<u8> {
        let (digits, fraction) =
            text.split_once('.').map_or((text, None), |(all, part)| (all, Some(part)));
        let value = whole(digits)?;
        if let Some(fraction) = fraction {
            if digits.len() > 2 {
                return self.run_together(text, known | Parts::DATE);
            }
            self.micros = fraction_micros(fraction)?;
        }
        let of_date = known & Parts::DATE;
        if text.len() == 3 && of_date == Parts::YEAR && (1..=366).contains(&value) {
            self.day_of_year = Some(value);
            return Ok(Parts::MONTH | Parts::DAY);
        }
        let is_year = text.len() >= 3 || order == DateOrder::Ymd;
        let part = match of_date {
            0 if is_year => Parts::YEAR,
            0 if order == DateOrder::Dmy => Parts::DAY,
            0 => Parts::MONTH,
            Parts::YEAR => Parts::MONTH,
            Parts::MONTH if self.has_month_name && is_year => Parts::YEAR,
            Parts::MONTH => Parts::DAY,
            Parts::YEAR_AND_MONTH
                if self.has_month_name && text.len() >= 3 && self.has_short_year =>
            {
                // The first number was the day.
                self.day = self.year;
                self.year = value;
                self.has_short_year = false;
                return Ok(Parts::DAY);
            }
            Parts::YEAR_AND_MONTH => Parts::DAY,
            Parts::DAY => Parts::MONTH,
            Parts::MONTH_AND_DAY => Parts::YEAR,
            Parts::DATE => return self.run_together(text, known),
            _ => return Err(Bad::Format),
        };
        match part {
            Parts::YEAR => {
                self.year = value;
                self.has_short_year = text.len() <= 2;
            }
            Parts::MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(part)
    }

    /// Digits of a date, or of a time, without anything between them.
    pub(super) fn run_together(&mut self, text: &str, known: u8) -> Decoded<u8> {
        let digits = match text.split_once('.') {
            Some((digits, fraction)) => {
                self.micros = fraction_micros(fraction)?;
                digits
            }
            None if known & Parts::DATE != Parts::DATE && text.len() >= 6 => {
                let (rest, day) = text.split_at(text.len() - 2);
                let (year, month) = rest.split_at(rest.len() - 2);
                (self.year, self.month, self.day) = (whole(year)?, whole(month)?, whole(day)?);
                self.has_short_year = year.len() == 2;
                return Ok(Parts::DATE);
            }
            None => text,
        };
        if known & Parts::TIME != 0 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Bad::Format);
        }
        (self.hour, self.minute, self.second) = match digits.len() {
            6 => (whole(&digits[..2])?, whole(&digits[2..4])?, whole(&digits[4..])?),
            4 => (whole(&digits[..2])?, whole(&digits[2..])?, 0),
            _ => return Err(Bad::Format),
        };
        Ok(Parts::TIME)
    }

    /// `04:05:06.7`; of two numbers the second of which has a fraction, minutes and seconds.
    pub(super) fn time(&mut self, text: &str) -> Decoded<()> {
        let mut parts = text.split(':');
        let (hour, minute) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let second = parts.next();
        if parts.next().is_some() {
            return Err(Bad::Format);
        }
        let with_fraction = |text: &str| -> Decoded<(i64, i64)> {
            match text.split_once('.') {
                Some((second, fraction)) => Ok((whole(second)?, fraction_micros(fraction)?)),
                None => Ok((whole(text)?, 0)),
            }
        };
        (self.hour, self.minute, self.second) = match second {
            Some(second) => {
                let (second, micros) = with_fraction(second)?;
                self.micros = micros;
                (whole(hour)?, whole(minute)?, second)
            }
            None if minute.contains('.') => {
                let (second, micros) = with_fraction(minute)?;
                self.micros = micros;
                (0, whole(hour)?, second)
            }
            None => (whole(hour)?, whole(minute)?, 0),
        };
        let is_there = self.minute <= 59 && self.second <= 60;
        if is_there { Ok(()) } else { Err(Bad::Field) }
    }
}

/// `+08`, `-0330`, `+01:30:15`, in seconds to the east.
pub(super) fn offset(text: &str) -> Decoded<i32> {
    let (sign, digits) = match text.split_at_checked(1) {
        Some(("+", digits)) => (1, digits),
        Some(("-", digits)) => (-1, digits),
        _ => return Err(Bad::Format),
    };
    let number =
        |text: &str| -> Decoded<i32> { i32::try_from(whole(text)?).map_err(|_| Bad::Offset) };
    let mut parts = digits.split(':');
    let first = parts.next().unwrap_or_default();
    let (hours, minutes, seconds) = match (parts.next(), parts.next()) {
        (None, _) if first.len() > 2 => (number(first)? / 100, number(first)? % 100, 0),
        (None, _) => (number(first)?, 0, 0),
        (Some(minutes), None) => (number(first)?, number(minutes)?, 0),
        (Some(minutes), Some(seconds)) => (number(first)?, number(minutes)?, number(seconds)?),
    };
    if parts.next().is_some() {
        return Err(Bad::Format);
    }
    if hours > OFFSET_HOURS_MAX || minutes > 59 || seconds > 59 {
        return Err(Bad::Offset);
    }
    Ok(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// Digits, and nothing else.
pub(super) fn whole(digits: &str) -> Decoded<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Bad::Format);
    }
    digits.parse::<i32>().map(i64::from).map_err(|_| Bad::Field)
}

/// What stands behind the point of seconds, in rounded microseconds.
pub(super) fn fraction_micros(digits: &str) -> Decoded<i64> {
    if digits.is_empty() {
        return Ok(0);
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Bad::Format);
    }
    let part: f64 = format!("0.{digits}").parse().map_err(|_| Bad::Format)?;
    Ok((part * 1e6).round_ties_even() as i64)
}
