//! One round of one table: what was written since the last one is staged, and appended in a commit.

use std::time::{Duration, Instant};

use onrush::{Database, Lsn, Snapshot, TableDefinition};
use onrush_fault::{Fault, planted};

use super::attachment::Attachment;
use super::notes::{NoteTable, Notes};
use super::rows::RangeRows;
use super::{DrainOptions, Identity, columns};
use crate::claim::{Claimant, Confirmed, ExpectedMark, check_open, start_after};
use crate::columns::LakeColumn;
use crate::error::{FencedBecause, LakeError};
use crate::mark::{Mark, NodeId};
use crate::target::{Counts, Staged, Target, Verdict};

/// Files that were not committed are left alone by those who look for orphans, for so long at least.
const FILES_ARE_SAFE_FOR: Duration = Duration::from_secs(600);
/// How often the catalogue may refuse the files of a round before another table has its turn.
const TRIES: u32 = 10;

/// Rows that are staged and of which it is not known that they are in the lake. Their range is fixed: a commit that was
/// sent may come late, and then its mark is this one.
struct Pending {
    to: Mark,
    staged: Staged,
    written_at: Instant,
    /// They were refused so often that they may not fit the lake's table any more.
    is_stale: bool,
}

/// What a round has brought.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brought {
    pub(super) rows: u64,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) commits: u64,
    pub(super) refusals: u64,
}

impl Brought {
    /// A commit was applied.
    fn add(&mut self, counts: &Counts) {
        let Counts { rows, files, bytes } = *counts;
        self.rows += rows;
        self.files += files;
        self.bytes += bytes;
        self.commits += 1;
    }
}

/// A table whose table in the lake is open and claimed.
pub(super) struct Round {
    attachment: Attachment,
    node: NodeId,
    patience: Duration,
    target: Target,
    /// Those that the lake's table was opened with.
    columns: Vec<LakeColumn>,
    notes: Notes,
    mark: Mark,
    /// Between the mark and it there are no rows.
    read_to: Lsn,
    pending: Option<Pending>,
    /// The commit that was asked for last is to be looked for.
    is_unknown: bool,
}

impl Round {
    /// Claims the lake's table, with the nonce of this process.
    pub(super) async fn open(
        options: &DrainOptions,
        kept: &NoteTable,
        (target, columns): (Target, Vec<LakeColumn>),
        attachment: &Attachment,
        nonce: u128,
    ) -> Result<Round, LakeError> {
        let DrainOptions { identity, patience, .. } = options;
        let Identity { node, history, lost } = identity;
        let (node, history, patience) = (*node, *history, *patience);
        let before = kept.read(attachment)?;
        let fence = |because| {
            let because = Box::new(because);
            LakeError::Fenced { node, table: attachment.name.clone(), because }
        };
        let found = target.load(patience).await?;
        let touched = lost.iter().map(|lost| lost.node).chain([node]);
        if let Some(node) = touched.into_iter().find(|node| found.unreadable.contains(node)) {
            return Err(LakeError::Internal(format!(
                "the mark of node {node} in {} is of a form that is not known",
                attachment.name
            )));
        }
        let mark = found.marks.get(&node).copied();
        if let Some(found) = mark {
            check_open(found).map_err(fence)?;
            if found.history != history {
                let (expected, found) = (history, found.history);
                return Err(fence(FencedBecause::OtherHistory { expected, found }));
            }
        }
        let mut notes = before.clone();
        let of_lost = notes.take_lost(identity).map_err(fence)?;
        notes.check(mark).map_err(fence)?;
        // Where the claim may find the mark: where it is, or where what was asked for before may still bring it. A
        // node that was restored begins where those before it ended.
        let start_lsn = match mark {
            Some(mark) => mark.lsn,
            None => start_after(&found.marks, lost).unwrap_or(Lsn::FIRST.0),
        };
        let mut starts: Vec<u64> = notes.asked.iter().map(|mark| mark.lsn).collect();
        starts.push(start_lsn);
        if let Some((mark, snapshot_id)) = mark.zip(found.snapshot_id) {
            let (table_uuid, lsn) = (found.table_uuid, mark.lsn);
            notes.confirmed = Some((Confirmed { table_uuid, snapshot_id, lsn }, mark));
        }
        let expected = match notes.confirmed {
            None => ExpectedMark::Nothing { start_lsn, of_lost },
            Some((confirmed, _)) => ExpectedMark::Confirmed(confirmed),
        };
        // What the lost node had confirmed stays noted until something of this one's is.
        notes.confirmed = notes.confirmed.or(before.confirmed);
        // Without a mark, lower starts are those of claims that may come late, and higher ones too.
        let is_start = |lsn: &u64| mark.is_none() || *lsn >= start_lsn;
        for lsn in starts.iter().copied().filter(is_start) {
            notes.ask(Mark::new(history, nonce, lsn));
        }
        kept.write(attachment, &notes)?;
        let by = Claimant { node, history, nonce, lost };
        let claim = match target.claim(&by, expected, patience).await {
            Err(LakeError::Fenced { because, .. }) if is_own(&because, &notes) => {
                return Err(LakeError::Away { cause: "an earlier claim came late".into() });
            }
            claim => claim?,
        };
        // Somebody else came between the look and the claim.
        if !starts.contains(&claim.mark.lsn) {
            return Err(fence(FencedBecause::NotNoted { found: claim.mark }));
        }
        let notes = Notes::of(claim.confirmed, claim.mark);
        kept.write(attachment, &notes)?;
        Ok(Round {
            attachment: attachment.clone(),
            node,
            patience,
            target,
            columns,
            notes,
            mark: claim.mark,
            read_to: Lsn(claim.mark.lsn),
            pending: None,
            is_unknown: false,
        })
    }

