//! One connection to MariaDB.

use std::collections::HashMap;
use std::path::Path;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, Statement, Value};
use onrush_measure::classic_table::NumberColumns;

use super::{LOAD, key_by_server, statistics};
use crate::target::record::Snapshot;
use crate::target::rows::{Columns, Key, Row};
use crate::target::server::plan::Plan;
use crate::target::server::watch::Seen;
use crate::target::server::{Connection, Refusal};

/// Opens a connection.
pub(super) fn connect(socket: &Path, user: &str, database: &str) -> Result<Conn, Refusal> {
    let options = OptsBuilder::new()
        .socket(Some(socket.display().to_string()))
        .user(Some(user))
        .db_name(Some(database));
    Ok(Conn::new(options)?)
}

/// An INSERT of so many rows.
pub(super) fn insert_text(plan: &Plan, rows: usize) -> String {
    let (columns, value) = match plan.sent_columns() {
        [] => {
            let (column, value) = key_by_server(plan);
            (column.to_owned(), value.to_owned())
        }
        sent => (sent.join(", "), format!("({})", vec!["?"; sent.len()].join(", "))),
    };
    let values = vec![value; rows].join(", ");
    format!("insert into my_big_table ({columns}) values {values}")
}

/// A connection and its prepared statements.
pub(super) struct Session {
    connection: Conn,
    inserts: HashMap<usize, Statement>, // by their rows
    call: Option<Statement>,
    plan: Option<Plan>,
    is_uuid: bool,
}

impl Session {
    pub(super) fn new(connection: Conn, is_uuid: bool) -> Session {
        Session { connection, inserts: HashMap::new(), call: None, plan: None, is_uuid }
    }

    fn statement(&mut self, rows: usize) -> Result<Statement, Refusal> {
        if let Some(statement) = self.inserts.get(&rows) {
            return Ok(statement.clone());
        }
        let plan = self.plan.as_ref().ok_or("the connection was not prepared for a load")?;
        let statement = self.connection.prep(insert_text(plan, rows))?;
        self.inserts.insert(rows, statement.clone());
        Ok(statement)
    }
}

impl Connection for Session {
    fn prepare(&mut self, plan: &Plan) -> Result<(), Refusal> {
        self.plan = Some(plan.clone());
        if plan.is_loop_in_server {
            self.call = Some(self.connection.prep("call insert_rows(?, ?)")?);
            return Ok(());
        }
        plan.statements().into_iter().try_for_each(|rows| self.statement(rows).map(|_| ()))
    }

    fn insert(&mut self, keys: &[Key], rows: usize) -> Result<(), Refusal> {
        let statement = self.statement(rows)?;
        let parameters = match keys {
            [] => Params::Empty,
            keys => {
                let numbers =
                    self.plan.as_ref().map_or(NumberColumns::Constant, |plan| plan.numbers);
                Params::Positional(keys.iter().flat_map(|key| values(*key, numbers)).collect())
            }
        };
        self.connection.exec_drop(&statement, parameters)?;
        match self.connection.affected_rows() {
            inserted if inserted == rows as u64 => Ok(()),
            inserted => Err(format!("it inserted {inserted} rows in place of {rows}").into()),
        }
    }

    fn begin(&mut self) -> Result<(), Refusal> {
        Ok(self.connection.query_drop("start transaction")?)
    }

    fn commit(&mut self) -> Result<(), Refusal> {
        Ok(self.connection.query_drop("commit")?)
    }

    fn call(&mut self, first_key: i64, transactions: u64) -> Result<(), Refusal> {
        let call = self.call.as_ref().ok_or("the connection was not prepared for a procedure")?;
        Ok(self.connection.exec_drop(call, (first_key, transactions))?)
    }

    fn look(&mut self, seen: &mut dyn FnMut(Seen)) -> Result<(), Refusal> {
        const SEEN: &str = "select command, coalesce(nullif(state, ''), 'none'), count(*) \
             from information_schema.processlist where user = ? group by 1, 2";
        let rows: Vec<(String, String, u64)> = self.connection.exec(SEEN, (LOAD,))?;
        for (command, state, sessions) in rows {
            let is_idle = command == "Sleep"; // the next statement is not there yet
            let name = if is_idle { command } else { state };
            seen(Seen { group: "processlist".to_owned(), name, sessions, is_idle });
        }
        Ok(())
    }

    fn statistics(&mut self) -> Result<Snapshot, Refusal> {
        statistics::read(&mut self.connection)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&Row)) -> Result<(), Refusal> {
        const ALL: &str = "select c1, cast(unix_timestamp(c2) * 1000000 as signed), c3, c4, c5, \
                           c6 from my_big_table order by c1";
        // Blanks at the end are compared too.
        self.connection.query_drop("set sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'")?;
        for row in self.connection.exec_iter(ALL, ())? {
            let mut row = row?;
            let key = match self.is_uuid {
                true => Key::Uuid(column::<Vec<u8>>(&mut row, 0)?.as_slice().try_into()?),
                false => Key::Number(column(&mut row, 0)?),
            };
            let text: String = column(&mut row, 2)?;
            let columns = Columns {
                clock_micros: column(&mut row, 1)?,
                text: &text,
                c4: column(&mut row, 3)?,
                c5: column(&mut row, 4)?,
                c6: column(&mut row, 5)?,
            };
            visit(&Row::of(key, &columns));
        }
        Ok(())
    }
}

/// What the client gives of the row with this key.
fn values(key: Key, numbers: NumberColumns) -> Vec<Value> {
    let mut values = vec![match key {
        Key::Number(key) => Value::Int(key),
        Key::Uuid(key) => Value::Bytes(key.to_vec()),
    }];
    if numbers == NumberColumns::Random {
        let (c4, c5, c6) = numbers.of(key);
        values.extend([Value::Int(c4.into()), Value::Int(c5.into()), Value::Int(c6)]);
    }
    values
}

fn column<T: mysql::prelude::FromValue>(row: &mut mysql::Row, at: usize) -> Result<T, Refusal> {
    match row.take_opt(at) {
        Some(value) => Ok(value?),
        None => Err(format!("the row has no column {}", at + 1).into()),
    }
}
