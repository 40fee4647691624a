//! The settings that a style is made of, by their names.

use super::{ClientEncoding, DateOrder, DateStyle, IntervalStyle, Style, Zone};

/// The names, in lower case.
const NAMES: [&str; 6] = [
    "bytea_output",
    "client_encoding",
    "datestyle",
    "extra_float_digits",
    "intervalstyle",
    "timezone",
];

/// Seconds of the largest offset that has a zone.
const OFFSET_SECONDS_MAX: f64 = 93_599.0;

/// Why a value is none of a setting: what else can be said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsuitable {
    /// What it can be.
    Choices(&'static str),
    /// What is wrong with it.
    Detail(String),
    /// The whole message.
    Message(String),
}

impl Style {
    /// The names of the settings, in lower case.
    #[must_use]
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// What a setting is now; none if there is none of this name here.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<String> {
        Some(match name {
            "bytea_output" => if self.escapes_bytes { "escape" } else { "hex" }.to_owned(),
            "client_encoding" => self.encoding.name().to_owned(),
            "datestyle" => {
                let style = match self.dates {
                    DateStyle::Iso => "ISO",
                    DateStyle::Postgres => "Postgres",
                    DateStyle::Sql => "SQL",
                    DateStyle::German => "German",
                };
                let order = match self.order {
                    DateOrder::Mdy => "MDY",
                    DateOrder::Dmy => "DMY",
                    DateOrder::Ymd => "YMD",
                };
                format!("{style}, {order}")
            }
            "extra_float_digits" => self.float_digits.to_string(),
            "intervalstyle" => match self.intervals {
                IntervalStyle::Postgres => "postgres",
                IntervalStyle::Verbose => "postgres_verbose",
                IntervalStyle::Sql => "sql_standard",
                IntervalStyle::Iso8601 => "iso_8601",
            }
            .to_owned(),
            "timezone" => self.zone.name().to_owned(),
            _ => return None,
        })
    }

    /// The style with one of the settings changed; `default` is what `datestyle = default` stands for.
    ///
    /// # Errors
    /// A value that is none of the setting's.
    pub fn with(&self, name: &str, value: &str, default: &Style) -> Result<Style, Unsuitable> {
        let mut style = self.clone();
        let lower = value.to_lowercase();
        match name {
            "bytea_output" => match lower.as_str() {
                "hex" => style.escapes_bytes = false,
                "escape" => style.escapes_bytes = true,
                _ => return Err(Unsuitable::Choices("escape, hex")),
            },
            "client_encoding" => {
                let known = ClientEncoding::named(value);
                style.encoding = known.ok_or(Unsuitable::Choices(
                    "UTF8, SQL_ASCII, and those of one byte: LATIN1, WIN1252, KOI8R and others",
                ))?;
            }
            "datestyle" => style.read_dates(&lower, default)?,
            "extra_float_digits" => {
                let number: i64 =
                    value.trim().parse().map_err(|_| Unsuitable::Choices("-15 to 3"))?;
                style.float_digits = match i8::try_from(number) {
                    Ok(digits @ -15..=3) => digits,
                    _ => {
                        return Err(Unsuitable::Message(format!(
                            "{number} is outside the valid range for parameter \
                             \"extra_float_digits\" (-15 .. 3)"
                        )));
                    }
                };
            }
            "intervalstyle" => {
                style.intervals = match lower.as_str() {
                    "postgres" => IntervalStyle::Postgres,
                    "postgres_verbose" => IntervalStyle::Verbose,
                    "sql_standard" => IntervalStyle::Sql,
                    "iso_8601" => IntervalStyle::Iso8601,
                    _ => {
                        return Err(Unsuitable::Choices(
                            "postgres, postgres_verbose, sql_standard, iso_8601",
                        ));
                    }
                }
            }
            _ => style.zone = zone(value)?,
        }
        Ok(style)
    }

    fn read_dates(&mut self, lower: &str, default: &Style) -> Result<(), Unsuitable> {
        let (mut style, mut order) = (None, None);
        let conflict =
            || Unsuitable::Detail("Conflicting \"datestyle\" specifications.".to_owned());
        let mut take_style = |given| match style.replace(given) {
            Some(before) if before != given => Err(conflict()),
            _ => Ok(()),
        };
        let mut take_order = |given| match order.replace(given) {
            Some(before) if before != given => Err(conflict()),
            _ => Ok(()),
        };
        for word in lower.split(',').map(str::trim) {
            match word {
                "iso" => take_style(DateStyle::Iso)?,
                "sql" => take_style(DateStyle::Sql)?,
                "german" => take_style(DateStyle::German)?,
                "ymd" => take_order(DateOrder::Ymd)?,
                "dmy" => take_order(DateOrder::Dmy)?,
                "mdy" | "us" => take_order(DateOrder::Mdy)?,
                "default" => (self.dates, self.order) = (default.dates, default.order),
                word if word.starts_with("postgres") => take_style(DateStyle::Postgres)?,
                word if word.starts_with("euro") => take_order(DateOrder::Dmy)?,
                word if word.starts_with("noneuro") => take_order(DateOrder::Mdy)?,
                word => {
                    return Err(Unsuitable::Detail(format!("Unrecognized key word: \"{word}\".")));
                }
            }
        }
        self.dates = style.unwrap_or(self.dates);
        let of_style = (style == Some(DateStyle::German)).then_some(DateOrder::Dmy);
        self.order = order.or(of_style).unwrap_or(self.order);
        Ok(())
    }
}

/// A number is hours to the east, anything else a name.
fn zone(value: &str) -> Result<Zone, Unsuitable> {
    let hours = value.trim().parse::<f64>().ok().filter(|_| {
        value.trim().bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte))
    });
    let Some(hours) = hours else {
        return Zone::named(value).ok_or(Unsuitable::Choices("a time zone"));
    };
    let seconds = (hours * 3600.0).round();
    let zone = match seconds.abs() <= OFFSET_SECONDS_MAX {
        true => Zone::fixed(seconds as i32),
        false => None,
    };
    let message = "UTC timezone offset is out of range.".to_owned();
    zone.ok_or(Unsuitable::Detail(message))
}
