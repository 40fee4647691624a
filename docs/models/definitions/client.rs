//! What a client does: its script, unit by unit, with the short way of a single row.

use super::commit::commit;
use super::oracle::Commit;
use super::plant::Plant;
use super::statement::{answer, answer_name, newest_definition};
use super::transaction::{Client, Transaction};
use super::types::{
    Definition, Key, Lsn, Name, Record, Refusal, RowChange, Script, Statement, TableId, Unit, Value,
};
use super::world::{LockName, Shared, World};

/// Numbers that one SEQUENCE record reserves.
const KEY_RESERVE: u64 = 2;

pub(super) async fn run(shared: Shared, number: usize, script: Script) {
    let mut client = Client { number, durable: script.durable, own_end: 0 };
    for unit in &script.units {
        shared.step().await;
        shared.world().note(|| format!("client {number}: {unit:?}"));
        let outcome = match unit.statements.as_slice() {
            [Statement::Insert(name, key)] if unit.commits => {
                single(&shared, &mut client, (*name, *key), true).await
            }
            [Statement::Delete(name, key)] if unit.commits => {
                single(&shared, &mut client, (*name, *key), false).await
            }
            _ => transact(&shared, &mut client, unit).await,
        };
        if let Err(refusal) = outcome {
            let mut world = shared.world();
            world.refusals += 1;
            world.note(|| format!("client {number}: refused: {refusal:?}"));
        }
    }
    shared.world().active -= 1;
}

async fn transact(shared: &Shared, client: &mut Client, unit: &Unit) -> Result<(), Refusal> {
    let mut transaction = Transaction::begin(shared, client).await;
    for statement in &unit.statements {
        shared.step().await;
        if let Some(name) = looked_for(*statement) {
            shared.world().check_told(name);
        }
        let Err(refusal) = transaction.statement(shared, client, *statement).await else {
            continue;
        };
        // IF EXISTS, IF NOT EXISTS, ON CONFLICT DO NOTHING: told, and on it goes.
        let is_mild = matches!(refusal, Refusal::Exists | Refusal::Unknown | Refusal::Duplicate);
        if is_mild && !shared.world().random.one_in(4) {
            continue;
        }
        let plant = shared.world().plant;
        if refusal == Refusal::Deadlock || !transaction.roll_back_to_savepoint(plant) {
            transaction.abort(&mut shared.world());
            return Err(refusal);
        }
    }
    if unit.commits {
        return commit(shared, client, transaction).await;
    }
    transaction.abort(&mut shared.world());
    Ok(())
}

fn looked_for(statement: Statement) -> Option<Name> {
    match statement {
        Statement::Select(name, _) | Statement::Create(name) | Statement::Drop(name) => Some(name),
        _ => None,
    }
}

impl World {
    /// Whoever looks for a table after a commit was acknowledged finds what that made of the name.
    fn check_told(&mut self, name: Name) {
        let (changed, told) = (self.name_changed[usize::from(name)], self.oracle.told(name));
        if changed < told {
            let what = format!("the name {name} is as before LSN {changed}, and {told} was told");
            self.must(Err(what));
        }
    }
}

/// A row by itself, without intents and without a lock: under the latch of the leaf it looks whether the table is
/// as it was when the name was looked for, and nobody defines it.
async fn single(
    shared: &Shared,
    client: &mut Client,
    (name, key): (Name, Key),
    inserts: bool,
) -> Result<(), Refusal> {
    let number = client.number;
    let (lsn, change) = loop {
        let definition = World::named(&shared.world().catalogue, name);
        let Some(definition) = definition else {
            return Err(answer_name(shared, client, Refusal::Unknown, name).await);
        };
        shared.step().await;
        let Definition { id, object, .. } = definition;
        shared.until(move |world| world.has_no_other_intent(object, key)).await;
        shared.until(move |world| !world.is_being_defined(id)).await;
        if shared.world().is_planted(Plant::SingleWithoutLook) {
            shared.step().await;
        }
        shared.world().mark(number);
        shared.step().await;
        let placed = shared.world().place(&definition, key, inserts);
        match placed {
            Placed::At(lsn, change) => break (lsn, change),
            Placed::Again => shared.world().clear(number),
            Placed::Refused(refusal, rests_below) => {
                shared.world().clear(number);
                let waits_below = if inserts { rests_below } else { shared.world().tail() };
                answer(shared, client, refusal, waits_below, rests_below).await;
                return Err(refusal);
            }
        }
    };
    shared.step().await;
    let record = Record::Commit { entries: Vec::new(), rows: vec![change] };
    shared.world().copy(lsn, record);
    shared.step().await;
    shared.world().clear(number);
    client.own_end = lsn + 1;
    if client.durable {
        shared.until_durable(lsn + 1).await;
    }
    let mut world = shared.world();
    world.oracle.acknowledge(lsn, &[], client.durable);
    world.commits += 1;
    Ok(())
}

/// What became of a single row.
enum Placed {
    At(Lsn, RowChange),
    /// The table is being defined, or is another by now, or the row has an intent.
    Again,
    /// Why not, and the end of what that rests on.
    Refused(Refusal, Lsn),
}

