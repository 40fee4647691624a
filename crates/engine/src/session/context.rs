//! What a session remembers of a table: the leaf it used last, and its key generators.

use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onrush_types::{DataType, DefaultValue, KeyGenerator, KeyStrategy, Value};
use onrush_waits::Phase;

use super::generated::LastValue;
use super::key_prefetch::KeyPrefetch;
use super::worker::Worker;
use crate::catalog::TableEntry;
use crate::error::{Error, Result};
use crate::node::leaf::LeafRows;
use crate::options::SequentialKeys;
use crate::tree::Hint;

/// See the module.
pub(crate) struct TableContext {
    pub(crate) table: Arc<TableEntry>,
    pub(crate) hint: Option<Hint>,
    generators: Vec<Generator>,
    /// Of tables whose key begins with a generated random one.
    prefetch: Option<Box<KeyPrefetch>>,
    /// A column's next value, if it was drawn before.
    drawn: Option<(usize, Value<'static>)>,
}

/// What makes the keys of one column.
struct Generator {
    column: usize,
    keys: KeyGenerator,
    identity: Option<Identity>,
}

/// What an identity column has beside its numbers.
struct Identity {
    /// How often the counter was set anew when the numbers were leased.
    restarts: u64,
    last: Arc<LastValue>,
}

impl TableContext {
    pub(crate) fn new(table: Arc<TableEntry>, worker: &Worker) -> Result<TableContext> {
        let mut generators = Vec::new();
        for column in 0..table.schema.column_count() {
            let Some(generator) = table.schema.key_generator(column)? else { continue };
            let block_rows = match worker.engine.options.sequential_keys {
                SequentialKeys::Blocks => u64::from(u16::MAX),
                SequentialKeys::SharedEdge => 1,
            };
            let mut generator = match generator.strategy() {
                KeyStrategy::Identity { .. } => generator.with_block_rows(block_rows),
                _ => generator,
            };
            let sequence = table.sequence(column);
            if let Some(range) = sequence.and_then(|sequence| sequence.take_session_range()) {
                generator.resume(range);
            }
            let identity = sequence
                .filter(|_| matches!(generator.strategy(), KeyStrategy::Identity { .. }))
                .map(|sequence| Identity {
                    restarts: sequence.restarts(),
                    last: worker.generated.column((table.id, table.column_number(column))),
                });
            generators.push(Generator { column, keys: generator, identity });
        }
        let lead = table.schema.definition().primary_key()[0];
        let is_random = |generator: &Generator| {
            generator.column == lead && generator.keys.strategy() == KeyStrategy::UuidV4
        };
        let prefetch = generators.iter().any(is_random).then(Box::default);
        Ok(TableContext { table, hint: None, generators, prefetch, drawn: None })
    }

    /// Before a row with these values is inserted by itself: takes a key that was drawn ahead, if
    /// the engine is to make the key. Whether the row gets a random key, and may get another one.
    #[inline]
    pub(super) fn prefetch_key(
        &mut self,
        worker: &mut Worker,
        values: &[Value<'_>],
    ) -> Result<bool> {
        let Some(mut prefetch) = self.prefetch.take() else { return Ok(false) };
        let lead = self.table.schema.definition().primary_key()[0];
        let is_drawn = matches!(values.get(lead), None | Some(Value::Default));
        if is_drawn {
            let Value::Uuid(fresh) = self.generated(worker, lead)? else {
                return Err(Error::Internal("uuid-v4 gave a key that is no uuid".into()));
            };
            let (engine, recorder) = (&worker.engine, &worker.recorder);
            recorder.mark(Phase::Statement);
            if let Some((key, hint)) = prefetch.exchange(fresh, &self.table, engine, recorder) {
                self.drawn = Some((lead, Value::Uuid(key)));
                self.hint = hint;
            }
            recorder.mark(Phase::Seek);
        }
        self.prefetch = Some(prefetch);
        Ok(is_drawn)
    }

    /// The value of a computed default. `timestamp` is that of the row, told by the first column that asks.
    #[inline]
    pub(crate) fn computed(
        &mut self,
        worker: &mut Worker,
        column: usize,
        default: &DefaultValue,
        timestamp: &mut Option<i64>,
    ) -> Result<Value<'static>> {
        match default {
            DefaultValue::Now => {
                now(self.table.schema.data_type(column), timestamp_of_row(timestamp)?)
            }
            DefaultValue::Key(_) => match self.drawn.take_if(|(own, _)| *own == column) {
                Some((_, key)) => Ok(key),
                None => self.generated(worker, column),
            },
            DefaultValue::Constant(value) => Ok(value.clone()),
            DefaultValue::Expression(computed) => {
                // Whoever understands it may wait for what others do: the next value of a sequence.
                if computed.form.is_none() {
                    worker.release();
                }
                self.table.default_value(&worker.engine, column, timestamp_of_row(timestamp)?)
            }
            DefaultValue::None | DefaultValue::Generated(_) => {
                Err(Error::Internal(format!("column {column} has no default to compute")))
            }
        }
    }

