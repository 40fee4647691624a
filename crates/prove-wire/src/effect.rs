//! What a statement about one table comes to, of the state that it sees.
//!
//! Beside `model.rs`: that one knows of transactions, this one of tables and rows. Nothing here changes anything.

use crate::model::{Prediction, changed, done, failed, missing};
use crate::state::{Change, Column, Row, State, Table, Thing};
use crate::statement::{OnConflict, Statement, Way};

/// What a statement does that is about one table, which has to be there.
pub(crate) fn of_table(state: &State, statement: &Statement, in_transaction: bool) -> Prediction {
    let name = statement.table().unwrap_or_default();
    let Some((id, table)) = state.table(name) else {
        let thing = Thing::Name(name.to_owned());
        return missing(thing, "42P01");
    };
    let place = Place { id, name, table };
    match statement {
        Statement::DropTable { .. } => changed("DROP TABLE", vec![Change::Drop { id }]),
        Statement::RenameTable { to, .. } => match state.names.contains_key(to) {
            true => missing(Thing::Name(to.clone()), "42P07"),
            false => changed("ALTER TABLE", vec![Change::Rename { id, to: to.clone() }]),
        },
        Statement::Truncate { .. } if in_transaction => {
            let delete = |key: &i64| Change::Delete { id, key: *key };
            changed("TRUNCATE TABLE", table.rows.keys().map(delete).collect())
        }
        Statement::Truncate { .. } => changed("TRUNCATE TABLE", vec![Change::Truncate { id }]),
        Statement::AddColumn { column, default, .. } => match place.has_column(column) {
            true => place.shape_error("42701"),
            false => {
                let column = Column::new(column, default.clone());
                changed("ALTER TABLE", vec![Change::AddColumn { id, column }])
            }
        },
        Statement::DropColumn { column, .. } => match place.has_column(column) {
            false => place.shape_error("42703"),
            true => changed("ALTER TABLE", vec![Change::DropColumn { id, name: column.clone() }]),
        },
        Statement::RenameColumn { column, to, .. } => {
            match (place.has_column(column), place.has_column(to)) {
                (false, _) => place.shape_error("42703"),
                (_, true) => place.shape_error("42701"),
                _ => {
                    let (name, to) = (column.clone(), to.clone());
                    changed("ALTER TABLE", vec![Change::RenameColumn { id, name, to }])
                }
            }
        }
        Statement::SetDefault { column, .. }
        | Statement::SetNotNull { column, .. }
        | Statement::SetType { column, .. }
            if !place.has_column(column) =>
        {
            place.shape_error("42703")
        }
        Statement::SetDefault { column, default, .. } => {
            let (name, default) = (column.clone(), default.clone());
            changed("ALTER TABLE", vec![Change::SetDefault { id, name, default }])
        }
        Statement::SetNotNull { column, is_not_null: true, .. } if place.has_null(column) => {
            Prediction { rests: place.rests_on([Thing::Rows(id)]), ..failed(&["23502"]) }
        }
        Statement::SetNotNull { column, is_not_null, .. } => {
            let (name, is_not_null) = (column.clone(), *is_not_null);
            changed("ALTER TABLE", vec![Change::SetNotNull { id, name, is_not_null }])
        }
        Statement::SetType { column, to, .. } => {
            let (name, to) = (column.clone(), *to);
            changed("ALTER TABLE", vec![Change::SetType { id, name, to }])
        }
        Statement::Comment { column, text, .. } => {
            let column = column.clone().unwrap_or_default();
            if !column.is_empty() && !place.has_column(&column) {
                return place.shape_error("42703");
            }
            changed("COMMENT", vec![Change::Comment { id, column, text: text.clone() }])
        }
        Statement::Grant { right, role, is_grant, .. } => {
            if !state.roles.contains(role) {
                return missing(Thing::Role(role.clone()), "42704");
            }
            let (role, is_grant) = (role.clone(), *is_grant);
            let tag = if is_grant { "GRANT" } else { "REVOKE" };
            changed(tag, vec![Change::Grant { id, role, right, is_grant }])
        }
        Statement::InsertFrom { from, key, .. } => place.insert_from(state, from, *key),
        _ => place.of_rows(statement, in_transaction),
    }
}