    pub(super) fn mark(&self) -> Lsn {
        Lsn(self.mark.lsn)
    }

    pub(super) fn read_to(&self) -> Lsn {
        self.read_to
    }

    /// Brings everything that is durable now. After an error that is retryable it goes on where it was.
    pub(super) async fn run(
        &mut self,
        database: &Database,
        kept: &NoteTable,
        brought: &mut Brought,
    ) -> Result<(), LakeError> {
        // What was staged before comes first.
        if self.pending.is_some() {
            self.commit(database, kept, brought).await?;
        }
        self.stage(database).await?;
        if self.pending.is_some() {
            self.commit(database, kept, brought).await?;
        }
        Ok(())
    }

    /// Stages the rows that were written since the last round.
    async fn stage(&mut self, database: &Database) -> Result<(), LakeError> {
        let snapshot = database.session()?.durable_snapshot()?;
        let end = snapshot.lsn();
        if end <= self.read_to {
            return Ok(());
        }
        match self.stage_to(database, &snapshot, self.mark.at(end.0)).await? {
            Some(pending) => (self.pending, self.is_unknown) = (Some(pending), false),
            None => self.read_to = end,
        }
        Ok(())
    }

    /// Stages the rows up to the mark `to`, which the snapshot sees; none if there are no rows.
    async fn stage_to(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        to: Mark,
    ) -> Result<Option<Pending>, LakeError> {
        let rows = self.rows(database, snapshot, to)?;
        let staged = self.target.stage(self.node, (&self.mark, &to), rows).await?;
        let written_at = Instant::now();
        Ok(staged.map(|staged| Pending { to, staged, written_at, is_stale: false }))
    }

    fn rows(
        &self,
        database: &Database,
        snapshot: &Snapshot,
        to: Mark,
    ) -> Result<RangeRows, LakeError> {
        let number = self.attachment.table;
        let table = database.table_numbered(number).ok_or(LakeError::NoTable { number })?;
        self.check_columns(table.definition())?;
        RangeRows::new(table, snapshot, self.read_to, Lsn(to.lsn))
    }

