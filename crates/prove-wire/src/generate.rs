//! Draws the next statement of a client, from numbers and from what the model says is there.
//!
//! What two clients would do to the same definition at the same time is not drawn: which of them waits, or is
//! refused, is no matter of crashes. Rows they share.

mod definitions;

use std::collections::{BTreeSet, VecDeque};

use onrush_sim::Random;

use crate::kinds::{Kind, Kinds};
use crate::model::{Transaction, World};
use crate::state::{Change, State};
use crate::statement::{KeyValue, OnConflict, Statement, Way};

/// Few, so that clients meet at them.
const KEYS: u64 = 10;

/// What tables, roles and the schema of a client are called.
#[derive(Clone, Debug)]
pub struct Names {
    tables: Vec<String>,
    roles: Vec<String>,
    schema: String,
}

impl Names {
    /// Those that all clients share.
    pub fn shared() -> Names {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let (tables, roles) = (all(&["p", "q", "m", "s1.p"]), all(&["r1", "r2"]));
        Names { tables, roles, schema: "s1".into() }
    }

    /// Those of one client alone: all end with its number, which has one digit.
    pub fn of(client: usize) -> Names {
        let tables = ["p", "q", "m"].map(|name| format!("{name}{client}"));
        let within = format!("s{client}.p{client}");
        let tables = tables.into_iter().chain([within]).collect();
        Names { tables, roles: vec![format!("r{client}")], schema: format!("s{client}") }
    }
}

/// What the open transactions of others have to do with.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    names: BTreeSet<String>,
    /// Tables that they define.
    defined: BTreeSet<u32>,
    /// Tables that they only write to.
    written: BTreeSet<u32>,
}

impl Claims {
    /// Adds those of one transaction.
    pub fn add(&mut self, now: &State, transaction: &Transaction) {
        for change in &transaction.changes {
            match change {
                Change::Put { id, .. } | Change::Delete { id, .. } => {
                    self.written.insert(*id);
                }
                Change::Create { id, name, .. } => {
                    self.names.insert(name.clone());
                    self.defined.insert(*id);
                }
                Change::Rename { id, to } => {
                    self.names.insert(to.clone());
                    self.defined.insert(*id);
                }
                Change::Drop { id }
                | Change::AddColumn { id, .. }
                | Change::DropColumn { id, .. }
                | Change::RenameColumn { id, .. }
                | Change::SetDefault { id, .. }
                | Change::SetNotNull { id, .. }
                | Change::SetType { id, .. }
                | Change::Truncate { id }
                | Change::Grant { id, .. }
                | Change::Comment { id, .. } => {
                    self.defined.insert(*id);
                }
                Change::CreateRole(_)
                | Change::DropRole(_)
                | Change::CreateSchema(_)
                | Change::DropSchema(_) => {}
            }
        }
        let names = self.defined.iter().filter_map(|id| now.name_of(*id)).map(str::to_owned);
        self.names.extend(names.collect::<Vec<_>>());
    }
}

/// What a client draws its statements from.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its numbers.
    pub random: Random,
    kinds: Kinds,
    names: Names,
    client: usize,
    values: u64,
    savepoints: u64,
    /// What is to be sent next, whatever comes.
    queue: VecDeque<Statement>,
}

/// What a client looks at while it draws.
pub struct Sight<'w> {
    /// All that is committed.
    pub world: &'w World,
    /// Its own transaction.
    pub open: Option<&'w Transaction>,
    /// Those of others.
    pub claims: Claims,
    /// Whether somebody takes a checkpoint at this moment.
    pub in_checkpoint: bool,
}

impl Sight<'_> {
    fn view(&self) -> &State {
        self.open.map_or(self.world.now(), |open| &open.view)
    }

    /// Tables whose rows the client may use.
    fn tables(&self) -> Vec<(String, u32)> {
        let mut tables: Vec<(String, u32)> =
            self.view().names.iter().map(|(name, id)| (name.clone(), *id)).collect();
        tables.retain(|(name, id)| {
            let is_claimed = self.claims.names.contains(name) || self.claims.defined.contains(id);
            let is_new = |open| self.world.is_reshaped_since(open, name, *id);
            !is_claimed && !self.open.is_some_and(|open| !open.has_made(*id) && is_new(open))
        });
        tables
    }

    /// Tables that it may define.
    fn definable(&self) -> Vec<(String, u32)> {
        let mut tables = self.tables();
        tables.retain(|(_, id)| !self.claims.written.contains(id));
        tables
    }

    fn is_free(&self, name: &str) -> bool {
        // Who has begun before a name changed hands stays away from it.
        let is_new = |open: &Transaction| {
            self.world.now().names.get(name) != open.view.names.get(name)
                && self.world.is_reshaped_since(open, name, u32::MAX)
        };
        !self.claims.names.contains(name) && !self.open.is_some_and(is_new)
    }
}

