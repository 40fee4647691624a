//! What each statement must come to: the account of the clients, kept beside the server.
//!
//! A statement is [predicted](World::predict) from the state before it, and [taken](World::take) once it has
//! happened. Each commit makes the next state of the history. Transactions see the state of their BEGIN with their own
//! changes, and the first committer wins.
//!
//! Invariants
//! 1. A prediction changes nothing.
//! 2. The states are in the order of the commits, because one statement runs at a time. Which of them survive a
//!    crash is judged by `history.rs`.

use onrush_oracle::{Expected as _, History};

use crate::effect::of_table;
use crate::state::{Change, Column, State, Thing};
use crate::statement::{Statement, schema_of};

/// An open transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// What it sees.
    pub view: State,
    /// What its commit will do.
    pub changes: Vec<Change>,
    begun_at: usize,
    savepoints: Vec<(String, State, usize)>,
    /// Whether a statement has been asked that sees something: all later ones see the same.
    has_seen: bool,
    /// After an error; only its end is left, or the way back to a savepoint.
    pub has_failed: bool,
}

impl Transaction {
    /// Whether a table is its own.
    pub fn has_made(&self, table: u32) -> bool {
        let is_it = |change: &Change| matches!(change, Change::Create { id, .. } if *id == table);
        self.changes.iter().any(is_it)
    }

    /// The names of the savepoints that there are.
    pub fn savepoints(&self) -> impl Iterator<Item = &str> {
        self.savepoints.iter().map(|(name, _, _)| name.as_str())
    }
}

/// What a statement must come to.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// The tags of what is done.
    pub tags: Vec<String>,
    /// What comes back, where that is looked at.
    pub rows: Option<Vec<Vec<Option<String>>>>,
    /// The SQLSTATEs of which one must come; none: no error.
    pub errors: Vec<&'static str>,
    /// Each is a commit, outside of a transaction.
    pub commits: Vec<Vec<Change>>,
    /// What the answer rests on.
    pub rests: Vec<Thing>,
    /// Somebody else came first, so that an error may come instead.
    pub may_conflict: bool,
    /// Somebody else may have locked a row that the statement wants.
    pub may_wait: bool,
}

/// Where the clients' accounts come together.
#[derive(Clone, Debug)]
pub struct World {
    /// What is committed.
    pub history: History<State>,
    next_table: u32,
}

impl World {
    /// Begins with what is there.
    pub fn new(now: State) -> World {
        let next_table = now.tables.keys().max().map_or(1, |most| most + 1);
        World { history: History::new(now), next_table }
    }

    /// The newest state.
    pub fn now(&self) -> &State {
        self.history.now()
    }

    /// Its number.
    pub fn newest(&self) -> usize {
        self.history.len()
    }

    fn commit(&mut self, changes: &[Change]) {
        let mut next = self.now().clone();
        changes.iter().for_each(|change| next.apply(change));
        // What changes nothing may be no commit at all; to truncate an empty table is one.
        let truncates = changes.iter().any(|change| matches!(change, Change::Truncate { .. }));
        if next != *self.now() || truncates {
            self.history.commit(0, changes.to_vec());
        }
    }

    /// Whether a table's name, columns or existence changed after this transaction began: it stays away from that.
    pub fn is_reshaped_since(&self, transaction: &Transaction, name: &str, id: u32) -> bool {
        let since = |thing| self.history.changed.is_since(&thing, transaction.begun_at);
        since(Thing::Name(name.to_owned())) || since(Thing::Shape(id))
    }

    /// Whether a definition leaves what the transaction sees as it is: one that has changed no row yet goes on with
    /// what is committed by the time it has its locks.
    pub fn keeps_its_view(&self, transaction: &Transaction) -> bool {
        let is_row = |change: &Change| matches!(change, Change::Put { .. } | Change::Delete { .. });
        let is_as_it_was = self.newest() == transaction.begun_at;
        is_as_it_was || transaction.changes.iter().any(is_row)
    }

    /// The state that the answer of a durable session rests on: the oldest from which on it would have been the same.
    pub fn rests_on(
        &self,
        open: Option<&Transaction>,
        statement: &Statement,
        prediction: &Prediction,
    ) -> usize {
        let from = open.map_or(self.newest(), |transaction| transaction.begun_at);
        let is_of_tables = statement.table().is_some() && !open.is_some_and(|open| open.has_failed);
        if !is_of_tables || prediction.may_conflict {
            return 0;
        }
        let is_other = |mut past: State| {
            let changes = open.map_or(&[][..], |open| open.changes.as_slice());
            changes.iter().for_each(|change| past.apply(change));
            let then = self.effect(&past, statement, open.is_some());
            (&then.tags, &then.rows, &then.errors)
                != (&prediction.tags, &prediction.rows, &prediction.errors)
        };
        let others = self.history.states().zip(1..=from + 1);
        let others = others.filter_map(|(past, next)| is_other(past).then_some(next));
        others.last().map_or(0, |next| next.min(from))
    }

