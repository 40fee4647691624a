//! What was promised, in a file that the engine does not know: a line before each commit and one
//! after each acknowledgement, appended in one system call, so that their order is the true one.
//!
//! Each session changes a few rows of its own, one a commit. What must be there follows:
//! - the state after some number of its commits: no fewer than `required`, no more than `begun`;
//! - `required` holds what was acknowledged as durable, and, of any session, all that was
//!   acknowledged before a commit began that was acknowledged as durable.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use onrush::{
    ColumnDefinition, DataType, Database, ScanOptions, Session, Table, TableDefinition, Value,
};
use onrush_oracle::{Known, follow};

/// Rows of one session in one round.
const SLOTS: i64 = 8;

/// The rows of a session: by slot, the number of the commit that wrote it last.
pub(crate) type Rows = BTreeMap<i64, i64>;

/// `done (round, session, slot, number, filling, primary key of the first three)`.
pub(crate) fn definition() -> Result<TableDefinition> {
    let column = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
    let builder = TableDefinition::builder("done")
        .column(column("round"))
        .column(column("session"))
        .column(column("slot"))
        .column(column("number"))
        .column(ColumnDefinition::new("filling", DataType::Bytes).not_null())
        .primary_key(["round", "session", "slot"]);
    Ok(builder.build()?)
}

/// The change that commit `number`, from 1 on, makes: the slot, and what its row says, unless it goes away.
fn change(number: i64) -> (i64, Option<i64>) {
    (number % SLOTS, (number % 11 != 0).then_some(number))
}

/// Makes commit `number` of a session.
pub(crate) fn commit(
    session: &mut Session,
    table: &Table,
    (round, own): (i64, i64),
    number: i64,
    filling_bytes: usize,
) -> onrush::Result<()> {
    let (slot, written) = change(number);
    let Some(number) = written else {
        let key = [round.into(), own.into(), slot.into()];
        return session.delete(table, &key).map(|_| ());
    };
    let filling = vec![7u8; filling_bytes];
    let row: [Value<'_>; 5] =
        [round.into(), own.into(), slot.into(), number.into(), filling.into()];
    session.upsert(table, &row)
}

/// The file, for those who write it.
#[derive(Debug)]
pub(crate) struct Oracle(File);

impl Oracle {
    pub(crate) fn open(path: &Path) -> Result<Oracle> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Oracle(file.with_context(|| format!("open {}", path.display()))?))
    }

    pub(crate) fn intends(&self, own: i64, number: i64, durable: bool) -> Result<()> {
        self.line(if durable { "I" } else { "i" }, own, number)
    }

    pub(crate) fn acknowledges(&self, own: i64, number: i64, durable: bool) -> Result<()> {
        self.line(if durable { "A" } else { "a" }, own, number)
    }

    fn line(&self, what: &str, own: i64, number: i64) -> Result<()> {
        // A kill may cut a line off, and another session write behind it: a line begins with its own
        // end of line, and counts only with its last character.
        (&self.0).write_all(format!("\n{what} {own} {number};").as_bytes())?;
        Ok(())
    }
}

/// All that was promised on one database.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// What the last look has shown, which is pinned: by round and session.
    pinned: BTreeMap<(i64, i64), Rows>,
    /// Commits that were intended, acknowledged, and lost although acknowledged as delayed.
    pub(crate) intended: u64,
    pub(crate) acknowledged: u64,
    pub(crate) lost_delayed: u64,
}

impl Promises {
    /// Reads the file of a round and compares it with what is in the database; then all rows are
    /// pinned.
    pub(crate) fn look(&mut self, database: &Database, round: i64, oracle: &Path) -> Result<()> {
        let known = read(oracle)?;
        let mut found = rows_of(database)?;
        for (own, known) in known {
            let rows = found.remove(&(round, own)).unwrap_or_default();
            let changes = |_: &Rows, number: u64| vec![change(number as i64)];
            let (kept, _) =
                follow(Rows::new(), 0, known.bounds(), &rows, changes).with_context(|| {
                    format!("round {round}, session {own}: {known:?} does not allow {rows:?}")
                })?;
            self.intended += known.begun;
            self.acknowledged += known.acknowledged;
            self.lost_delayed += known.lost(kept);
            if !rows.is_empty() {
                self.pinned.insert((round, own), rows.clone());
                found.insert((round, own), rows);
            }
        }
        if found != self.pinned {
            let wrong = found.iter().find(|(place, rows)| self.pinned.get(place) != Some(rows));
            bail!("rows of an earlier round have changed: {wrong:?}, or some are gone");
        }
        Ok(())
    }
}

fn read(oracle: &Path) -> Result<BTreeMap<i64, Known>> {
    let text = match std::fs::read_to_string(oracle) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let mut known: BTreeMap<i64, Known> = BTreeMap::new();
    // What was acknowledged when a durable commit began.
    let mut before: BTreeMap<(i64, u64), Vec<(i64, u64)>> = BTreeMap::new();
    for line in text.lines() {
        let Some(line) = line.strip_suffix(';') else { continue }; // cut off by the kill
        let words: Vec<&str> = line.split(' ').collect();
        let [what, own, number] = words[..] else { bail!("no line of an oracle: {line}") };
        let (own, number): (i64, u64) = (own.parse()?, number.parse()?);
        if what == "I" {
            let all = known.iter().map(|(own, known)| (*own, known.acknowledged)).collect();
            before.insert((own, number), all);
        }
        let entry = known.entry(own).or_default();
        match what {
            "i" | "I" => entry.begun = number,
            "a" => entry.acknowledged = number,
            "A" => {
                entry.acknowledged = number;
                entry.required = number;
                for (other, acknowledged) in before.remove(&(own, number)).unwrap_or_default() {
                    let other = known.entry(other).or_default();
                    other.required = other.required.max(acknowledged);
                }
            }
            _ => bail!("no line of an oracle: {line}"),
        }
    }
    Ok(known)
}

fn rows_of(database: &Database) -> Result<BTreeMap<(i64, i64), Rows>> {
    let table = match database.table("done") {
        Err(onrush::Error::UnknownTable { .. }) => return Ok(BTreeMap::new()),
        table => table?,
    };
    let mut found: BTreeMap<(i64, i64), Rows> = BTreeMap::new();
    for row in database.session()?.scan(&table, &ScanOptions::default())? {
        let row = row?;
        let number = |column: usize| match row[column] {
            Value::Int64(number) => Ok(number),
            ref other => bail!("a number was stored, and {other:?} came back"),
        };
        found.entry((number(0)?, number(1)?)).or_default().insert(number(2)?, number(3)?);
    }
    Ok(found)
}

/// The oracle file of a round.
pub(crate) fn path(folder: &Path, round: i64) -> PathBuf {
    folder.join(format!("oracle-{round}"))
}