impl World {
    fn is_being_defined(&self, id: TableId) -> bool {
        self.locks.get(&LockName::Table(id)).is_some_and(|lock| lock.exclusive.is_some())
    }

    /// Under the latch of the leaf: the look at the table and for the key, the LSN, the row.
    fn place(&mut self, definition: &Definition, key: Key, inserts: bool) -> Placed {
        let Definition { id, made_by, object, version, .. } = *definition;
        let is_current = self.catalogue.get(&id) == Some(definition) && !self.is_being_defined(id);
        let looks = !self.is_planted(Plant::SingleWithoutLook);
        if (looks && !is_current) || !self.has_no_other_intent(object, key) {
            return Placed::Again;
        }
        let newest = self.version(object, key, Lsn::MAX);
        let rests_below = newest.map_or(0, |(lsn, _)| lsn + 1);
        let there = self.leaf(object, key).and_then(|leaf| leaf.cells.get(&key)?.row);
        match (inserts, there) {
            (true, Some(_)) => return Placed::Refused(Refusal::Duplicate, rests_below),
            (false, None) => return Placed::Refused(Refusal::Unknown, rests_below),
            _ => {}
        }
        let lsn = self.reserve();
        let number = self.new_number();
        let value = inserts.then_some(Value { number, version, about: (id, made_by) });
        let commit = Commit { lsn, meanings: Vec::new(), rows: vec![(id, key, value)] };
        let outcome = self.oracle.commit(commit);
        self.must(outcome);
        if let Some(leaf) = self.leaf(object, key) {
            leaf.is_dirty = true;
            leaf.cells.remove(&key);
            if let Some(value) = value {
                leaf.cells.entry(key).or_default().row = Some((value, lsn));
            }
        }
        self.versions.entry((object, key)).or_default().push((lsn, value));
        Placed::At(lsn, RowChange { object, key, value })
    }
}

impl Transaction {
    /// Whether the row is there, by the transaction's snapshot.
    pub(super) async fn select(
        &mut self,
        shared: &Shared,
        client: &Client,
        name: Name,
        key: Key,
    ) -> Result<bool, Refusal> {
        let definition = self.touch_rows(shared, name).await?;
        if let Some(own) = self.own(definition.object, key) {
            return Ok(own.is_some());
        }
        let (waits, rests, is_there) = {
            let mut world = shared.world();
            let seen = world.version(definition.object, key, self.snapshot);
            let row = seen.and_then(|(_, value)| value);
            if !self.made.contains(&definition.object) {
                let about = (definition.id, definition.made_by);
                let outcome = world.oracle.read(about, key, self.snapshot, row);
                world.must(outcome);
            }
            let of_row = seen.map_or(0, |(lsn, _)| lsn + 1);
            let is_own = self.made.contains(&definition.object);
            let of_name = if is_own { 0 } else { world.name_changed[usize::from(name)] };
            let waits = newest_definition(&world).max(self.snapshot);
            (waits, of_row.max(of_name), row.is_some())
        };
        answer(shared, client, Refusal::Unknown, waits, rests).await;
        Ok(is_there)
    }

    /// Hands out the next generated key of a table.
    pub(super) async fn generate(
        &mut self,
        shared: &Shared,
        client: &Client,
        name: Name,
    ) -> Result<(), Refusal> {
        let definition = self.touch(shared, name, false).await?;
        let (id, made_by) = (definition.id, definition.made_by);
        if let Some(next) = self.counters.get_mut(&id) {
            *next += 1;
            let number = *next - 1;
            let mut world = shared.world();
            let outcome = world.oracle.hand_out(made_by, number);
            world.must(outcome);
            return Ok(());
        }
        shared.until(move |world| world.take_counter(id)).await;
        let counter = shared.world().counters[&id];
        if counter.next >= counter.reserved {
            reserve_numbers(shared, client, id, counter.next + KEY_RESERVE).await;
        }
        let mut world = shared.world();
        let counter = world.counters.entry(id).or_default();
        counter.is_busy = false;
        counter.next += 1;
        let number = counter.next - 1;
        let outcome = world.oracle.hand_out(made_by, number);
        world.must(outcome);
        Ok(())
    }
}

impl World {
    /// The mutex of a counter.
    fn take_counter(&mut self, id: u32) -> bool {
        let counter = self.counters.entry(id).or_default();
        !std::mem::replace(&mut counter.is_busy, true)
    }
}

/// The counter is raised before its record has an LSN: a checkpoint that begins above the record lists it raised.
async fn reserve_numbers(shared: &Shared, client: &Client, id: TableId, reserved: u64) {
    let plant = shared.world().plant;
    let raise = |world: &mut World| world.counters.entry(id).or_default().reserved = reserved;
    if plant != Plant::CounterRaisedLate {
        raise(&mut shared.world());
    }
    shared.step().await;
    shared.world().mark(client.number);
    shared.step().await;
    let lsn = shared.world().reserve();
    shared.step().await;
    shared.world().copy(lsn, Record::Sequence { id, reserved });
    shared.step().await;
    shared.world().clear(client.number);
    if plant != Plant::SequenceNotAwaited {
        shared.until_durable(lsn + 1).await;
    }
    shared.step().await;
    raise(&mut shared.world());
}
