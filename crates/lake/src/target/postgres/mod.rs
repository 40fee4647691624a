//! A table in a database that speaks PostgreSQL's protocol, as the target of one or many nodes.
//!
//! Beside the table, in its schema, stands `onrush_marks`, with a row for each table and node. An
//! append is one transaction: the rows by COPY, and then an UPDATE that moves the mark if it is
//! still where the append starts from. The mark is locked by that UPDATE alone, at the end, so a
//! process that is paused in the middle of its COPY does not keep its successor from the claim; when
//! it goes on, its UPDATE finds another mark, and it takes the rows back.
//!
//! Rows are not staged anywhere: the range of an append is fixed and its rows do not change, so they
//! are read again for each attempt, and sent while they are read.
//!
//! Invariants
//! 1. Rows and mark are one transaction, and none is committed whose UPDATE has not found the mark.
//! 2. Whether a transaction was committed is read from the mark. The answer to COMMIT decides nothing.
//! 3. A connection on which something went wrong is not used again.
//! 4. The mark names the table by its number, so a table that was made anew under the same name has
//!    no marks.

mod copy;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use onrush_fault::{Fault, planted};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::SimpleQueryRow;
use uuid::Uuid;

use super::{Counts, Pause, Rows, TargetState, Verdict, check_range, deadline_in};
use crate::catalogue::REQUEST_PATIENCE;
use crate::claim::{Change, Claim, Claimant, Confirmed, ExpectedMark, Step, is_applied, next_step};
use crate::columns::LakeColumn;
use crate::error::{FencedBecause, LakeError};
use crate::mark::{Mark, NodeId};
use crate::wire::{Door, Line, within};
use copy::CopyRows;
use table::Names;

/// Rows are sent in parts of about so many bytes.
const PART_BYTES: usize = 256 << 10;
/// A transaction whose client says nothing for so long is taken back by the server.
const SILENCE_MAX: Duration = REQUEST_PATIENCE;

/// A table of a database, into which rows are drained.
pub(crate) struct PostgresTarget {
    door: Arc<Door>,
    names: Names,
    columns: Vec<LakeColumn>,
    /// The connection that was used last, if nothing went wrong on it.
    idle: Mutex<Option<Line>>,
}

/// Without the way to the database, which holds secrets.
impl fmt::Debug for PostgresTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("PostgresTarget").field(&self.names.shown).finish()
    }
}

/// A mark, and the number of the table that it was written for.
#[derive(Debug, Clone, Copy)]
struct Found {
    mark: Mark,
    table: u64,
}

/// What `onrush_marks` says of a table.
#[derive(Debug, Default)]
struct Marks {
    /// The number of the table of that name; none if there is no such table.
    table: Option<u64>,
    by_node: BTreeMap<NodeId, Found>,
    unreadable: Vec<NodeId>,
}

impl Marks {
    /// The mark of a node, of the table that is there now.
    fn of(&self, node: NodeId) -> Result<Option<Mark>, FencedBecause> {
        let table = self.table.ok_or(FencedBecause::TableGone)?;
        match self.by_node.get(&node) {
            Some(found) if found.table != table => {
                let (expected, found) = (found.table, table);
                Err(FencedBecause::OtherRelation { expected, found })
            }
            found => Ok(found.map(|found| found.mark)),
        }
    }
}

/// What became of an attempt to claim.
enum Attempt {
    /// The mark is this claim's.
    Claimed(Mark),
    /// It was written, and the next look at the mark shows whether it was committed.
    Written,
    /// A lost node is not where it was.
    LostNodeMoved,
}

impl PostgresTarget {
    /// Opens the table `schema.table`, or makes it with these columns, and sees that they fit.
    ///
    /// The table has no key: rows of two nodes may have the same one, and so may those of a node that
    /// was lost and of the one that goes on in its place.
    pub(crate) async fn open_or_create(
        door: Arc<Door>,
        name: &str,
        columns: &[LakeColumn],
        patience: Duration,
    ) -> Result<PostgresTarget, LakeError> {
        let (names, idle) = (Names::new(name)?, Mutex::default());
        let target = PostgresTarget { door, names, columns: columns.to_vec(), idle };
        let prepare = async |line: &Line| {
            table::ensure(line, &target.names, columns).await?;
            table::check(line, &target.names, columns).await
        };
        target.until(deadline_in(patience), prepare).await?;
        Ok(target)
    }

