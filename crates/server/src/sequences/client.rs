//! What one client knows of sequences: the values that it was given last, those that it has taken ahead, and where
//! the sequences stand that its transaction has made or altered.
//!
//! Invariants
//! 1. Where such a sequence stands goes into its row when the transaction commits, and is forgotten when it is over.
//! 2. Whoever writes rows for a client is its caller meanwhile ([`as_caller`]): defaults ask for it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use onrush::{GeneratedValues, SequenceDefinition, Session, Table, Transaction};
use parking_lot::Mutex;

use super::identity::{Identity, ValueSource};
use super::position::{Position, Taken};
use super::{Sequences, at_end};
use crate::access::{self, Right};
use crate::error::{Result, SqlError, state};
use crate::execute::Patience;
use crate::schemas;
use crate::seen::Seen;

thread_local! {
    static CALLER: RefCell<Option<Arc<ClientSequences>>> = const { RefCell::new(None) };
}

/// Does `work` for a client.
pub(crate) fn as_caller<T>(client: &Arc<ClientSequences>, work: impl FnOnce() -> T) -> T {
    let before = CALLER.replace(Some(Arc::clone(client)));
    let done = work();
    CALLER.set(before);
    done
}

/// The client that this thread works for.
pub(crate) fn caller() -> Option<Arc<ClientSequences>> {
    CALLER.with_borrow(Clone::clone)
}

/// See the module.
pub(crate) struct ClientSequences {
    pub(crate) shared: Arc<Sequences>,
    who: Mutex<access::Identity>,
    patience: Patience,
    /// What the engine gave of identity columns, with rows.
    generated: Arc<GeneratedValues>,
    /// Draws values of identity columns without rows; made when it is first needed.
    drawing: Mutex<Option<Session>>,
    state: Mutex<State>,
}

/// What gives values: the number of a table, and of a column where it is that one's identity.
type Key = (u32, Option<usize>);

#[derive(Default)]
struct State {
    /// What was given last, with its place in the order of all values.
    last: HashMap<Key, (u64, i64)>,
    /// Values that were taken ahead, with the generation that they are of.
    ahead: HashMap<u32, (u32, Taken)>,
    /// Sequences that the open transaction has made or altered, by their numbers and generations.
    own: HashMap<(u32, u32), Own>,
}

struct Own {
    table: Table,
    position: Position,
    /// It is not in the row yet.
    has_moved: bool,
}

