//! How a session wants values as text, and in which time zone it is: `datestyle`, `intervalstyle`, `bytea_output`,
//! `extra_float_digits`, `timezone` and `client_encoding`.
//!
//! Invariants
//! 1. What belongs to a session's statement runs inside [`scoped`], and so does every task that DataFusion spawns for
//!    one: [`inherit`] sees to that. Elsewhere the style is the default.
//! 2. Text that is to be read again inside of this program, that of arrays and intervals, is of the default style; it
//!    gets the session's when it leaves for a client or becomes a value of type text.

mod constants;
mod dates;
mod encoding;
mod floats;
mod intervals;
mod setting;
mod zone;

use std::any::Any;
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;

use onrush::{DataType, TimeTz, Value};

use crate::clock;
use crate::error::Result;
use crate::interval::MICROS_PER_DAY;
use crate::timestamp::{is_infinite_timestamp, of_date};

pub use constants::constant_of_session;
pub use encoding::ClientEncoding;
pub use setting::Unsuitable;
pub use zone::Zone;

pub(crate) use dates::{write_date, write_time, write_timestamp, write_timestamp_tz};
pub(crate) use floats::with_digits;
pub(crate) use intervals::write_interval;
pub(crate) use zone::write_offset;

/// How dates and timestamps are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateStyle {
    /// `2024-05-31 10:00:00+02`.
    #[default]
    Iso,
    /// `Fri May 31 10:00:00 2024 CEST`.
    Postgres,
    /// `05/31/2024 10:00:00 CEST`.
    Sql,
    /// `31.05.2024 10:00:00 CEST`.
    German,
}

/// What comes first in a date of three numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DateOrder {
    /// The month.
    #[default]
    Mdy,
    /// The day.
    Dmy,
    /// The year.
    Ymd,
}

/// How intervals are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`.
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`.
    Verbose,
    /// `+1-2 +3 +4:05:06`.
    Sql,
    /// `P1Y2M3DT4H5M6S`.
    Iso8601,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    /// `datestyle`, its first part.
    pub dates: DateStyle,
    /// `datestyle`, its second part.
    pub order: DateOrder,
    /// `intervalstyle`.
    pub intervals: IntervalStyle,
    /// `bytea_output = escape`.
    pub escapes_bytes: bool,
    /// `extra_float_digits`: above zero numbers are written so that they are read back as they are.
    pub float_digits: i8,
    /// `timezone`.
    pub zone: Zone,
    /// `client_encoding`.
    pub encoding: ClientEncoding,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            dates: DateStyle::default(),
            order: DateOrder::default(),
            intervals: IntervalStyle::default(),
            escapes_bytes: false,
            float_digits: 1,
            zone: Zone::utc(),
            encoding: ClientEncoding::Utf8,
        }
    }
}

tokio::task_local! {
    static STYLE: RefCell<Arc<Style>>;
}

static DEFAULT: LazyLock<Arc<Style>> = LazyLock::new(Arc::default);

/// The style of whoever runs here.
#[must_use]
pub fn current() -> Arc<Style> {
    let current = STYLE.try_with(|style| Arc::clone(&style.borrow()));
    current.unwrap_or_else(|_| Arc::clone(&DEFAULT))
}

/// Whether the clocks of whoever runs here show UTC.
#[must_use]
pub fn is_in_utc() -> bool {
    STYLE.try_with(|style| style.borrow().zone.is_utc()).unwrap_or(true)
}

/// How the client of whoever runs here has its text.
#[must_use]
pub fn client_encoding() -> ClientEncoding {
    STYLE.try_with(|style| style.borrow().encoding).unwrap_or_default()
}

/// Runs what belongs to a session.
pub async fn scoped<T>(style: Arc<Style>, work: impl Future<Output = T>) -> T {
    clock::scoped(STYLE.scope(RefCell::new(style), work)).await
}

/// Runs `work` as if nothing were set: what is kept must not depend on who has it made.
pub fn by_default<T>(work: impl FnOnce() -> T) -> T {
    STYLE.sync_scope(RefCell::new(Arc::clone(&DEFAULT)), work)
}

/// Something is set otherwise from here on, in what [`scoped`] runs.
pub fn set_current(style: &Arc<Style>) {
    // Outside nobody has a style of its own.
    let _ = STYLE.try_with(|current| {
        if !Arc::ptr_eq(&current.borrow(), style) {
            *current.borrow_mut() = Arc::clone(style);
        }
    });
}

/// Has the tasks that DataFusion spawns run in the style of those that spawn them.
pub(crate) fn inherit() {
    // Whoever comes second finds it done.
    let _ = set_join_set_tracer(&Heirs);
}

struct Heirs;

impl JoinSetTracer for Heirs {
    fn trace_future(
        &self,
        work: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        clock::scoped(STYLE.scope(RefCell::new(current()), work)).boxed()
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        let style = current();
        Box::new(clock::sync_scoped(move || STYLE.sync_scope(RefCell::new(style), work)))
    }
}

/// A date or timestamp as one of another type, by the clocks of the session; none for what is neither, and for types
/// that are not made of each other.
///
/// # Errors
/// What is out of the range of the type.
pub fn coerce_timestamp(value: &Value<'_>, to: DataType) -> Result<Option<Value<'static>>> {
    let zone = &current().zone;
    match (value, to) {
        (Value::TimeTz(time), DataType::Time) => return Ok(Some(Value::Time(time.micros))),
        (Value::Time(micros), DataType::TimeTz) => {
            let offset_seconds = zone.offsets(crate::clock::now_micros())?.seconds;
            return Ok(Some(Value::TimeTz(TimeTz { micros: *micros, offset_seconds })));
        }
        (Value::TimestampTz(micros), DataType::TimeTz) if is_infinite_timestamp(*micros) => {
            return Ok(Some(Value::Null));
        }
        (Value::TimestampTz(micros), DataType::TimeTz) => {
            let offset_seconds = zone.offsets(*micros)?.seconds;
            let micros = zone.local(*micros)?.rem_euclid(MICROS_PER_DAY);
            return Ok(Some(Value::TimeTz(TimeTz { micros, offset_seconds })));
        }
        _ => {}
    }
    let local = match value {
        Value::Date(days) if to == DataType::Date => return Ok(Some(Value::Date(*days))),
        Value::Date(days) => of_date(*days)?,
        Value::Timestamp(micros) => *micros,
        Value::TimestampTz(micros) => zone.local(*micros)?,
        _ => return Ok(None),
    };
    Ok(match (value, to) {
        (Value::Date(_), DataType::Time) => None,
        (_, DataType::TimestampTz) => Some(Value::TimestampTz(zone.utc_of(local)?)),
        (_, DataType::Date | DataType::Timestamp | DataType::Time) => to.timestamp(local),
        _ => None,
    })
}

/// The moment as a value of a type, by the clocks of the session.
#[must_use]
pub fn now_as(to: DataType, unix_micros: i64) -> Option<Value<'static>> {
    match to.unrounded() {
        DataType::TimestampTz => to.timestamp(unix_micros),
        _ => to.timestamp(current().zone.local(unix_micros).ok()?),
    }
}
