//! What a database holds, as its clients see it: tables by number, and which name has which of them now.
//!
//! Beside the life of an insert: this is the account that the server does not know. It knows no page, no log and no
//! LSN; what a power cut may leave is one of these states.
//!
//! Invariant: two states with the same [`lines`](State::lines) look the same to every client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onrush_oracle::{Expected, Placed};

use crate::statement::schema_of;

/// A state's lines, shared by all that look at it.
pub type Lines = Arc<Vec<String>>;

/// Values of the columns behind the key.
pub type Row = Vec<Option<String>>;

/// The types that a key can have: the first at the beginning.
pub const KEY_TYPES: [&str; 2] = ["bigint", "integer"];

/// Those of other columns.
pub const VALUE_TYPES: [&str; 2] = ["text", "varchar(40)"];

/// A column behind the key, and what a row gets in it unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its default.
    pub default: Option<String>,
    /// Whether a row without a value is refused.
    pub is_not_null: bool,
    /// One of [`VALUE_TYPES`].
    pub data_type: &'static str,
}

impl Column {
    /// As a table has it that is new.
    pub fn new(name: &str, default: Option<String>) -> Column {
        Column { name: name.to_owned(), default, is_not_null: false, data_type: VALUE_TYPES[0] }
    }
}

/// One table, whatever its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// One of [`KEY_TYPES`].
    pub key_type: &'static str,
    /// `v`, and more.
    pub columns: Vec<Column>,
    /// By key.
    pub rows: BTreeMap<i64, Row>,
    /// Role and right.
    pub grants: BTreeSet<(String, &'static str)>,
    /// By column; that of the table itself under no name.
    pub comments: BTreeMap<String, String>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The number of the table that has a name.
    pub names: BTreeMap<String, u32>,
    /// Tables by number.
    pub tables: BTreeMap<u32, Table>,
    /// Roles.
    pub roles: BTreeSet<String>,
    /// Schemas but for `public`.
    pub schemas: BTreeSet<String>,
}

/// One change of a state. Several together are a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Change {
    Create { id: u32, name: String, columns: Vec<Column> },
    Drop { id: u32 },
    Rename { id: u32, to: String },
    AddColumn { id: u32, column: Column },
    DropColumn { id: u32, name: String },
    RenameColumn { id: u32, name: String, to: String },
    SetDefault { id: u32, name: String, default: Option<String> },
    SetNotNull { id: u32, name: String, is_not_null: bool },
    SetType { id: u32, name: String, to: &'static str },
    Truncate { id: u32 },
    Put { id: u32, key: i64, row: Row },
    Delete { id: u32, key: i64 },
    Grant { id: u32, role: String, right: &'static str, is_grant: bool },
    Comment { id: u32, column: String, text: Option<String> },
    CreateRole(String),
    DropRole(String),
    CreateSchema(String),
    DropSchema(String),
}

/// Something that an answer can rest on: the last commit that changed it has to be durable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// Which table has a name.
    Name(String),
    /// Columns of a table, and that it was truncated.
    Shape(u32),
    /// Any row of a table.
    Rows(u32),
    /// The row with a key.
    Key(u32, i64),
    /// Whether there is a role of this name, and what it was granted.
    Role(String),
    /// Whether there is a schema of this name.
    Schema(String),
}

impl State {
    /// The table that has a name, with its number.
    pub fn table(&self, name: &str) -> Option<(u32, &Table)> {
        let id = *self.names.get(name)?;
        Some((id, self.tables.get(&id)?))
    }

    /// The name of a table.
    pub fn name_of(&self, id: u32) -> Option<&str> {
        self.names.iter().find(|(_, of)| **of == id).map(|(name, _)| name.as_str())
    }

    /// Everything that can be seen, a line each, in the order of their bytes.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.roles.iter().map(|role| format!("role {role}")).collect();
        lines.extend(self.schemas.iter().map(|schema| format!("schema {schema}")));
        for (name, id) in &self.names {
            if let Some(table) = self.tables.get(id) {
                table.add_lines(&full_name(name), &mut lines);
            }
        }
        lines.sort();
        lines
    }
}

impl Expected for State {
    type Change = Change;
    type Print = Lines;

    /// Makes a change. One of a table that is gone does nothing.
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Create { id, name, columns } => {
                self.names.insert(name.clone(), *id);
                let (key_type, columns) = (KEY_TYPES[0], columns.clone());
                let table = Table { key_type, columns, ..Table::default() };
                self.tables.insert(*id, table);
            }
            Change::Drop { id } => {
                self.names.retain(|_, of| of != id);
                self.tables.remove(id);
            }
            Change::Rename { id, to } => {
                self.names.retain(|_, of| of != id);
                self.names.insert(to.clone(), *id);
            }
            Change::CreateRole(role) => drop(self.roles.insert(role.clone())),
            Change::DropRole(role) => {
                self.roles.remove(role);
                let grants = self.tables.values_mut().map(|table| &mut table.grants);
                grants.for_each(|grants| grants.retain(|(to, _)| to != role));
            }
            Change::CreateSchema(schema) => drop(self.schemas.insert(schema.clone())),
            Change::DropSchema(schema) => drop(self.schemas.remove(schema)),
            Change::AddColumn { id, .. }
            | Change::DropColumn { id, .. }
            | Change::RenameColumn { id, .. }
            | Change::SetDefault { id, .. }
            | Change::SetNotNull { id, .. }
            | Change::SetType { id, .. }
            | Change::Truncate { id }
            | Change::Put { id, .. }
            | Change::Delete { id, .. }
            | Change::Grant { id, .. }
            | Change::Comment { id, .. } => {
                if let Some(table) = self.tables.get_mut(id) {
                    table.apply(change);
                }
            }
        }
    }

    fn print(&self) -> Lines {
        Arc::new(self.lines())
    }
}

