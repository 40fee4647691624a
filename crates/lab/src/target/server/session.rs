//! One connection over PostgreSQL's protocol, by the driver `postgres`, to whoever speaks it.

use std::collections::HashMap;
use std::path::Path;
use std::time::SystemTime;

use onrush_measure::classic_table::NumberColumns;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, Config, NoTls, Statement};

use super::plan::Plan;
use super::watch::Seen;
use super::{Connection, Refusal};
use crate::target::record::Snapshot;
use crate::target::rows::{Columns, Key, Row};

/// The application names of sessions of the load, and of those that look on.
pub(super) const LOAD: &str = "onrush-lab";
pub(super) const LOOK_ON: &str = "onrush-lab-looks-on";
/// Longest path of a folder for a socket: the system allows 107 bytes with the name.
pub(super) const SOCKET_FOLDER_BYTES_MAX: usize = 80;
/// The name of the socket in its folder.
pub(super) const SOCKET: &str = ".s.PGSQL.5432";

/// In what servers of this protocol differ.
pub(super) trait Dialect: Send + 'static {
    /// The database that a client names.
    const DATABASE: &'static str;
    /// Calls the loop in the server.
    const CALL: &'static str;

    /// The parameters of that call: so many transactions, ascending keys from this one.
    fn call_parameters(plan: &Plan, first_key: i64, transactions: i64) -> [i64; 2];

    /// What every session of the load does just now.
    fn look(&mut self, client: &mut Client, seen: &mut dyn FnMut(Seen)) -> Result<(), Refusal>;

    /// What the server counts.
    fn statistics(&mut self, client: &mut Client) -> Result<Snapshot, Refusal>;
}

/// Opens a connection.
pub(super) fn connect<D: Dialect>(socket_folder: &Path, name: &str) -> Result<Client, Refusal> {
    let mut config = Config::new();
    config.host_path(socket_folder).user("onrush").dbname(D::DATABASE).application_name(name);
    config.connect(NoTls).map_err(refusal)
}

/// The driver says "db error"; what the server said stands behind it.
pub(super) fn refusal(error: postgres::Error) -> Refusal {
    match error.as_db_error() {
        Some(told) => told.to_string().into(),
        None => error.into(),
    }
}

/// An INSERT of so many rows.
pub(super) fn insert_text(plan: &Plan, rows: usize) -> String {
    let sent = plan.sent_columns();
    let row = |number: usize| {
        let values: Vec<String> =
            (1..=sent.len()).map(|column| format!("${}", number * sent.len() + column)).collect();
        format!("({})", values.join(", "))
    };
    let (columns, values) = match sent {
        [] => ("c2".to_owned(), vec!["(default)".to_owned(); rows]),
        sent => (sent.join(", "), (0..rows).map(row).collect()),
    };
    format!("insert into my_big_table ({columns}) values {}", values.join(", "))
}

/// A connection and its prepared statements.
pub(super) struct Session<D> {
    client: Client,
    dialect: D,
    inserts: HashMap<usize, Statement>, // by their rows
    call: Option<Statement>,
    plan: Option<Plan>,
}

impl<D: Dialect> Session<D> {
    pub(super) fn new(
        mut client: Client,
        dialect: D,
        is_durable: bool,
    ) -> Result<Session<D>, Refusal> {
        let on = if is_durable { "on" } else { "off" };
        client.batch_execute(&format!("set synchronous_commit = {on}")).map_err(refusal)?;
        Ok(Session { client, dialect, inserts: HashMap::new(), call: None, plan: None })
    }

    fn statement(&mut self, rows: usize) -> Result<Statement, Refusal> {
        if let Some(statement) = self.inserts.get(&rows) {
            return Ok(statement.clone());
        }
        let plan = self.plan.as_ref().ok_or("the connection was not prepared for a load")?;
        let statement = self.client.prepare(&insert_text(plan, rows)).map_err(refusal)?;
        self.inserts.insert(rows, statement.clone());
        Ok(statement)
    }
}

