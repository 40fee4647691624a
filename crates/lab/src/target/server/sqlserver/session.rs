//! One connection to SQL Server. The driver is asynchronous; each session drives its own by a
//! runtime of its own, on the thread that uses it.

use std::collections::HashMap;
use std::time::Duration;

use tiberius::{Client, Config, FromSql, ToSql};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt};
use uuid::Uuid;

use super::statistics;
use crate::target::record::Snapshot;
use crate::target::rows::{Columns, Key, Row};
use crate::target::server::plan::{KeySource, Plan};
use crate::target::server::watch::Seen;
use crate::target::server::{Connection, Refusal};

/// Longest time to reach the server.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rows read at a time.
const PAGE_ROWS: usize = 10_000;

/// An INSERT of so many rows.
pub(super) fn insert_text(plan: &Plan, rows: usize) -> String {
    let sends_keys = plan.keys != KeySource::Server;
    let row = |number: usize| match sends_keys {
        true => format!("(@P{})", number + 1),
        false => "(default)".to_owned(),
    };
    let values: Vec<String> = (0..rows).map(row).collect();
    let column = if sends_keys { "c1" } else { "c2" };
    format!("insert into my_big_table ({column}) values {}", values.join(", "))
}

/// A connection and the texts of its statements, which the server keeps plans for.
pub(super) struct Session {
    runtime: Runtime,
    client: Client<Compat<TcpStream>>,
    inserts: HashMap<usize, String>, // by their rows
    plan: Option<Plan>,
}

impl Session {
    /// Connects to the server, in this database or the default one.
    pub(super) fn connect(mut address: Config, database: Option<&str>) -> Result<Session, Refusal> {
        if let Some(database) = database {
            address.database(database);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let place = address.get_addr();
        let opened = runtime.block_on(async {
            let connecting = async {
                let stream = TcpStream::connect(address.get_addr()).await?;
                stream.set_nodelay(true)?;
                Ok::<_, Refusal>(Client::connect(address, stream.compat_write()).await?)
            };
            tokio::time::timeout(PATIENCE, connecting).await
        });
        let told = |what: &dyn std::fmt::Display| format!("cannot connect to {place}: {what}");
        let client = match opened {
            Ok(opened) => opened.map_err(|error| told(&error))?,
            Err(_) => return Err(told(&format!("no answer in {} s", PATIENCE.as_secs())).into()),
        };
        Ok(Session { runtime, client, inserts: HashMap::new(), plan: None })
    }

    /// Executes a batch.
    pub(super) fn execute(&mut self, text: &str) -> Result<(), Refusal> {
        self.rows(text).map(|_| ())
    }

    /// The rows of the first result of a batch.
    fn rows(&mut self, text: &str) -> Result<Vec<tiberius::Row>, Refusal> {
        let client = &mut self.client;
        self.runtime.block_on(async {
            let results = client.simple_query(text).await?.into_results().await?;
            Ok(results.into_iter().next().unwrap_or_default())
        })
    }

    fn first(&mut self, text: &str) -> Result<tiberius::Row, Refusal> {
        let found = self.rows(text)?.into_iter().next();
        found.ok_or_else(|| format!("{text}: it answers nothing").into())
    }

    /// The number that a batch answers.
    pub(super) fn number(&mut self, text: &str) -> Result<i64, Refusal> {
        column(&self.first(text)?, 0)
    }

    /// The text that a batch answers.
    pub(super) fn text(&mut self, text: &str) -> Result<String, Refusal> {
        Ok(column::<&str>(&self.first(text)?, 0)?.to_owned())
    }
}

impl Connection for Session {
    fn prepare(&mut self, plan: &Plan) -> Result<(), Refusal> {
        self.plan = Some(plan.clone());
        Ok(())
    }

    fn insert(&mut self, keys: &[Key], rows: usize) -> Result<(), Refusal> {
        let plan = self.plan.as_ref().ok_or("the connection was not prepared for a load")?;
        let text = self.inserts.entry(rows).or_insert_with(|| insert_text(plan, rows));
        let keys: Vec<Box<dyn ToSql>> = keys.iter().map(boxed).collect();
        let keys: Vec<&dyn ToSql> = keys.iter().map(|key| &**key).collect();
        let done = self.runtime.block_on(self.client.execute(text.as_str(), &keys))?.total();
        match done {
            inserted if inserted == rows as u64 => Ok(()),
            inserted => Err(format!("it inserted {inserted} rows in place of {rows}").into()),
        }
    }