impl Table {
    /// Where a column stands behind the key.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    fn set(&mut self, name: &str, set: impl FnOnce(&mut Column)) {
        if let Some(at) = self.column(name) {
            set(&mut self.columns[at]);
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::AddColumn { column, .. } => {
                self.rows.values_mut().for_each(|row| row.push(column.default.clone()));
                self.columns.push(column.clone());
            }
            Change::DropColumn { name, .. } => {
                if let Some(at) = self.column(name) {
                    self.columns.remove(at);
                    self.rows.values_mut().for_each(|row| drop(row.remove(at)));
                }
                self.comments.remove(name);
            }
            Change::RenameColumn { name, to, .. } => {
                if let Some(at) = self.column(name) {
                    self.columns[at].name.clone_from(to);
                }
                if let Some(text) = self.comments.remove(name) {
                    self.comments.insert(to.clone(), text);
                }
            }
            Change::SetDefault { name, default, .. } => {
                self.set(name, |column| column.default.clone_from(default));
            }
            Change::SetNotNull { name, is_not_null, .. } => {
                self.set(name, |column| column.is_not_null = *is_not_null);
            }
            Change::SetType { name, to, .. } if name == "k" => self.key_type = to,
            Change::SetType { name, to, .. } => self.set(name, |column| column.data_type = to),
            Change::Truncate { .. } => self.rows.clear(),
            Change::Put { key, row, .. } => drop(self.rows.insert(*key, row.clone())),
            Change::Delete { key, .. } => drop(self.rows.remove(key)),
            Change::Grant { role, right, is_grant: true, .. } => {
                self.grants.insert((role.clone(), right));
            }
            Change::Grant { role, right, .. } => {
                self.grants.remove(&(role.clone(), *right));
            }
            Change::Comment { column, text: Some(text), .. } => {
                self.comments.insert(column.clone(), text.clone());
            }
            Change::Comment { column, .. } => drop(self.comments.remove(column)),
            _ => {}
        }
    }

    fn add_lines(&self, name: &str, lines: &mut Vec<String>) {
        lines.push(column_line(name, "k"));
        lines.push(type_line(name, "k", self.key_type));
        for column in &self.columns {
            lines.push(column_line(name, &column.name));
            lines.push(type_line(name, &column.name, column.data_type));
            lines.extend(column.default.iter().map(|text| default_line(name, &column.name, text)));
            lines.extend(column.is_not_null.then(|| not_null_line(name, &column.name)));
        }
        lines.extend(self.rows.iter().map(|(key, row)| {
            let key = Some(key.to_string());
            row_line(name, std::iter::once(&key).chain(row))
        }));
        let grants = self.grants.iter();
        lines.extend(grants.map(|(role, right)| format!("grant {name} {right} to {role}")));
        let comments = self.comments.iter();
        lines.extend(comments.map(|(column, text)| comment_line(name, column, text)));
    }
}

/// With the schema, also that of `public`.
pub fn full_name(table: &str) -> String {
    format!("{}.{}", schema_of(table), crate::statement::own_name(table))
}

/// That a table has a column.
pub fn column_line(table: &str, column: &str) -> String {
    format!("column {table} {column}")
}

/// The type of a column.
pub fn type_line(table: &str, column: &str, data_type: &str) -> String {
    format!("type {table} {column} {data_type}")
}

/// What rows get in a column that say nothing.
pub fn default_line(table: &str, column: &str, text: &str) -> String {
    format!("default {table} {column} {text}")
}

/// That a column, not one of the key, may not be without a value.
pub fn not_null_line(table: &str, column: &str) -> String {
    format!("not-null {table} {column}")
}

/// That something is said of a table, or of a column.
pub fn comment_line(table: &str, column: &str, text: &str) -> String {
    format!("comment {table} {column}: {text}")
}

/// That a table has a row.
pub fn row_line<'v>(table: &str, values: impl Iterator<Item = &'v Option<String>>) -> String {
    let shown = values.map(|value| value.as_deref().unwrap_or("NULL"));
    format!("row {table} {}", shown.collect::<Vec<_>>().join("|"))
}

impl Placed for State {
    type Place = Thing;

    fn places(&self, change: &Change) -> Vec<Thing> {
        let name = |id: &u32| self.name_of(*id).map(|name| Thing::Name(name.to_owned()));
        match change {
            Change::Create { name, id, .. } => {
                vec![Thing::Name(name.clone()), Thing::Shape(*id), Thing::Rows(*id)]
            }
            Change::Drop { id } => name(id).into_iter().collect(),
            Change::Rename { id, to } => {
                name(id).into_iter().chain([Thing::Name(to.clone())]).collect()
            }
            Change::AddColumn { id, .. }
            | Change::DropColumn { id, .. }
            | Change::RenameColumn { id, .. }
            | Change::SetDefault { id, .. }
            | Change::SetNotNull { id, .. }
            | Change::SetType { id, .. }
            | Change::Truncate { id } => vec![Thing::Shape(*id), Thing::Rows(*id)],
            Change::Put { id, key, .. } | Change::Delete { id, key } => {
                vec![Thing::Key(*id, *key), Thing::Rows(*id)]
            }
            Change::Grant { role, .. } => vec![Thing::Role(role.clone())],
            Change::Comment { .. } => Vec::new(),
            Change::CreateRole(role) | Change::DropRole(role) => vec![Thing::Role(role.clone())],
            Change::CreateSchema(schema) | Change::DropSchema(schema) => {
                vec![Thing::Schema(schema.clone())]
            }
        }
    }
}
