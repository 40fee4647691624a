//! Fields as a date, a time and a zone.

use super::cut::{Field, Kind};
use super::numbers::{offset, whole};
use super::words::{Label, Word, meaning};
use super::{Bad, Decoded, Place, Read, today};
use crate::abbreviations;
use crate::interval::MICROS_PER_DAY;
use crate::style::{DateOrder, Zone};
use crate::timestamp::{day_of, day_of_year, julian_days};

/// What is known of a date and time, as bits.
pub(super) struct Parts;

impl Parts {
    pub(super) const YEAR: u8 = 1;
    pub(super) const MONTH: u8 = 2;
    pub(super) const DAY: u8 = 4;
    pub(super) const DATE: u8 = 7;
    pub(super) const YEAR_AND_MONTH: u8 = 3;
    pub(super) const MONTH_AND_DAY: u8 = 6;
    pub(super) const TIME: u8 = 8;
    const ZONE: u8 = 16;
    const HALF: u8 = 32;
    const ERA: u8 = 64;
}

/// What the fields up to here have told.
#[derive(Default)]
pub(super) struct Known {
    parts: u8,
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) day_of_year: Option<i64>,
    /// In days since 1970, which no other part of a date says.
    whole_day: Option<i64>,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) micros: i64,
    is_afternoon: Option<bool>,
    is_before_christ: bool,
    pub(super) has_month_name: bool,
    pub(super) has_short_year: bool,
    place: Option<Place>,
}

pub(super) fn decode(fields: &[Field], is_time: bool, order: DateOrder) -> Decoded<Read> {
    let mut known = Known::default();
    let mut label = None;
    let mut at = 0;
    if let [Field { kind: Kind::Word, text }] = fields {
        match meaning(text) {
            Some(Word::Now) => return Ok(Read::Now),
            Some(Word::Infinity(is_negative)) if !is_time => {
                return Ok(Read::Infinity { is_negative });
            }
            Some(Word::Epoch) if !is_time => {
                return Ok(Read::Told { day: 0, time: 0, place: Some(Place::Offset(0)) });
            }
            _ => {}
        }
    }
    while let Some(field) = fields.get(at) {
        let told = match field.kind {
            Kind::Date => known.date_field(field, &mut label, is_time && at > 0, order)?,
            Kind::Time => {
                if label.take().is_some_and(|label| label != Label::Time) {
                    return Err(Bad::Format);
                }
                known.time(&field.text)?;
                let is_midnight = known.minute == 0 && known.second == 0 && known.micros == 0;
                if known.hour > 24 || known.hour == 24 && !is_midnight {
                    return Err(Bad::Field);
                }
                Parts::TIME
            }
            Kind::Offset => {
                known.place = Some(Place::Offset(offset(&field.text)?));
                Parts::ZONE
            }
            Kind::Number => known.number_field(field, &mut label, is_time, order)?,
            Kind::Word => {
                let next = fields.get(at + 1);
                known.word(&field.text, next, &mut label, is_time)?
            }
        };
        if told & known.parts != 0 {
            return Err(Bad::Format);
        }
        known.parts |= told;
        at += 1;
    }
    if label.is_some() {
        return Err(Bad::Format);
    }
    known.ended(is_time)
}

impl Known {
    fn date_field(
        &mut self,
        field: &Field,
        label: &mut Option<Label>,
        is_of_time: bool,
        order: DateOrder,
    ) -> Decoded<u8> {
        let text = &field.text;
        let has_date = self.parts & Parts::MONTH_AND_DAY == Parts::MONTH_AND_DAY;
        if *label == Some(Label::Julian) {
            // Of 'J2451187.5-08' or so nobody has made use here.
            return Err(Bad::Format);
        }
        if label.is_none() && !has_date && !(is_of_time && self.parts & Parts::TIME != 0) {
            return self.date(text, order);
        }
        if text.starts_with(|first: char| first.is_ascii_digit()) || label.is_some() {
            // A time whose digits are not kept apart, with its zone.
            if label.take().is_some_and(|label| label != Label::Time)
                || self.parts & Parts::TIME != 0
            {
                return Err(Bad::Format);
            }
            let (time, zone) = text.split_at(text.find('-').ok_or(Bad::Format)?);
            self.place = Some(Place::Offset(offset(zone)?));
            return Ok(self.run_together(time, self.parts | Parts::DATE)? | Parts::ZONE);
        }
        self.place = Some(Place::Zone(Zone::named(text).ok_or(Bad::Zone(text.clone()))?));
        Ok(Parts::ZONE)
    }