impl<D: Dialect> Connection for Session<D> {
    fn prepare(&mut self, plan: &Plan) -> Result<(), Refusal> {
        self.plan = Some(plan.clone());
        if plan.is_loop_in_server {
            let call = self.client.prepare(D::CALL).map_err(refusal)?;
            self.call = Some(call);
            return Ok(());
        }
        plan.statements().into_iter().try_for_each(|rows| self.statement(rows).map(|_| ()))
    }

    fn insert(&mut self, keys: &[Key], rows: usize) -> Result<(), Refusal> {
        let statement = self.statement(rows)?;
        let numbers = self.plan.as_ref().map_or(NumberColumns::Constant, |plan| plan.numbers);
        let done = match (keys, numbers) {
            ([], _) => self.client.execute(&statement, &[]),
            ([Key::Number(key)], NumberColumns::Constant) => {
                self.client.execute(&statement, &[key])
            }
            ([Key::Uuid(key)], NumberColumns::Constant) => {
                self.client.execute(&statement, &[&uuid::Uuid::from_bytes(*key)])
            }
            _ => {
                let row = |key: &Key| parameters(*key, numbers);
                let parameters: Vec<Box<dyn ToSql + Sync>> = keys.iter().flat_map(row).collect();
                let parameters: Vec<&(dyn ToSql + Sync)> =
                    parameters.iter().map(|parameter| &**parameter).collect();
                self.client.execute(&statement, &parameters)
            }
        };
        match done.map_err(refusal)? {
            inserted if inserted == rows as u64 => Ok(()),
            inserted => Err(format!("it inserted {inserted} rows in place of {rows}").into()),
        }
    }

    fn begin(&mut self) -> Result<(), Refusal> {
        self.client.batch_execute("begin").map_err(refusal)
    }

    fn commit(&mut self) -> Result<(), Refusal> {
        self.client.batch_execute("commit").map_err(refusal)
    }

    fn call(&mut self, first_key: i64, transactions: u64) -> Result<(), Refusal> {
        let (Some(call), Some(plan)) = (&self.call, &self.plan) else {
            return Err("the connection was not prepared for a procedure".into());
        };
        let [first, second] = D::call_parameters(plan, first_key, i64::try_from(transactions)?);
        self.client.execute(call, &[&first, &second]).map_err(refusal)?;
        Ok(())
    }

    fn look(&mut self, seen: &mut dyn FnMut(Seen)) -> Result<(), Refusal> {
        self.dialect.look(&mut self.client, seen)
    }

    fn statistics(&mut self) -> Result<Snapshot, Refusal> {
        self.dialect.statistics(&mut self.client)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&Row)) -> Result<(), Refusal> {
        const ALL: &str = "select c1, c2, c3, c4, c5, c6 from my_big_table order by c1";
        self.client.batch_execute("set work_mem = '64MB'").map_err(refusal)?;
        let none: [&(dyn ToSql + Sync); 0] = [];
        let mut rows = self.client.query_raw(ALL, none).map_err(refusal)?;
        while let Some(row) = rows.next().map_err(refusal)? {
            let key = match row.try_get::<_, i64>(0) {
                Ok(number) => Key::Number(number),
                Err(_) => Key::Uuid(*row.try_get::<_, uuid::Uuid>(0)?.as_bytes()),
            };
            let clock: SystemTime = row.try_get(1)?;
            let since = clock.duration_since(SystemTime::UNIX_EPOCH)?;
            visit(&Row::of(
                key,
                &Columns {
                    clock_micros: i64::try_from(since.as_micros())?,
                    text: row.try_get(2)?,
                    c4: row.try_get(3)?,
                    c5: row.try_get(4)?,
                    c6: row.try_get(5)?,
                },
            ));
        }
        Ok(())
    }
}

/// What the client gives of the row with this key.
fn parameters(key: Key, numbers: NumberColumns) -> Vec<Box<dyn ToSql + Sync>> {
    let mut parameters: Vec<Box<dyn ToSql + Sync>> = match key {
        Key::Number(key) => vec![Box::new(key)],
        Key::Uuid(key) => vec![Box::new(uuid::Uuid::from_bytes(key))],
    };
    if numbers == NumberColumns::Random {
        let (c4, c5, c6) = numbers.of(key);
        parameters.extend([Box::new(c4) as _, Box::new(c5) as _, Box::new(c6) as _]);
    }
    parameters
}