    /// What a statement must come to. See the module.
    pub fn predict(&self, open: Option<&Transaction>, statement: &Statement) -> Prediction {
        let Some(transaction) = open else { return self.predict_alone(statement) };
        match statement {
            Statement::Begin => done("BEGIN"),
            Statement::Rollback => done("ROLLBACK"),
            Statement::Commit if transaction.has_failed => done("ROLLBACK"),
            Statement::Commit if self.is_overtaken(transaction) => {
                Prediction { errors: vec!["40001", "23505"], ..Prediction::default() }
            }
            Statement::Commit => {
                Prediction { commits: vec![transaction.changes.clone()], ..done("COMMIT") }
            }
            Statement::RollbackTo(name) => {
                match transaction.savepoints().any(|known| known == name) {
                    true => done("ROLLBACK"),
                    false => failed(&["3B001"]),
                }
            }
            _ if transaction.has_failed => failed(&["25P02"]),
            Statement::Savepoint(_) => done("SAVEPOINT"),
            _ => {
                let mut prediction = self.effect(&transaction.view, statement, true);
                prediction.may_conflict = self.is_in_the_way(transaction, &prediction);
                prediction
            }
        }
    }

    fn predict_alone(&self, statement: &Statement) -> Prediction {
        match statement {
            Statement::Begin => done("BEGIN"),
            Statement::Commit => done("COMMIT"),
            Statement::Rollback => done("ROLLBACK"),
            Statement::Savepoint(_) | Statement::RollbackTo(_) => failed(&["25P01"]),
            _ => self.effect(self.now(), statement, false),
        }
    }

    /// Whether another commit has changed a row that the transaction changes, and leaves in its table.
    fn is_overtaken(&self, transaction: &Transaction) -> bool {
        let is_left = |table: &u32| {
            transaction.changes.iter().any(|change| match change {
                Change::Drop { id } | Change::Truncate { id } => id == table,
                _ => false,
            })
        };
        transaction.changes.iter().any(|change| match change {
            Change::Put { id, .. } | Change::Delete { id, .. } if is_left(id) => false,
            _ => self.is_newer(transaction, change),
        })
    }

    fn is_newer(&self, transaction: &Transaction, change: &Change) -> bool {
        let (Change::Put { id, key, .. } | Change::Delete { id, key }) = change else {
            return false;
        };
        self.history.changed.is_since(&Thing::Key(*id, *key), transaction.begun_at)
    }

    fn is_in_the_way(&self, transaction: &Transaction, prediction: &Prediction) -> bool {
        let written = prediction.commits.iter().flatten();
        let rests = prediction.rests.iter();
        written.chain(&transaction.changes).any(|change| self.is_newer(transaction, change))
            || rests
                .into_iter()
                .any(|thing| self.history.changed.is_since(thing, transaction.begun_at))
    }

    /// The statement has come to what was predicted.
    pub fn take(
        &mut self,
        open: &mut Option<Transaction>,
        statement: &Statement,
        prediction: &Prediction,
    ) {
        let ids = prediction.commits.iter().flatten().filter_map(|change| match change {
            Change::Create { id, .. } => Some(*id),
            _ => None,
        });
        self.next_table = ids.fold(self.next_table, |next, id| next.max(id + 1));
        let Some(transaction) = open else {
            prediction.commits.iter().for_each(|commit| self.commit(commit));
            if *statement == Statement::Begin {
                *open = Some(self.begun());
            }
            return;
        };
        match statement {
            Statement::Commit | Statement::Rollback => {
                prediction.commits.iter().for_each(|commit| self.commit(commit));
                *open = None;
            }
            Statement::Savepoint(name) if prediction.errors.is_empty() => {
                let savepoint = (name.clone(), transaction.view.clone(), transaction.changes.len());
                transaction.savepoints.push(savepoint);
            }
            Statement::RollbackTo(name) if prediction.errors.is_empty() => {
                transaction.go_back(name)
            }
            _ if !prediction.errors.is_empty() => transaction.has_failed = true,
            _ => {
                for change in prediction.commits.iter().flatten() {
                    transaction.view.apply(change);
                    transaction.changes.push(change.clone());
                }
            }
        }
    }

    /// The states that there may be when nobody knows how far a statement came, from that before it on.
    pub fn after(
        &self,
        open: &Option<Transaction>,
        statement: &Statement,
        prediction: &Prediction,
    ) -> History<State> {
        let mut history = History::new(self.now().clone());
        if open.is_none() || *statement == Statement::Commit {
            for commit in &prediction.commits {
                history.commit(0, commit.clone());
            }
        }
        history
    }