    /// What the table says now.
    pub(crate) async fn load(&self, patience: Duration) -> Result<TargetState, LakeError> {
        let marks = self.marks(deadline_in(patience)).await?;
        if marks.table.is_none() {
            return Err(LakeError::Internal(format!("there is no table {}", self.names.shown)));
        }
        let Marks { by_node, unreadable, .. } = marks;
        Ok(TargetState {
            table_uuid: Uuid::nil(),
            snapshot_id: Some(0),
            marks: by_node.into_iter().map(|(node, found)| (node, found.mark)).collect(),
            unreadable,
        })
    }

    /// Makes this process the one that appends as the claimant's node, and closes the nodes that were
    /// lost: one transaction, which waits for those that are about to move one of these marks.
    ///
    /// After [`LakeError::Away`] the same call, with the same nonce, may be made again.
    pub(crate) async fn claim(
        &self,
        by: &Claimant<'_>,
        expected: ExpectedMark,
        patience: Duration,
    ) -> Result<Claim, LakeError> {
        let deadline = deadline_in(patience);
        let mut predecessor: Option<Option<u128>> = None;
        let mut pause = Pause::new();
        loop {
            let attempt = self.try_to_claim(by, &expected, &mut predecessor);
            let cause = match timeout_at(deadline, attempt).await {
                Ok(Ok(Attempt::Claimed(mark))) => {
                    return Ok(Claim { mark, confirmed: confirmed(mark.lsn) });
                }
                Ok(Ok(Attempt::Written)) => continue,
                Ok(Ok(Attempt::LostNodeMoved)) => return Err(LakeError::lost_node_moved()),
                Ok(Err(LakeError::Away { cause })) => cause,
                Ok(Err(error)) => return Err(error),
                Err(_) => "no answer in time".to_owned(),
            };
            pause.wait(deadline, &cause).await?;
        }
    }

    async fn try_to_claim(
        &self,
        by: &Claimant<'_>,
        expected: &ExpectedMark,
        predecessor: &mut Option<Option<u128>>,
    ) -> Result<Attempt, LakeError> {
        let fence = |because| self.fence(by.node, because);
        self.with_line(async |line: &Line| {
            line.say(&begin(SILENCE_MAX)).await?;
            let nodes: Vec<NodeId> =
                by.lost.iter().map(|lost| lost.node).chain([by.node]).collect();
            let marks = self.read(line, Some(&nodes), " FOR UPDATE").await?;
            let mut known = BTreeMap::new();
            for node in nodes {
                if let Some(mark) = marks.of(node).map_err(fence)? {
                    known.insert(node, mark);
                }
            }
            let attempt = match next_step(&known, by, expected).map_err(fence)? {
                Step::Applied(mark) => Attempt::Claimed(mark),
                Step::LostNodeMoved => Attempt::LostNodeMoved,
                Step::Write { own, closed } => {
                    let nonce = own.before.map(|found| found.nonce);
                    // Whoever claimed while this claim was tried came later, and is the one to stay.
                    if let (Some(before), Some(found)) = (*predecessor, own.before)
                        && before != nonce
                    {
                        return Err(fence(FencedBecause::OtherNonce { found }));
                    }
                    *predecessor = Some(nonce);
                    for change in closed.iter().chain([&own]) {
                        match line.count(&self.moving(change)?).await {
                            Err(failure) if !failure.is_duplicate() => return Err(failure.into()),
                            Ok(1) => {}
                            _ => {
                                let cause = "a mark was moved meanwhile".to_owned();
                                return Err(LakeError::Away { cause });
                            }
                        }
                    }
                    line.say("COMMIT").await?;
                    return Ok(Attempt::Written);
                }
            };
            line.say("ROLLBACK").await?;
            Ok(attempt)
        })
        .await
    }

    /// Appends the rows between the two marks, and moves the mark: one transaction, tried once, and
    /// then the verdict. Says how much was sent.
    pub(crate) async fn append<R: Rows>(
        &self,
        node: NodeId,
        (from, to): (&Mark, &Mark),
        rows: R,
        counts: &mut Counts,
        patience: Duration,
    ) -> Result<Verdict, LakeError> {
        check_range(from, to)?;
        let change = Change { node, before: Some(*from), after: *to };
        let answer = self.send(change, rows, counts, patience).await;
        if let (Err(cause), true) = (&answer, planted(Fault::LakeAnswerBelieved)) {
            return Ok(Verdict::NotApplied { cause: cause.to_string() });
        }
        let verdict = self.verdict(node, from, to, patience).await?;
        match (verdict, answer) {
            (Verdict::NotApplied { .. }, Err(LakeError::Away { cause })) => {
                Ok(Verdict::NotApplied { cause })
            }
            (Verdict::NotApplied { .. }, Err(error)) => Err(error),
            (Verdict::NotApplied { .. }, Ok(())) => {
                let cause = "the database said that it was committed, and it is not".to_owned();
                Ok(Verdict::NotApplied { cause })
            }
            (applied, _) => Ok(applied),
        }
    }

