//! The statements that clients send, and their texts.
//!
//! Every table has a bigint key `k`, a text `v`, and perhaps more columns of text. So a statement is few numbers and
//! names, and what it means is plain to the model (`model.rs`).

use crate::wire::Request;

/// A key and the value of `v`.
pub type KeyValue = (i64, String);

/// What is to be done where a key is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// It is an error.
    Fail,
    /// DO NOTHING.
    Nothing,
    /// DO UPDATE.
    Update,
    /// DO UPDATE ... WHERE false: an answer that tells that the key is taken, and writes nothing.
    UpdateNever,
}

/// How rows get to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A simple query.
    Simple,
    /// Parse, Bind, Execute and Sync of one row.
    Extended,
    /// One statement for each row, all sent before the first answer: a commit each, outside of a transaction.
    Pipelined,
    /// One statement for each row, all sent in one go with one Sync behind them: all rows or none.
    Batched,
    /// COPY FROM STDIN.
    Copy,
}

/// See the module. Names are as in SQL: of a table in `public` without the schema. A new value is that of `v`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Statement {
    Begin,
    Commit,
    Rollback,
    /// SAVEPOINT of this name.
    Savepoint(String),
    /// ROLLBACK TO it.
    RollbackTo(String),
    /// With these columns beside `k` and `v`.
    CreateTable {
        table: String,
        columns: Vec<String>,
    },
    DropTable {
        table: String,
    },
    /// Within a schema.
    RenameTable {
        table: String,
        to: String,
    },
    /// Rows that are there get the default, if there is one.
    AddColumn {
        table: String,
        column: String,
        default: Option<String>,
    },
    DropColumn {
        table: String,
        column: String,
    },
    RenameColumn {
        table: String,
        column: String,
        to: String,
    },
    /// Of rows that come from now on; none takes it away.
    SetDefault {
        table: String,
        column: String,
        default: Option<String>,
    },
    /// Or DROP NOT NULL.
    SetNotNull {
        table: String,
        column: String,
        is_not_null: bool,
    },
    /// The rows are written anew.
    SetType {
        table: String,
        column: String,
        to: &'static str,
    },
    Truncate {
        table: String,
    },
    /// Of a column, or of the table; none takes it away.
    Comment {
        table: String,
        column: Option<String>,
        text: Option<String>,
    },
    CreateRole {
        role: String,
    },
    DropRole {
        role: String,
    },
    /// Or REVOKE.
    Grant {
        right: &'static str,
        table: String,
        role: String,
        is_grant: bool,
    },
    CreateSchema {
        schema: String,
    },
    DropSchema {
        schema: String,
    },
    /// Of rows with these keys.
    Insert {
        table: String,
        rows: Vec<KeyValue>,
        way: Way,
        conflict: OnConflict,
        returning: bool,
    },
    /// INSERT ... SELECT of the row with a key of another table.
    InsertFrom {
        table: String,
        from: String,
        key: i64,
    },
    /// Of the row with a key.
    Update {
        table: String,
        key: i64,
        value: String,
    },
    /// Of the rows with a value.
    UpdateWhere {
        table: String,
        old: String,
        value: String,
    },
    /// Of the row with a key.
    Delete {
        table: String,
        key: i64,
        returning: bool,
    },
    /// Of the rows with a value.
    DeleteWhere {
        table: String,
        old: String,
    },
    /// Of the row with a key.
    Get {
        table: String,
        key: i64,
    },
    /// All rows, by COPY TO STDOUT.
    Read {
        table: String,
    },
    Checkpoint,
}

impl Statement {
    /// The table that it is about.
    pub fn table(&self) -> Option<&str> {
        match self {
            Statement::CreateTable { table, .. }
            | Statement::DropTable { table }
            | Statement::RenameTable { table, .. }
            | Statement::AddColumn { table, .. }
            | Statement::DropColumn { table, .. }
            | Statement::RenameColumn { table, .. }
            | Statement::SetDefault { table, .. }
            | Statement::SetNotNull { table, .. }
            | Statement::SetType { table, .. }
            | Statement::Truncate { table }
            | Statement::Comment { table, .. }
            | Statement::Grant { table, .. }
            | Statement::Insert { table, .. }
            | Statement::InsertFrom { table, .. }
            | Statement::Update { table, .. }
            | Statement::UpdateWhere { table, .. }
            | Statement::Delete { table, .. }
            | Statement::DeleteWhere { table, .. }
            | Statement::Get { table, .. }
            | Statement::Read { table } => Some(table),
            Statement::Begin
            | Statement::Commit
            | Statement::Rollback
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::CreateRole { .. }
            | Statement::DropRole { .. }
            | Statement::CreateSchema { .. }
            | Statement::DropSchema { .. }
            | Statement::Checkpoint => None,
        }
    }

    /// What is sent for it.
    pub fn request(&self) -> Request {
        if let Statement::Insert { table, rows, way, .. } = self {
            let text = format!("INSERT INTO {table} (k, v) VALUES ($1, $2)");
            let values = |(key, value): &KeyValue| vec![key.to_string(), value.clone()];
            match way {
                Way::Simple => {}
                Way::Extended => {
                    return Request::Extended(text, rows.iter().flat_map(values).collect());
                }
                Way::Pipelined => {
                    return Request::Pipelined(text, rows.iter().map(values).collect());
                }
                Way::Batched => {
                    return Request::Batched(text, rows.iter().map(values).collect());
                }
                Way::Copy => {
                    let lines =
                        rows.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect();
                    return Request::CopyIn(format!("COPY {table} (k, v) FROM STDIN"), lines);
                }
            }
        }
        Request::Simple(self.text())
    }