    /// Three fields with something between them.
    fn date(&mut self, text: &str, order: DateOrder) -> Decoded<u8> {
        let mut pieces: Vec<&str> = Vec::new();
        let mut rest = text.trim_start_matches(|first: char| !first.is_ascii_alphanumeric());
        while !rest.is_empty() {
            let is_digit = rest.starts_with(|first: char| first.is_ascii_digit());
            let end = rest.find(|next: char| match is_digit {
                true => !next.is_ascii_digit(),
                false => !next.is_ascii_alphabetic(),
            });
            let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
            pieces.push(piece);
            rest = behind.trim_start_matches(|next: char| !next.is_ascii_alphanumeric());
        }
        if pieces.is_empty() {
            return Err(Bad::Format);
        }
        let (mut all, mut told) = (self.parts, 0);
        let mut add = |part: u8, all: &mut u8| {
            if part & *all != 0 {
                return Err(Bad::Format);
            }
            *all |= part;
            told |= part;
            Ok(())
        };
        pieces.retain(|piece| meaning(piece) != Some(Word::Filler));
        for piece in
            pieces.iter().filter(|piece| piece.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            let Some(Word::Month(month)) = meaning(piece) else { return Err(Bad::Format) };
            (self.month, self.has_month_name) = (month, true);
            add(Parts::MONTH, &mut all)?;
        }
        for piece in pieces.iter().filter(|piece| piece.starts_with(|c: char| c.is_ascii_digit())) {
            let part = self.number(piece, order, all)?;
            add(part, &mut all)?;
        }
        if all & Parts::DATE == Parts::DATE && all & Parts::TIME == self.parts & Parts::TIME {
            Ok(told)
        } else {
            Err(Bad::Format)
        }
    }

    fn number_field(
        &mut self,
        field: &Field,
        label: &mut Option<Label>,
        is_time: bool,
        order: DateOrder,
    ) -> Decoded<u8> {
        let text = &field.text;
        if let Some(label) = label.take() {
            return self.labelled(label, text);
        }
        let before_point = text.find('.');
        let has_date = self.parts & Parts::DATE != 0;
        if is_time {
            let parts = self.parts | Parts::DATE;
            return match before_point {
                Some(digits) if digits > 2 => self.run_together(text, parts),
                None if text.len() >= 4 => self.run_together(text, parts),
                _ => Err(Bad::Format),
            };
        }
        match before_point {
            Some(_) if !has_date => self.date(text, order),
            Some(digits) if digits > 2 => self.run_together(text, self.parts),
            None if text.len() >= 6 && (!has_date || self.parts & Parts::TIME == 0) => {
                self.run_together(text, self.parts)
            }
            _ => self.number(text, order, self.parts),
        }
    }

    fn labelled(&mut self, label: Label, text: &str) -> Decoded<u8> {
        let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
        let takes_fraction = matches!(label, Label::Second | Label::Julian | Label::Time);
        if text.contains('.') && !takes_fraction {
            return Err(Bad::Format);
        }
        match label {
            Label::Year => self.year = whole(digits)?,
            Label::Month if self.parts & Parts::MONTH != 0 => self.minute = whole(digits)?,
            Label::Month => self.month = whole(digits)?,
            Label::Day => self.day = whole(digits)?,
            Label::Hour => self.hour = whole(digits)?,
            Label::Minute => self.minute = whole(digits)?,
            Label::Second => {
                self.second = whole(digits)?;
                self.micros = super::numbers::fraction_micros(fraction)?;
            }
            Label::Julian => {
                self.whole_day = Some(julian_days(whole(digits)?));
                if fraction.is_empty() {
                    return Ok(Parts::DATE);
                }
                let part: f64 = format!("0.{fraction}").parse().map_err(|_| Bad::Format)?;
                self.micros = (part * MICROS_PER_DAY as f64).round_ties_even() as i64;
                return Ok(Parts::DATE | Parts::TIME);
            }
            Label::Time => return self.run_together(text, self.parts | Parts::DATE),
        }
        Ok(match label {
            Label::Year => Parts::YEAR,
            Label::Month if self.parts & Parts::MONTH == 0 => Parts::MONTH,
            Label::Day => Parts::DAY,
            // Parts of a time are told one by one.
            _ => 0,
        })
    }