    /// Whether an append between these marks was applied. Asking changes nothing.
    pub(crate) async fn verdict(
        &self,
        node: NodeId,
        from: &Mark,
        to: &Mark,
        patience: Duration,
    ) -> Result<Verdict, LakeError> {
        check_range(from, to)?;
        let fence = |because| self.fence(node, because);
        let marks = self.marks(deadline_in(patience)).await?;
        let found = marks.of(node).map_err(fence)?;
        Ok(match is_applied(found, from, to).map_err(fence)? {
            true => Verdict::Applied(confirmed(to.lsn)),
            false => Verdict::NotApplied { cause: String::new() },
        })
    }

    /// One attempt. What comes back is for people and for counting, and decides nothing.
    async fn send<R: Rows>(
        &self,
        change: Change,
        mut rows: R,
        counts: &mut Counts,
        patience: Duration,
    ) -> Result<(), LakeError> {
        let moved = || LakeError::Away { cause: "the mark has moved".to_owned() };
        let Names { table, .. } = &self.names;
        let columns = table::column_list(&self.columns);
        let statement = format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary)");
        let update = self.moving(&change)?;
        let mut copy = CopyRows::new(&self.columns, change.node)?;
        self.with_line(async |line: &Line| {
            // Nobody knows how long the copy takes.
            line.say(&begin(Duration::ZERO)).await?;
            // A process that was replaced need not send its rows to see it.
            let marks = self.read(line, Some(&[change.node]), "").await?;
            if marks.of(change.node) != Ok(change.before) {
                return Err(moved());
            }
            let mut sink = pin!(within(line.client.copy_in::<_, Bytes>(&statement)).await?);
            let mut is_cut_short = false;
            while !is_cut_short && rows.next_into(&mut copy)? {
                if copy.waiting() >= PART_BYTES {
                    is_cut_short = within(sink.send(copy.take())).await.is_err();
                }
            }
            copy.end();
            let part = copy.take();
            if !is_cut_short {
                is_cut_short = within(sink.send(part)).await.is_err();
            }
            // Says why, too, if the server does not take the rows.
            within(sink.as_mut().finish()).await?;
            if planted(Fault::LakeMarkApart) {
                line.say("COMMIT; BEGIN").await?;
            }
            *counts = Counts { rows: copy.rows(), files: 0, bytes: copy.bytes() };
            let end = async {
                if is_cut_short || line.count(&update).await? != 1 {
                    return Err(moved());
                }
                Ok(line.say("COMMIT").await?)
            };
            let late = || LakeError::Away { cause: "no answer in time".to_owned() };
            timeout_at(deadline_in(patience), end).await.map_err(|_| late())?
        })
        .await
    }

    /// The statement that moves a mark, of one row if it is where it was.
    fn moving(&self, change: &Change) -> Result<String, LakeError> {
        let Names { marks, name_text, .. } = &self.names;
        let Change { node, before, after } = change;
        let number = self.table_number();
        let closed = |mark: &Mark| mark.closed_by.map_or("NULL".to_owned(), |by| by.to_string());
        let (history, nonce, lsn) = texts(after)?;
        let closed_by = closed(after);
        let Some(before) = before else {
            return Ok(format!(
                "INSERT INTO {marks} (table_name, node, history, nonce, lsn, closed_by, table_oid) \
                 VALUES ({name_text}, {node}, '{history}', '{nonce}', {lsn}, {closed_by}, {number})"
            ));
        };
        let set = format!(
            "history = '{history}', nonce = '{nonce}', lsn = {lsn}, closed_by = {closed_by}, \
             at = now()"
        );
        let (history, nonce, lsn) = texts(before)?;
        if planted(Fault::LakeMarkMovedBlindly) {
            let which = format!("table_name = {name_text} AND node = {node}");
            return Ok(format!("UPDATE {marks} SET {set} WHERE {which}"));
        }
        Ok(format!(
            "UPDATE {marks} SET {set} WHERE table_name = {name_text} AND node = {node} \
             AND history = '{history}' AND nonce = '{nonce}' AND lsn = {lsn} \
             AND closed_by IS NULL AND table_oid = {number}"
        ))
    }

    /// The number of the table, in a statement.
    fn table_number(&self) -> String {
        let Names { schema_text, name_text, .. } = &self.names;
        format!(
            "(SELECT c.oid::bigint FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
             ON n.oid = c.relnamespace WHERE n.nspname = {schema_text} AND c.relname = {name_text})"
        )
    }

    /// All marks of the table.
    async fn marks(&self, deadline: Instant) -> Result<Marks, LakeError> {
        self.until(deadline, async |line: &Line| self.read(line, None, "").await).await
    }

    /// Marks of the table: of these nodes, or of all.
    async fn read(
        &self,
        line: &Line,
        nodes: Option<&[NodeId]>,
        locking: &str,
    ) -> Result<Marks, LakeError> {
        let Names { marks, name_text, .. } = &self.names;
        let nodes = nodes.map_or(String::new(), |nodes| {
            let nodes: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
            format!(" AND node IN ({})", nodes.join(", "))
        });
        let rows = line
            .rows(&format!(
                "SELECT node, history, nonce, lsn, closed_by, table_oid FROM {marks} \
                 WHERE table_name = {name_text}{nodes} ORDER BY node{locking}"
            ))
            .await?;
        let numbers = line.rows(&format!("SELECT {}", self.table_number())).await?;
        let number = numbers.first().and_then(|row| row.get(0));
        let mut found = Marks { table: number.and_then(|it| it.parse().ok()), ..Marks::default() };
        for row in &rows {
            let node = row.get(0).and_then(|node| node.parse().ok()).map(NodeId);
            match (node, parse(row)) {
                (Some(node), Some(mark)) => drop(found.by_node.insert(node, mark)),
                (Some(node), None) => found.unreadable.push(node),
                (None, _) => {}
            }
        }
        Ok(found)
    }

    /// Does some work until the database answers.
    async fn until<T>(
        &self,
        deadline: Instant,
        work: impl AsyncFn(&Line) -> Result<T, LakeError>,
    ) -> Result<T, LakeError> {
        let mut pause = Pause::new();
        loop {
            let cause = match timeout_at(deadline, self.with_line(&work)).await {
                Ok(Err(LakeError::Away { cause })) => cause,
                Ok(done) => return done,
                Err(_) => "no answer in time".to_owned(),
            };
            pause.wait(deadline, &cause).await?;
        }
    }

    /// Does some work on a connection. After an error, or if it is dropped, the connection ends, and
    /// with it what was begun on it.
    async fn with_line<T>(
        &self,
        work: impl AsyncFnOnce(&Line) -> Result<T, LakeError>,
    ) -> Result<T, LakeError> {
        let idle = self.idle.lock().take().filter(|line| !line.client.is_closed());
        let line = match idle {
            Some(line) => line,
            None => self.door.open().await?,
        };
        let done = work(&line).await;
        if done.is_ok() {
            *self.idle.lock() = Some(line);
        }
        done
    }

    fn fence(&self, node: NodeId, because: FencedBecause) -> LakeError {
        LakeError::Fenced { node, table: self.names.shown.clone(), because: Box::new(because) }
    }
}