impl ClientSequences {
    pub(crate) fn new(
        shared: &Arc<Sequences>,
        who: &access::Identity,
        patience: &Patience,
        generated: Arc<GeneratedValues>,
    ) -> Self {
        ClientSequences {
            shared: Arc::clone(shared),
            who: Mutex::new(who.clone()),
            patience: patience.clone(),
            generated,
            drawing: Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// As whom the client acts.
    pub(crate) fn who(&self) -> access::Identity {
        self.who.lock().clone()
    }

    /// The client acts as somebody else.
    pub(crate) fn is_for(&self, who: &access::Identity) {
        self.who.lock().clone_from(who);
    }

    /// The next value.
    pub(super) fn next(&self, source: &ValueSource) -> Result<i64> {
        match source {
            ValueSource::Sequence(table) => self.next_of_sequence(table),
            ValueSource::Identity(identity) => {
                self.check(&[Right::Insert], &identity.table)?;
                let drawn = self
                    .draw(|session| Ok(session.draw_identity(&identity.table, identity.column)?))?;
                let drawn = drawn.ok_or_else(|| not_current(identity))?;
                self.give(key_of(source), drawn);
                Ok(drawn)
            }
        }
    }

    /// Does `work` in a session of its own.
    fn draw<T>(&self, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        let mut drawing = self.drawing.lock();
        if drawing.is_none() {
            *drawing = Some(self.shared.session(&self.patience)?);
        }
        match &mut *drawing {
            Some(session) => tokio::task::block_in_place(|| work(session)),
            None => Err(SqlError::new(state::INTERNAL, "there is no session to draw values")),
        }
    }

    fn next_of_sequence(&self, table: &Table) -> Result<i64> {
        let sequence = definition(table)?;
        self.check(&[Right::Usage, Right::Update], table)?;
        let (number, generation) = (table.id(), sequence.generation);
        if let Some(value) = self.next_without_waiting(table, sequence)? {
            return Ok(value);
        }
        let Taken { first, last } = self.shared.next(table, sequence, &self.patience)?;
        let mut state = self.state.lock();
        if first != last {
            let rest = Taken { first: sequence.so_many_after(first, 1), last };
            state.ahead.insert(number, (generation, rest));
        }
        drop(state);
        self.give((number, None), first);
        Ok(first)
    }

    fn next_without_waiting(
        &self,
        table: &Table,
        sequence: &SequenceDefinition,
    ) -> Result<Option<i64>> {
        let (number, generation) = (table.id(), sequence.generation);
        let mut state = self.state.lock();
        let value = if let Some(own) = state.own.get_mut(&(number, generation)) {
            let taken = own.position.take(sequence, 1).ok_or_else(|| at_end(table, sequence))?;
            own.has_moved = true;
            taken.0.first
        } else {
            match state.ahead.remove(&number) {
                Some((of, Taken { first, last })) if of == generation => {
                    if first != last {
                        let rest = Taken { first: sequence.so_many_after(first, 1), last };
                        state.ahead.insert(number, (of, rest));
                    }
                    first
                }
                _ => return Ok(None),
            }
        };
        drop(state);
        self.give((number, None), value);
        Ok(Some(value))
    }

    /// The value that the client was given last by this source.
    pub(super) fn current(&self, source: &ValueSource) -> Result<i64> {
        let name = match source {
            ValueSource::Sequence(table) => {
                definition(table)?;
                self.check(&[Right::Usage, Right::Select], table)?;
                table.name().to_owned()
            }
            ValueSource::Identity(identity) => {
                self.check(&[Right::Select], &identity.table)?;
                identity.name()
            }
        };
        let with_rows = match source {
            ValueSource::Sequence(_) => None,
            ValueSource::Identity(it) => self.generated.of(it.table.id(), it.number()),
        };
        let alone = self.state.lock().last.get(&key_of(source)).copied();
        let newest = with_rows.into_iter().chain(alone).max();
        newest.map(|(_, value)| value).ok_or_else(|| {
            let name = schemas::own_name(&name);
            let message =
                format!("currval of sequence \"{name}\" is not yet defined in this session");
            SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message)
        })
    }

    /// The value that the client was given last by any source.
    pub(super) fn newest(&self) -> Result<i64> {
        let newest = {
            let state = self.state.lock();
            let alone = state.last.iter().map(|(key, given)| (*given, *key));
            let with_rows = self
                .generated
                .newest()
                .map(|((table, column), place, value)| ((place, value), (table, Some(column))));
            alone.chain(with_rows).max()
        };
        // Its sequence, or its table, may have been dropped since.
        let found = newest.and_then(|((_, value), (number, column))| {
            self.table(number).map(|table| (value, table, column))
        });
        let Some((value, table, column)) = found else {
            let message = "lastval is not yet defined in this session";
            return Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message));
        };
        if column.is_none() {
            self.check(&[Right::Usage, Right::Select], &table)?;
        }
        Ok(value)
    }

    fn give(&self, key: Key, value: i64) {
        let place = self.generated.next_place();
        self.state.lock().last.insert(key, (place, value));
    }

    /// `setval`.
    pub(super) fn set(&self, source: &ValueSource, value: i64, is_called: bool) -> Result<()> {
        match source {
            ValueSource::Sequence(table) => self.set_sequence(table, value, is_called)?,
            ValueSource::Identity(identity) => self.set_identity(identity, value, is_called)?,
        }
        if is_called {
            self.give(key_of(source), value);
        }
        Ok(())
    }

    fn set_identity(&self, identity: &Identity, value: i64, is_called: bool) -> Result<()> {
        self.check(&[Right::Insert], &identity.table)?;
        check_between(&identity.definition(), &identity.name(), value)?;
        self.restart(identity, value.saturating_add(i64::from(is_called)))
    }

    /// The identity goes on at this value, for everyone and at once.
    pub(crate) fn restart(&self, identity: &Identity, next: i64) -> Result<()> {
        let Identity { table, column, .. } = identity;
        match self.draw(|session| Ok(session.restart_identity(table, *column, next)?))? {
            true => Ok(()),
            false => Err(not_current(identity)),
        }
    }

    fn set_sequence(&self, table: &Table, value: i64, is_called: bool) -> Result<()> {
        let sequence = definition(table)?;
        self.check(&[Right::Update], table)?;
        check_between(sequence, table.name(), value)?;
        let generation = sequence.generation;
        let position = Position { last: value, is_called, logged: 0 };
        let number = table.id();
        let is_own = {
            let mut state = self.state.lock();
            let own = state.own.get_mut(&(number, generation));
            own.map(|own| (own.position, own.has_moved) = (position, true)).is_some()
        };
        if !is_own {
            self.shared.set(table, sequence, position, &self.patience)?;
        }
        self.state.lock().ahead.remove(&number);
        Ok(())
    }

    /// Where a source stands, as the client sees it.
    pub(crate) fn position(&self, source: &ValueSource) -> Result<Position> {
        let table = match source {
            ValueSource::Sequence(table) => table,
            ValueSource::Identity(identity) => return Ok(identity.position()),
        };
        let sequence = definition(table)?;
        let own = self.own_position(table.id(), sequence.generation);
        own.map_or_else(|| self.shared.position(table, sequence), Ok)
    }

    /// Refuses what the client was granted none of these rights for, on a table the first of them.
    pub(crate) fn check(&self, rights: &[Right], table: &Table) -> Result<()> {
        let who = self.who.lock();
        match (table.definition().sequence(), rights.first()) {
            (None, Some(right)) => self.shared.access.check(&who, *right, table),
            _ => self.shared.access.check_sequence(&who, rights, table),
        }
    }

    /// The open transaction has made the sequence, or altered it, so that it is of this generation.
    pub(super) fn own(&self, table: &Table, generation: u32, position: Position) {
        let own = Own { table: table.clone(), position, has_moved: false };
        self.state.lock().own.insert((table.id(), generation), own);
    }

    /// The newest of the handles of a sequence that the open transaction has made or altered.
    pub(super) fn own_table(&self, number: u32) -> Option<Table> {
        let state = self.state.lock();
        let own = state.own.iter().filter(|((table, _), _)| *table == number);
        own.max_by_key(|((_, generation), _)| *generation).map(|(_, own)| own.table.clone())
    }

    /// Why the client's statement was given up.
    pub(super) fn given_up(&self) -> SqlError {
        self.patience.given_up()
    }

    /// Where a sequence stands that the open transaction has made or altered.
    fn own_position(&self, table: u32, generation: u32) -> Option<Position> {
        self.state.lock().own.get(&(table, generation)).map(|own| own.position)
    }

    /// Where a sequence stands that the transaction has locked. Nobody else is given a value from here on.
    pub(super) fn standing_at(
        &self,
        transaction: &mut Transaction<'_>,
        table: &Table,
    ) -> Result<Position> {
        let sequence = definition(table)?;
        match self.own_position(table.id(), sequence.generation) {
            Some(position) => Ok(position),
            None => self.shared.take_over(transaction, table, sequence),
        }
    }

    /// Rows to be written before the transaction commits.
    pub(crate) fn moved(&self, seen: &Seen) -> Vec<(Table, Position)> {
        let state = self.state.lock();
        if !state.own.values().any(|own| own.has_moved) {
            return Vec::new();
        }
        let moved = |table: Table| {
            let generation = table.definition().sequence()?.generation;
            let own = state.own.get(&(table.id(), generation)).filter(|own| own.has_moved)?;
            Some((table, own.position))
        };
        seen.sequences().into_iter().filter_map(moved).collect()
    }

    /// The transaction has gone back to a savepoint, from which on this is seen.
    pub(crate) fn go_back(&self, seen: &Seen) {
        let mut state = self.state.lock();
        if state.own.is_empty() {
            return;
        }
        let generation =
            |table: Table| Some((table.id(), table.definition().sequence()?.generation));
        let seen: HashMap<u32, u32> = seen.sequences().into_iter().filter_map(generation).collect();
        // Earlier ones are of savepoints that are still there.
        state.own.retain(|(number, own), _| seen.get(number).is_some_and(|newest| own <= newest));
    }

    /// The transaction is over.
    pub(crate) fn end_transaction(&self) {
        self.state.lock().own.clear();
    }

    /// DISCARD SEQUENCES.
    pub(crate) fn discard(&self) {
        self.generated.forget();
        let mut state = self.state.lock();
        let own = std::mem::take(&mut state.own);
        *state = State { own, ..State::default() };
    }
}

fn key_of(source: &ValueSource) -> Key {
    match source {
        ValueSource::Sequence(table) => (table.id(), None),
        ValueSource::Identity(identity) => (identity.table.id(), Some(identity.number())),
    }
}

/// The column was altered meanwhile, or its table.
fn not_current(identity: &Identity) -> SqlError {
    onrush::Error::TableChanged { name: identity.table.name().to_owned() }.into()
}

fn check_between(sequence: &SequenceDefinition, name: &str, value: i64) -> Result<()> {
    let SequenceDefinition { least, greatest, .. } = sequence;
    if (*least..=*greatest).contains(&value) {
        return Ok(());
    }
    let name = schemas::own_name(name);
    let message = format!(
        "setval: value {value} is out of bounds for sequence \"{name}\" ({least}..{greatest})"
    );
    Err(SqlError::new(state::NUMERIC_OUT_OF_RANGE, message))
}

/// What makes the table a sequence.
pub(super) fn definition(table: &Table) -> Result<&SequenceDefinition> {
    table.definition().sequence().ok_or_else(|| {
        let message = format!("{:?} is not a sequence", schemas::own_name(table.name()));
        SqlError::new(state::WRONG_OBJECT_TYPE, message)
    })
}