impl Source {
    /// Of one client of a round.
    pub fn new(seed: u64, client: usize, kinds: Kinds, names: Names) -> Source {
        let random = Random::for_part(seed, 1000 + client as u64);
        Source { random, kinds, names, client, values: 0, savepoints: 0, queue: VecDeque::new() }
    }

    /// Whether it is in the middle of several statements that belong together.
    pub fn has_plans(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The next statement.
    pub fn draw(&mut self, sight: &Sight<'_>) -> Statement {
        if sight.open.is_some_and(|open| open.has_failed) {
            self.queue.clear();
            return self.after_failure(sight);
        }
        if let Some(next) = self.queue.pop_front()
            && self.may_still(sight, &next)
        {
            return next;
        }
        self.queue.clear();
        for _ in 0..50 {
            let drawn = match sight.open {
                Some(open) => self.inside(sight, open),
                None => self.outside(sight),
            };
            if let Some(statement) = drawn {
                return statement;
            }
        }
        if sight.open.is_some() { Statement::Commit } else { self.read(sight) }
    }

    /// What was planned may have become somebody else's meanwhile.
    fn may_still(&self, sight: &Sight<'_>, next: &Statement) -> bool {
        let definable = sight.definable();
        let is_there = |name: &str| definable.iter().any(|(known, _)| known == name);
        if sight.open.is_some_and(|open| !sight.world.keeps_its_view(open)) {
            return false;
        }
        match next {
            Statement::CreateTable { table, .. } => {
                sight.is_free(table) && !sight.view().names.contains_key(table)
            }
            Statement::RenameTable { table, to } => {
                is_there(table) && sight.is_free(to) && !sight.view().names.contains_key(to)
            }
            Statement::DropTable { table } | Statement::Grant { table, .. } => is_there(table),
            Statement::Insert { table, .. } => {
                sight.tables().iter().any(|(known, _)| known == table)
            }
            _ => true,
        }
    }

    fn after_failure(&mut self, sight: &Sight<'_>) -> Statement {
        let savepoint = sight.open.and_then(|open| open.savepoints().last().map(str::to_owned));
        match (self.random.below(10), savepoint) {
            (0..5, Some(name)) => Statement::RollbackTo(name),
            (5, _) => self.read(sight),
            (6..8, _) => Statement::Commit,
            _ => Statement::Rollback,
        }
    }

    fn inside(&mut self, sight: &Sight<'_>, open: &Transaction) -> Option<Statement> {
        match self.random.below(100) {
            0..16 => Some(Statement::Commit),
            16..21 => Some(Statement::Rollback),
            21..29 if self.kinds.has(Kind::Savepoints) => {
                self.savepoints += 1;
                Some(Statement::Savepoint(format!("sp{}", self.savepoints)))
            }
            29..35 => {
                let names: Vec<&str> = open.savepoints().collect();
                let name = self.one_of(&names)?;
                Some(Statement::RollbackTo((*name).to_owned()))
            }
            35..58 if self.may_define_inside(sight, open) => match self.random.below(10) {
                0..5 => self.create_table(sight),
                5..9 => self.drop_table(sight),
                _ => self.pass_within(sight),
            },
            _ => self.rows(sight),
        }
    }

    fn may_define_inside(&self, sight: &Sight<'_>, open: &Transaction) -> bool {
        self.kinds.has(Kind::Transactional) && sight.world.keeps_its_view(open)
    }

    fn outside(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let has = |kind| self.kinds.has(kind);
        if sight.view().names.is_empty() && self.random.chance(1, 2) {
            return self.create_table(sight);
        }
        if has(Kind::Grants) && sight.view().roles.is_empty() && self.random.chance(1, 3) {
            return Some(self.role(sight));
        }
        // Definitions in the middle of a checkpoint are in its directory, and in the log that is redone on it.
        if sight.in_checkpoint && self.random.chance(1, 2) {
            return match self.random.below(4) {
                0 | 1 if has(Kind::Names) => self.pass_name(sight),
                2 if has(Kind::Tables) => self.drop_table(sight),
                _ if has(Kind::Tables) => self.create_table(sight),
                _ => None,
            };
        }
        match self.random.below(100) {
            0..14 if has(Kind::Transactions) => Some(Statement::Begin),
            14..22 if has(Kind::Tables) => self.create_table(sight),
            22..27 if has(Kind::Tables) => self.drop_table(sight),
            27..32 if has(Kind::Names) => self.pass_name(sight),
            32..36 if has(Kind::Columns) => self.alter(sight),
            36 if has(Kind::Types) => self.set_type(sight),
            37..39 if has(Kind::Truncate) => {
                Some(Statement::Truncate { table: self.definable(sight)? })
            }
            39..43 if has(Kind::Roles) => Some(self.role(sight)),
            43..51 if has(Kind::Grants) => self.grant(sight),
            51..56 if has(Kind::Comments) => self.comment(sight),
            56..59 if has(Kind::Schemas) => self.schema(sight),
            59..65 if has(Kind::Checkpoints) && !sight.in_checkpoint => Some(Statement::Checkpoint),
            _ => self.rows(sight),
        }
    }

    fn one_of<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        if all.is_empty() {
            return None;
        }
        all.get(self.random.below(all.len() as u64) as usize)
    }