    fn word(
        &mut self,
        text: &str,
        next: Option<&Field>,
        label: &mut Option<Label>,
        is_time: bool,
    ) -> Decoded<u8> {
        if let Some(zone) = abbreviations::zone(text) {
            self.place = Some(Place::Zone(zone));
            return Ok(Parts::ZONE);
        }
        let Some(word) = meaning(text) else {
            let zone = Zone::named(text).ok_or(Bad::Format)?;
            self.place = Some(Place::Zone(zone));
            return Ok(Parts::ZONE);
        };
        if label.is_some() {
            return Err(Bad::Format);
        }
        Ok(match word {
            Word::Filler | Word::Weekday => 0,
            Word::Month(month) => {
                let is_day = self.parts & Parts::MONTH_AND_DAY == Parts::MONTH
                    && !self.has_month_name
                    && (1..=31).contains(&self.month);
                let told = if is_day { Parts::DAY } else { Parts::MONTH };
                if is_day {
                    self.day = self.month;
                }
                (self.month, self.has_month_name) = (month, true);
                told
            }
            Word::IsAfternoon(is_afternoon) => {
                self.is_afternoon = Some(is_afternoon);
                Parts::HALF
            }
            Word::IsBeforeChrist(is_before) => {
                self.is_before_christ = is_before;
                Parts::ERA
            }
            Word::Time => {
                let has_date = is_time || self.parts & Parts::DATE == Parts::DATE;
                let follows = next.is_some_and(|next| {
                    matches!(next.kind, Kind::Number | Kind::Time | Kind::Date)
                });
                if !has_date || !follows {
                    return Err(Bad::Format);
                }
                *label = Some(Label::Time);
                0
            }
            Word::Label(given) => {
                *label = Some(given);
                0
            }
            Word::SummerTime => match &mut self.place {
                Some(Place::Offset(east)) => {
                    *east += 3600;
                    0
                }
                Some(Place::Zone(zone)) => {
                    let east = zone.offsets(0).map_err(|_| Bad::Field)?.seconds + 3600;
                    self.place = Some(Place::Offset(east));
                    0
                }
                None => return Err(Bad::Format),
            },
            Word::Day(from_today) => {
                self.whole_day = Some(today()? + from_today);
                Parts::DATE
            }
            Word::Midnight => {
                self.place = Some(Place::Offset(0));
                Parts::TIME | Parts::ZONE
            }
            Word::Now | Word::Epoch | Word::Infinity(_) => return Err(Bad::Format),
        })
    }

    fn ended(mut self, is_time: bool) -> Decoded<Read> {
        let has_date = self.parts & Parts::DATE == Parts::DATE;
        if is_time && self.parts & Parts::TIME == 0 || !is_time && !has_date {
            return Err(Bad::Format);
        }
        // The offset of a time without one is that of its day, or of today.
        if is_time && self.place.is_none() && !has_date && self.parts & Parts::DATE != 0 {
            return Err(Bad::Format);
        }
        if let Some(Place::Zone(zone)) = &self.place
            && is_time
            && !has_date
            && !zone.is_fixed()
        {
            return Err(Bad::Format);
        }
        if self.is_afternoon.is_some() && self.hour > 12 {
            return Err(Bad::Field);
        }
        match self.is_afternoon {
            Some(false) if self.hour == 12 => self.hour = 0,
            Some(true) if self.hour != 12 => self.hour += 12,
            _ => {}
        }
        if self.minute > 59 || self.second > 60 || self.hour > 24 {
            return Err(Bad::Field);
        }
        let seconds = self.hour * 3600 + self.minute * 60 + self.second;
        let time = seconds * 1_000_000 + self.micros;
        if time > MICROS_PER_DAY && is_time {
            return Err(Bad::Field);
        }
        let day = if has_date { self.calendar_day()? } else { 0 };
        Ok(Read::Told { day, time, place: self.place })
    }

    fn calendar_day(&self) -> Decoded<i64> {
        if let Some(day) = self.whole_day {
            return Ok(day);
        }
        let year = match (self.is_before_christ, self.has_short_year) {
            (true, _) if self.year <= 0 => return Err(Bad::Field),
            (true, _) => 1 - self.year,
            (false, true) if self.year < 70 => self.year + 2000,
            (false, true) => self.year + 1900,
            (false, false) if self.year <= 0 => return Err(Bad::Field),
            (false, false) => self.year,
        };
        let day = match self.day_of_year {
            Some(day) => day_of_year(year, day),
            None => day_of(year, self.month, self.day),
        };
        Ok(day.map_err(|_| Bad::Field)?.days())
    }
}