/// A table that is there.
struct Place<'s> {
    id: u32,
    name: &'s str,
    table: &'s Table,
}

impl Place<'_> {
    fn has_column(&self, name: &str) -> bool {
        name == "k" || self.table.column(name).is_some()
    }

    /// Whether a row has no value in a column.
    fn has_null(&self, name: &str) -> bool {
        let lacks = |at: usize| self.table.rows.values().any(|row| row[at].is_none());
        self.table.column(name).is_some_and(lacks)
    }

    /// Whether a new row has no value where it needs one; only `k` and `v` are given.
    fn refuses_new_rows(&self) -> bool {
        let lacks =
            |column: &Column| column.is_not_null && column.default.is_none() && column.name != "v";
        self.table.columns.iter().any(lacks)
    }

    fn shape_error(&self, state: &'static str) -> Prediction {
        Prediction { rests: self.rests_on([]), ..failed(&[state]) }
    }

    /// Whoever finds a row, or finds none, has found the table, too.
    fn rests_on(&self, more: impl IntoIterator<Item = Thing>) -> Vec<Thing> {
        let table = [Thing::Name(self.name.to_owned()), Thing::Shape(self.id)];
        table.into_iter().chain(more).collect()
    }

    fn key(&self, key: i64) -> Thing {
        Thing::Key(self.id, key)
    }

    fn new_row(&self, value: &str) -> Row {
        let of = |column: &Column| match column.name.as_str() {
            "v" => Some(value.to_owned()),
            _ => column.default.clone(),
        };
        self.table.columns.iter().map(of).collect()
    }

    fn with_value(&self, row: &Row, value: &str) -> Row {
        let at = self.value_at();
        let change = |(index, old): (usize, &Option<String>)| match index == at {
            true => Some(value.to_owned()),
            false => old.clone(),
        };
        row.iter().enumerate().map(change).collect()
    }

    fn value_at(&self) -> usize {
        self.table.column("v").unwrap_or(0)
    }

    fn shown(&self, key: i64, row: &Row) -> Vec<Option<String>> {
        vec![Some(key.to_string()), row.get(self.value_at()).cloned().flatten()]
    }

    fn of_rows(&self, statement: &Statement, in_transaction: bool) -> Prediction {
        let rows = &self.table.rows;
        match statement {
            Statement::Insert { rows: given, way, conflict, returning, .. } => match way {
                Way::Pipelined if !in_transaction => self.pipelined(given),
                _ => self.insert(given, *way, *conflict, *returning),
            },
            Statement::Update { key, value, .. } => {
                let put = rows.get(key).map(|row| self.put(*key, self.with_value(row, value)));
                self.counted("UPDATE", put, [self.key(*key)])
            }
            Statement::UpdateWhere { old, value, .. } => {
                let found = self.with(old);
                let put = found.map(|(key, row)| self.put(*key, self.with_value(row, value)));
                self.counted("UPDATE", put, [Thing::Rows(self.id)])
            }
            Statement::Delete { key, returning, .. } => {
                let found = rows.get(key);
                let shown = found.map(|row| self.shown(*key, row));
                let delete = found.map(|_| Change::Delete { id: self.id, key: *key });
                let prediction = self.counted("DELETE", delete, [self.key(*key)]);
                Prediction { rows: returning.then(|| shown.into_iter().collect()), ..prediction }
            }
            Statement::DeleteWhere { old, .. } => {
                let found = self.with(old);
                let delete = found.map(|(key, _)| Change::Delete { id: self.id, key: *key });
                self.counted("DELETE", delete, [Thing::Rows(self.id)])
            }
            Statement::Get { key, .. } => {
                let found: Vec<_> =
                    rows.get(key).map(|row| self.shown(*key, row)).into_iter().collect();
                let prediction = done(&format!("SELECT {}", found.len()));
                let rests = self.rests_on([self.key(*key)]);
                Prediction { rows: Some(found), rests, ..prediction }
            }
            _ => {
                let shown = |(key, row): (&i64, &Row)| {
                    std::iter::once(Some(key.to_string())).chain(row.iter().cloned()).collect()
                };
                let found: Vec<Vec<_>> = rows.iter().map(shown).collect();
                let prediction = done(&format!("COPY {}", found.len()));
                let rests = self.rests_on([Thing::Rows(self.id)]);
                Prediction { rows: Some(found), rests, ..prediction }
            }
        }
    }

    fn with(&self, value: &str) -> impl Iterator<Item = (&i64, &Row)> {
        let at = self.value_at();
        self.table.rows.iter().filter(move |(_, row)| row[at].as_deref() == Some(value))
    }

    fn put(&self, key: i64, row: Row) -> Change {
        Change::Put { id: self.id, key, row }
    }

    fn counted(
        &self,
        verb: &str,
        changes: impl IntoIterator<Item = Change>,
        rests: impl IntoIterator<Item = Thing>,
    ) -> Prediction {
        let changes: Vec<Change> = changes.into_iter().collect();
        let tag = format!("{verb} {}", changes.len());
        Prediction { rests: self.rests_on(rests), ..changed(&tag, changes) }
    }

    /// All rows or none.
    fn insert(
        &self,
        given: &[(i64, String)],
        way: Way,
        conflict: OnConflict,
        returning: bool,
    ) -> Prediction {
        if !given.is_empty() && self.refuses_new_rows() {
            return self.shape_error("23502");
        }
        let keys = given.iter().map(|(key, _)| self.key(*key));
        let rests = self.rests_on(keys);
        let (mut changes, mut shown) = (Vec::new(), Vec::new());
        for (key, value) in given {
            let old = self.table.rows.get(key);
            let row = match (old, conflict) {
                (None, _) => self.new_row(value),
                (Some(_), OnConflict::Fail) => return self.duplicate(given),
                (Some(_), OnConflict::Nothing | OnConflict::UpdateNever) => continue,
                (Some(old), OnConflict::Update) => self.with_value(old, value),
            };
            shown.push(self.shown(*key, &row));
            changes.push(self.put(*key, row));
        }
        let count = changes.len();
        let tags = match way {
            Way::Copy => vec![format!("COPY {count}")],
            // In a transaction each row of a pipeline is a statement, and that of a batch always.
            Way::Pipelined | Way::Batched => vec!["INSERT 0 1".to_owned(); count],
            Way::Simple | Way::Extended => vec![format!("INSERT 0 {count}")],
        };
        let rows = returning.then_some(shown);
        Prediction { tags, rows, rests, ..changed("", changes) }
    }

    /// A key is taken. Of several the error tells of one.
    fn duplicate(&self, given: &[(i64, String)]) -> Prediction {
        let is_taken = |key: &i64| self.table.rows.contains_key(key);
        let taken: Vec<i64> = given.iter().map(|(key, _)| *key).filter(is_taken).collect();
        let rests = match taken[..] {
            [key] => self.rests_on([self.key(key)]),
            _ => self.rests_on([]),
        };
        Prediction { rests, ..failed(&["23505"]) }
    }

    /// A commit for each row. One that is taken is an error for itself: each has a Sync.
    fn pipelined(&self, given: &[(i64, String)]) -> Prediction {
        if self.refuses_new_rows() {
            return self.shape_error("23502");
        }
        let rests = self.rests_on(given.iter().map(|(key, _)| self.key(*key)));
        let mut prediction = Prediction { rests, ..Prediction::default() };
        for (key, value) in given {
            if self.table.rows.contains_key(key) {
                prediction.errors = vec!["23505"];
                continue;
            }
            prediction.tags.push("INSERT 0 1".into());
            prediction.commits.push(vec![self.put(*key, self.new_row(value))]);
        }
        prediction
    }

    fn insert_from(&self, state: &State, from: &str, key: i64) -> Prediction {
        let Some((id, table)) = state.table(from) else {
            return missing(Thing::Name(from.to_owned()), "42P01");
        };
        let source = Place { id, name: from, table };
        let found = table.rows.get(&key);
        let value = found.and_then(|row| row.get(source.value_at()).cloned().flatten());
        let given: Vec<_> = value.map(|value| (key, value)).into_iter().collect();
        let mut prediction = self.insert(&given, Way::Simple, OnConflict::Fail, false);
        // Without a row to insert nothing is told of the rows of the table.
        prediction.rests.extend(source.rests_on([source.key(key)]));
        prediction
    }
}