    fn begin(&mut self) -> Result<(), Refusal> {
        Ok(self.runtime.block_on(self.client.begin_transaction())?)
    }

    fn commit(&mut self) -> Result<(), Refusal> {
        Ok(self.runtime.block_on(self.client.commit_transaction())?)
    }

    fn call(&mut self, first_key: i64, transactions: u64) -> Result<(), Refusal> {
        let transactions = i64::try_from(transactions)?;
        let parameters: [&dyn ToSql; 2] = [&first_key, &transactions];
        let call = self.client.execute("exec insert_rows @P1, @P2", &parameters);
        self.runtime.block_on(call)?;
        Ok(())
    }

    /// It adds up its waits by itself.
    fn look(&mut self, _seen: &mut dyn FnMut(Seen)) -> Result<(), Refusal> {
        Ok(())
    }

    fn statistics(&mut self) -> Result<Snapshot, Refusal> {
        let mut snapshot = Snapshot::default();
        for view in statistics::VIEWS {
            let rows = self.rows(view.text)?;
            rows.iter().try_for_each(|row| (view.read)(row, &mut snapshot))?;
        }
        Ok(snapshot)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&Row)) -> Result<(), Refusal> {
        let mut last: Option<Box<dyn ToSql>> = None;
        loop {
            let above = if last.is_some() { "where c1 > @P1 " } else { "" };
            let text = format!(
                "select top ({PAGE_ROWS}) c1, datediff_big(microsecond, '1970-01-01', c2), c3, c4, \
                 c5, c6 from my_big_table {above}order by c1"
            );
            let parameters: Vec<&dyn ToSql> = last.iter().map(|key| &**key).collect();
            let client = &mut self.client;
            let page = self.runtime.block_on(async {
                client.query(text, &parameters).await?.into_first_result().await
            })?;
            for row in &page {
                let (key, sent) = key_of(row)?;
                let columns = Columns {
                    clock_micros: column(row, 1)?,
                    text: column(row, 2)?,
                    c4: column(row, 3)?,
                    c5: column(row, 4)?,
                    c6: column(row, 5)?,
                };
                visit(&Row::of(key, &columns));
                last = Some(sent);
            }
            if page.len() < PAGE_ROWS {
                return Ok(());
            }
        }
    }
}

/// The key, as something that compares as the server does, and as it is sent.
fn key_of(row: &tiberius::Row) -> Result<(Key, Box<dyn ToSql>), Refusal> {
    if let Ok(Some(number)) = row.try_get::<i64, _>(0) {
        return Ok((Key::Number(number), Box::new(number)));
    }
    let uuid: Uuid = column(row, 0)?;
    Ok((Key::Uuid(in_order(uuid)), Box::new(uuid)))
}

/// The bytes of a `uniqueidentifier` in the order in which the server compares them: the last six
/// first, then two by two, of numbers that are stored with their lowest byte first.
fn in_order(uuid: Uuid) -> [u8; 16] {
    const PLACES: [usize; 16] = [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3];
    let stored = uuid.to_bytes_le();
    PLACES.map(|place| stored[place])
}

fn boxed(key: &Key) -> Box<dyn ToSql> {
    match key {
        Key::Number(key) => Box::new(*key),
        Key::Uuid(key) => Box::new(Uuid::from_bytes(*key)),
    }
}

/// A column that is never null.
pub(super) fn column<'r, T: FromSql<'r>>(row: &'r tiberius::Row, at: usize) -> Result<T, Refusal> {
    row.try_get(at)?.ok_or_else(|| format!("column {} is null", at + 1).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_order_by_their_last_six_bytes_first() {
        let order = |text: &str| in_order(Uuid::parse_str(text).unwrap());
        let ascending = [
            "ff000000-0000-0000-0000-000000000000",
            "00000000-0000-0001-0000-000000000000",
            "00000000-0000-0000-0001-000000000000",
            "00000000-0000-0000-0000-000000000001",
            "00000000-0000-0000-0000-010000000000",
        ];
        assert!(ascending.windows(2).all(|pair| order(pair[0]) < order(pair[1])));
    }

    #[test]
    fn keys_are_sent_by_number_and_made_by_the_server_by_default() {
        use crate::study::{Setting, Settings};
        let plan = |key| Plan::of(&Settings::default().with(Setting::Key, key));
        let sent = insert_text(&plan("session-offset"), 2);
        assert_eq!(sent, "insert into my_big_table (c1) values (@P1), (@P2)");
        let made = insert_text(&plan("uuid-v4"), 2);
        assert_eq!(made, "insert into my_big_table (c2) values (default), (default)");
    }
}