    /// As SQL; what is sent otherwise than as a simple query says so.
    pub fn text(&self) -> String {
        match self {
            Statement::Begin => "BEGIN".into(),
            Statement::Commit => "COMMIT".into(),
            Statement::Rollback => "ROLLBACK".into(),
            Statement::Savepoint(name) => format!("SAVEPOINT {name}"),
            Statement::RollbackTo(name) => format!("ROLLBACK TO {name}"),
            Statement::CreateTable { table, columns } => {
                let more: String =
                    columns.iter().map(|column| format!(", {column} text")).collect();
                format!("CREATE TABLE {table} (k bigint PRIMARY KEY, v text{more})")
            }
            Statement::DropTable { table } => format!("DROP TABLE {table}"),
            Statement::RenameTable { table, to } => {
                format!("ALTER TABLE {table} RENAME TO {}", own_name(to))
            }
            Statement::AddColumn { table, column, default } => {
                let default = default
                    .as_ref()
                    .map_or_else(String::new, |value| format!(" DEFAULT '{value}'"));
                format!("ALTER TABLE {table} ADD COLUMN {column} text{default}")
            }
            Statement::DropColumn { table, column } => {
                format!("ALTER TABLE {table} DROP COLUMN {column}")
            }
            Statement::RenameColumn { table, column, to } => {
                format!("ALTER TABLE {table} RENAME COLUMN {column} TO {to}")
            }
            Statement::SetDefault { table, column, default: Some(value) } => {
                format!("ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT '{value}'")
            }
            Statement::SetDefault { table, column, default: None } => {
                format!("ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT")
            }
            Statement::SetNotNull { table, column, is_not_null } => {
                let verb = if *is_not_null { "SET" } else { "DROP" };
                format!("ALTER TABLE {table} ALTER COLUMN {column} {verb} NOT NULL")
            }
            Statement::SetType { table, column, to } => {
                format!("ALTER TABLE {table} ALTER COLUMN {column} TYPE {to}")
            }
            Statement::Truncate { table } => format!("TRUNCATE {table}"),
            Statement::Comment { table, column, text } => {
                let what = match column {
                    None => format!("TABLE {table}"),
                    Some(column) => format!("COLUMN {table}.{column}"),
                };
                let text = text.as_ref().map_or_else(|| "NULL".into(), |text| format!("'{text}'"));
                format!("COMMENT ON {what} IS {text}")
            }
            Statement::CreateRole { role } => format!("CREATE ROLE {role}"),
            Statement::DropRole { role } => format!("DROP ROLE {role}"),
            Statement::Grant { right, table, role, is_grant: true } => {
                format!("GRANT {right} ON {table} TO {role}")
            }
            Statement::Grant { right, table, role, is_grant: false } => {
                format!("REVOKE {right} ON {table} FROM {role}")
            }
            Statement::CreateSchema { schema } => format!("CREATE SCHEMA {schema}"),
            Statement::DropSchema { schema } => format!("DROP SCHEMA {schema}"),
            Statement::Insert { .. } => self.insert_text(),
            Statement::InsertFrom { table, from, key } => {
                format!("INSERT INTO {table} (k, v) SELECT k, v FROM {from} WHERE k = {key}")
            }
            Statement::Update { table, key, value } => {
                format!("UPDATE {table} SET v = '{value}' WHERE k = {key}")
            }
            Statement::UpdateWhere { table, old, value } => {
                format!("UPDATE {table} SET v = '{value}' WHERE v = '{old}'")
            }
            Statement::Delete { table, key, returning } => {
                let returning = if *returning { " RETURNING k, v" } else { "" };
                format!("DELETE FROM {table} WHERE k = {key}{returning}")
            }
            Statement::DeleteWhere { table, old } => {
                format!("DELETE FROM {table} WHERE v = '{old}'")
            }
            Statement::Get { table, key } => format!("SELECT k, v FROM {table} WHERE k = {key}"),
            Statement::Read { table } => format!("COPY {table} TO STDOUT"),
            Statement::Checkpoint => "CHECKPOINT".into(),
        }
    }

    fn insert_text(&self) -> String {
        let Statement::Insert { table, rows, way, conflict, returning } = self else {
            return String::new();
        };
        let rows: Vec<String> =
            rows.iter().map(|(key, value)| format!("({key}, '{value}')")).collect();
        let conflict = match conflict {
            OnConflict::Fail => "",
            OnConflict::Nothing => " ON CONFLICT DO NOTHING",
            OnConflict::Update => " ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v",
            OnConflict::UpdateNever => " ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v WHERE false",
        };
        let returning = if *returning { " RETURNING k, v" } else { "" };
        let way = match way {
            Way::Simple => "",
            Way::Extended => " -- extended",
            Way::Pipelined => " -- pipelined, one statement a row",
            Way::Batched => " -- batched, one statement a row",
            Way::Copy => " -- by COPY",
        };
        format!("INSERT INTO {table} (k, v) VALUES {}{conflict}{returning}{way}", rows.join(", "))
    }
}

/// The name of a table without its schema.
pub fn own_name(table: &str) -> &str {
    table.rsplit('.').next().unwrap_or(table)
}

/// The schema of a table.
pub fn schema_of(table: &str) -> &str {
    table.split_once('.').map_or("public", |(schema, _)| schema)
}