    /// Values go to columns by their places, so these must be those that the lake's table was opened with.
    fn check_columns(&self, definition: &TableDefinition) -> Result<(), LakeError> {
        let (columns, _) = columns::of_table(definition)?;
        if columns == self.columns {
            return Ok(());
        }
        let is_other = |at: &usize| columns.get(*at) != self.columns.get(*at);
        let at = (0..columns.len().max(self.columns.len())).find(is_other).unwrap_or_default();
        let told = |column: Option<&LakeColumn>| {
            column.map_or("nothing".to_owned(), |it| format!("{} of kind {:?}", it.name, it.kind))
        };
        Err(LakeError::TableMismatch {
            column: (at + 1).to_string(),
            expected: told(columns.get(at)),
            found: told(self.columns.get(at)),
        })
    }

    /// Asks for the commit of what is staged until it is in the lake.
    async fn commit(
        &mut self,
        database: &Database,
        kept: &NoteTable,
        brought: &mut Brought,
    ) -> Result<(), LakeError> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        let outcome = self.commit_pending(&mut pending, database, kept, brought).await;
        if outcome.is_err() {
            self.pending = Some(pending);
        }
        outcome
    }

    async fn commit_pending(
        &mut self,
        pending: &mut Pending,
        database: &Database,
        kept: &NoteTable,
        brought: &mut Brought,
    ) -> Result<(), LakeError> {
        let (from, mut to) = (self.mark, pending.to);
        if self.notes.ask(to) && !planted(Fault::LakeAskNotNoted) {
            kept.write(&self.attachment, &self.notes)?;
        }
        if let (Some((confirmed, _)), true) =
            (self.notes.confirmed, planted(Fault::LakeConfirmedEarly))
        {
            let confirmed = Confirmed { lsn: to.lsn, ..confirmed };
            kept.write(&self.attachment, &Notes::of(confirmed, to))?;
        }
        let mut refused = String::new();
        for _ in 0..TRIES {
            let was_unknown = std::mem::replace(&mut self.is_unknown, true);
            let verdict = match was_unknown {
                true => self.target.verdict(self.node, (&from, &to), self.patience).await?,
                false => {
                    self.stage_missing(database, pending).await?;
                    let again = || {
                        let snapshot = database.session()?.durable_snapshot()?;
                        self.rows(database, &snapshot, to)
                    };
                    let (range, staged) = ((&from, &to), &mut pending.staged);
                    self.target.append(self.node, range, staged, again, self.patience).await?
                }
            };
            self.is_unknown = false;
            match verdict {
                Verdict::Applied(confirmed) => {
                    self.notes = Notes::of(confirmed, to);
                    (self.mark, self.read_to) = (to, Lsn(to.lsn));
                    brought.add(&pending.staged.counts);
                    return Ok(kept.write(&self.attachment, &self.notes)?);
                }
                Verdict::NotApplied { cause } => {
                    brought.refusals += u64::from(!was_unknown);
                    refused = cause;
                    if planted(Fault::LakeRangeGrows) {
                        let snapshot = database.session()?.durable_snapshot()?;
                        // Also where nothing has become durable meanwhile, so that the fault always shows.
                        to = from.at(snapshot.lsn().0.max(to.lsn + 1));
                        self.notes.ask(to);
                        if let Some(longer) = self.stage_to(database, &snapshot, to).await? {
                            *pending = longer;
                        }
                    }
                }
            }
        }
        pending.is_stale = true;
        Err(LakeError::Away { cause: refused })
    }

    /// Stages anew what is pending, if it is old and not there any more, or does not fit any more.
    async fn stage_missing(
        &self,
        database: &Database,
        pending: &mut Pending,
    ) -> Result<(), LakeError> {
        let is_old = pending.written_at.elapsed() > FILES_ARE_SAFE_FOR;
        let is_needed =
            pending.is_stale || is_old && self.target.is_missing(&pending.staged).await?;
        if is_needed {
            let snapshot = database.session()?.durable_snapshot()?;
            let again = self.stage_to(database, &snapshot, pending.to).await?;
            let gone = || LakeError::Internal("rows that were staged are not there".to_owned());
            *pending = again.ok_or_else(gone)?;
        }
        Ok(())
    }
}

/// Whether a claim was in the way that this node has made itself.
fn is_own(because: &FencedBecause, notes: &Notes) -> bool {
    matches!(because, FencedBecause::OtherNonce { found } if notes.asked.contains(found))
}