/// Begins a transaction whose statements take so long at most; as long as they like if it is nothing.
fn begin(statement_max: Duration) -> String {
    let (statement, silence) = (statement_max.as_millis(), SILENCE_MAX.as_millis());
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = {statement}; \
         SET LOCAL idle_in_transaction_session_timeout = {silence}"
    )
}

fn confirmed(lsn: u64) -> Confirmed {
    Confirmed { table_uuid: Uuid::nil(), snapshot_id: 0, lsn }
}

/// History, nonce and LSN in a statement.
fn texts(mark: &Mark) -> Result<(Uuid, Uuid, i64), LakeError> {
    let lsn = i64::try_from(mark.lsn)
        .map_err(|_| LakeError::Row(format!("LSN {} is beyond what a mark can hold", mark.lsn)))?;
    Ok((Uuid::from_u128(mark.history), Uuid::from_u128(mark.nonce), lsn))
}

fn parse(row: &SimpleQueryRow) -> Option<Found> {
    let uuid = |at: usize| Some(row.get(at)?.parse::<Uuid>().ok()?.as_u128());
    let mark = Mark::new(uuid(1)?, uuid(2)?, row.get(3)?.parse().ok()?);
    let closed_by = row.get(4).map(|by| by.parse().map(NodeId)).transpose().ok()?;
    Some(Found { mark: Mark { closed_by, ..mark }, table: row.get(5)?.parse().ok()? })
}