    fn table(&mut self, sight: &Sight<'_>) -> Option<String> {
        let tables = sight.tables();
        self.one_of(&tables).map(|(name, _)| name.clone())
    }

    fn definable(&mut self, sight: &Sight<'_>) -> Option<String> {
        let tables = sight.definable();
        self.one_of(&tables).map(|(name, _)| name.clone())
    }

    fn value(&mut self) -> String {
        self.values += 1;
        format!("c{}n{}", self.client, self.values)
    }

    fn key(&mut self) -> i64 {
        self.random.below(KEYS) as i64
    }

    fn some_rows(&mut self, most: u64) -> Vec<KeyValue> {
        let count = 1 + self.random.below(most);
        let mut keys: BTreeSet<i64> = (0..count).map(|_| self.key()).collect();
        if self.random.chance(1, 3) {
            keys = keys.into_iter().map(|key| key + 100 * (1 + self.client as i64)).collect();
        }
        keys.into_iter().map(|key| (key, self.value())).collect()
    }

    fn read(&mut self, sight: &Sight<'_>) -> Statement {
        let table = self.table(sight).unwrap_or_else(|| "nobody".to_owned());
        Statement::Read { table }
    }

    fn rows(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.table(sight)?;
        let old = |source: &mut Source| {
            let (_, found) = sight.view().table(&table)?;
            let rows: Vec<_> = found.rows.values().collect();
            source.one_of(&rows).and_then(|row| row.first().cloned().flatten())
        };
        Some(match self.random.below(20) {
            0..6 => self.insert(table),
            6..9 => self.insert_on_conflict(table),
            9 | 10 => Statement::Update { table, key: self.key(), value: self.value() },
            11 | 12 => {
                let (old, value) = (old(self).unwrap_or_else(|| "none".into()), self.value());
                Statement::UpdateWhere { table, old, value }
            }
            13 | 14 => {
                let (key, returning) = (self.key(), self.random.chance(1, 2));
                Statement::Delete { table, key, returning }
            }
            15 => Statement::DeleteWhere { old: old(self).unwrap_or_else(|| "none".into()), table },
            16 => {
                let from = self.table(sight)?;
                Statement::InsertFrom { key: self.key(), table, from }
            }
            17 | 18 => Statement::Get { key: self.key(), table },
            _ => Statement::Read { table },
        })
    }

    fn insert(&mut self, table: String) -> Statement {
        let (way, most) = match self.random.below(7) {
            0 | 1 => (Way::Simple, 3),
            2 => (Way::Extended, 1),
            3 | 4 => (Way::Pipelined, 6),
            5 => (Way::Batched, 6),
            _ => (Way::Copy, 8),
        };
        let (rows, conflict) = (self.some_rows(most), OnConflict::Fail);
        let returning = way == Way::Simple && self.random.chance(1, 3);
        Statement::Insert { table, rows, way, conflict, returning }
    }

    fn insert_on_conflict(&mut self, table: String) -> Statement {
        let conflicts = [OnConflict::Nothing, OnConflict::Update, OnConflict::UpdateNever];
        let conflict = conflicts[self.random.below(3) as usize];
        let (rows, way, returning) = (self.some_rows(2), Way::Simple, self.random.chance(1, 2));
        Statement::Insert { table, rows, way, conflict, returning }
    }
}