    /// The statement was refused, with an error that says that nothing has happened.
    pub fn refuse(&self, open: &mut Option<Transaction>, statement: &Statement) {
        match (statement, &mut *open) {
            (Statement::Commit | Statement::Rollback, _) => *open = None,
            (_, Some(transaction)) => transaction.has_failed = true,
            (_, None) => {}
        }
    }

    fn begun(&self) -> Transaction {
        Transaction {
            view: self.now().clone(),
            changes: Vec::new(),
            begun_at: self.newest(),
            savepoints: Vec::new(),
            has_seen: false,
            has_failed: false,
        }
    }

    /// The first statement of a transaction decides what it sees.
    pub fn look(&self, open: &mut Option<Transaction>, statement: &Statement) {
        let Some(transaction) = open.as_mut().filter(|open| !open.has_seen && !open.has_failed)
        else {
            return;
        };
        if matches!(
            statement,
            Statement::Begin
                | Statement::Commit
                | Statement::Rollback
                | Statement::Savepoint(_)
                | Statement::RollbackTo(_)
        ) {
            return;
        }
        transaction.has_seen = true;
        transaction.view = self.now().clone();
        transaction.begun_at = self.newest();
        for (_, view, _) in &mut transaction.savepoints {
            view.clone_from(&transaction.view);
        }
    }

    /// What a statement does to a state, as one or more commits.
    fn effect(&self, state: &State, statement: &Statement, in_transaction: bool) -> Prediction {
        match statement {
            Statement::CreateTable { table, columns } => self.create_table(state, table, columns),
            Statement::CreateRole { role } => {
                let rests = vec![Thing::Role(role.clone())];
                match state.roles.contains(role) {
                    true => Prediction { rests, ..failed(&["42710"]) },
                    false => changed("CREATE ROLE", vec![Change::CreateRole(role.clone())]),
                }
            }
            Statement::DropRole { role } => {
                let mut grants = state.tables.values().flat_map(|table| &table.grants);
                let has_some = grants.any(|(to, _)| to == role);
                match (state.roles.contains(role), has_some) {
                    (false, _) => missing(Thing::Role(role.clone()), "42704"),
                    (true, true) => failed(&["2BP01"]),
                    _ => changed("DROP ROLE", vec![Change::DropRole(role.clone())]),
                }
            }
            Statement::CreateSchema { schema } => match state.schemas.contains(schema) {
                true => missing(Thing::Schema(schema.clone()), "42P06"),
                false => changed("CREATE SCHEMA", vec![Change::CreateSchema(schema.clone())]),
            },
            Statement::DropSchema { schema } => {
                let is_used = state.names.keys().any(|name| schema_of(name) == schema);
                match (state.schemas.contains(schema), is_used) {
                    (false, _) => missing(Thing::Schema(schema.clone()), "3F000"),
                    (true, true) => failed(&["2BP01"]),
                    _ => changed("DROP SCHEMA", vec![Change::DropSchema(schema.clone())]),
                }
            }
            Statement::Checkpoint => done("CHECKPOINT"),
            _ => of_table(state, statement, in_transaction),
        }
    }

    fn create_table(&self, state: &State, table: &str, columns: &[String]) -> Prediction {
        let schema = schema_of(table);
        if schema != "public" && !state.schemas.contains(schema) {
            return missing(Thing::Schema(schema.to_owned()), "3F000");
        }
        if state.names.contains_key(table) {
            return missing(Thing::Name(table.to_owned()), "42P07");
        }
        let columns = std::iter::once("v").chain(columns.iter().map(String::as_str));
        let column = |name: &str| Column::new(name, None);
        // A transaction's own tables have numbers that no other one gets.
        let most = state.tables.keys().max().map_or(0, |most| most + 1);
        let id = self.next_table.max(most);
        let columns = columns.map(column).collect();
        changed("CREATE TABLE", vec![Change::Create { id, name: table.to_owned(), columns }])
    }
}

impl Transaction {
    fn go_back(&mut self, name: &str) {
        let at = self.savepoints.iter().rposition(|(known, _, _)| known == name);
        let Some(at) = at else { return };
        self.savepoints.truncate(at + 1);
        let (_, view, count) = &self.savepoints[at];
        self.view = view.clone();
        self.changes.truncate(*count);
        self.has_failed = false;
    }
}

/// It succeeds, and changes nothing.
pub(crate) fn done(tag: &str) -> Prediction {
    Prediction { tags: vec![tag.to_owned()], ..Prediction::default() }
}

/// It succeeds, and makes one commit.
pub(crate) fn changed(tag: &str, changes: Vec<Change>) -> Prediction {
    Prediction { commits: vec![changes], ..done(tag) }
}

/// It fails with one of these.
pub(crate) fn failed(states: &[&'static str]) -> Prediction {
    Prediction { errors: states.to_vec(), ..Prediction::default() }
}

/// It fails because of what is there, or is not.
pub(crate) fn missing(thing: Thing, state: &'static str) -> Prediction {
    Prediction { rests: vec![thing], ..failed(&[state]) }
}