    /// The next key of a column.
    #[inline]
    pub(super) fn generated(
        &mut self,
        worker: &mut Worker,
        column: usize,
    ) -> Result<Value<'static>> {
        let TableContext { table, hint, generators, .. } = self;
        let Generator { keys, identity, .. } = generators
            .iter_mut()
            .find(|generator| generator.column == column)
            .ok_or_else(|| Error::Internal(format!("column {column} has no generator")))?;
        if let Some(identity) = &mut *identity
            && let Some(sequence) = table.sequence(column)
            && identity.restarts != sequence.restarts()
        {
            identity.restarts = sequence.restarts();
            let _left_out = keys.give_back();
        }
        let strategy = keys.strategy();
        let value = keys.next(&mut |count| lease(worker, table, hint, column, strategy, count))?;
        if let (Some(identity), Some(number)) = (identity, value.as_i64()) {
            worker.generated.put(&identity.last, number);
        }
        Ok(value)
    }

    /// Leaves what a later session can go on with.
    pub(crate) fn give_back(&mut self) {
        for Generator { column, keys, identity } in &mut self.generators {
            if let Some(unused) = keys.give_back()
                && let Some(sequence) = self.table.sequence(*column)
            {
                sequence.take_back(unused, identity.as_ref().map(|identity| identity.restarts));
            }
        }
    }
}

/// The clock, the first time it is asked for a row, in microseconds since 1970-01-01 00:00:00 UTC.
#[inline]
fn timestamp_of_row(timestamp: &mut Option<i64>) -> Result<i64> {
    if let Some(micros) = *timestamp {
        return Ok(micros);
    }
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|_| Error::Internal("the clock is before 1970".into()))?;
    Ok(*timestamp.insert(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)))
}

/// A moment as a value of the column's type.
#[inline]
fn now(data_type: DataType, micros: i64) -> Result<Value<'static>> {
    data_type
        .timestamp(micros)
        .ok_or_else(|| Error::Internal(format!("a column of type {data_type} has no clock")))
}

/// Takes numbers for a generator. A block of identity values is as long as a leaf has rows, and
/// gets a leaf of its own, opened before anyone can take the next block.
#[cold]
fn lease(
    worker: &mut Worker,
    table: &Arc<TableEntry>,
    hint: &mut Option<Hint>,
    column: usize,
    strategy: KeyStrategy,
    count: u64,
) -> Result<Range<u64>> {
    let sequence = table
        .sequence(column)
        .ok_or_else(|| Error::Internal(format!("column {column} has no counter")))?;
    let engine = Arc::clone(&worker.engine);
    let recorder = Arc::clone(&worker.recorder);
    let counter = (table.id, table.column_number(column));
    worker.release();
    let leads = table.schema.definition().primary_key().first() == Some(&column);
    match strategy {
        KeyStrategy::Identity { start, strict: false } if leads && count > 1 => {
            let capacity = |bytes: NonZero<usize>| LeafRows::capacity(bytes.get()) as u64;
            let rows = table.entry_bytes().map_or(16, capacity);
            sequence.lease(&**engine, counter, count.min(rows), &recorder, |range| {
                let first = start.wrapping_add(range.start.cast_signed());
                open_leaf(worker, table, hint, first)
            })
        }
        _ => sequence.lease(&**engine, counter, count, &recorder, |_| Ok(())),
    }
}

/// Opens a leaf for the identity values from `first` on. It is only for speed, so whatever is in
/// the way is no error.
fn open_leaf(
    worker: &mut Worker,
    table: &Arc<TableEntry>,
    hint: &mut Option<Hint>,
    first: i64,
) -> Result<()> {
    let column = table.schema.definition().primary_key()[0];
    let value = match table.schema.data_type(column) {
        DataType::Int16 => i16::try_from(first).map(Value::Int16).ok(),
        DataType::Int32 => i32::try_from(first).map(Value::Int32).ok(),
        _ => Some(Value::Int64(first)),
    };
    let Some(value) = value else { return Ok(()) };
    let mut boundary = Vec::new();
    table.schema.encode_key_prefix(&[value], &mut boundary)?;
    let object = table.object()?;
    let _ = worker
        .inside(|engine, seat| table.tree.open_edge(engine, seat, hint, object, &boundary))?;
    Ok(())
}
