//! What the answers of a session rest on, and who waits until that is durable. Step 6 of an insert.
//!
//! An answer rests on the newest commit that it tells of: the session's own, the one that wrote the row
//! that was read or stands in the way, the one that removed a row that is not there, and whatever a
//! snapshot holds. Were the answer durable and that commit lost, a crash would make it untrue.
//!
//! | what a durable session is told | by itself | whose program waits later |
//! |---|---|---|
//! | a commit, a refusal, *no such row*, the end of a transaction that only read | waits | left to the program |
//! | rows | does not wait | left to the program |
//!
//! Invariants
//! 1. Whatever reads or writes rows says what it saw, by [`Session::saw`] or [`Session::acknowledge`],
//!    before the answer is given.
//! 2. What a delayed session is told rests on nothing.

use onrush_log::Lsn;
use onrush_waits::Counter;

use super::session::Session;
use super::token::CommitToken;
use super::transaction::Transaction;
use crate::error::Result;
use crate::fault::{Fault, planted};
use crate::options::Durability;
use crate::tree::Look;

impl Session {
    /// Whether the program waits for durable commits itself, before it passes this session's answers on:
    /// then no call waits, and [`take_rest`](Self::take_rest) says what all answers since the last time
    /// rest on. For servers, where one wait serves many answers.
    ///
    /// ```
    /// # use onrush::*;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::create(folder.path().join("db"), Options::small())?;
    /// # let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    /// # let notes = TableDefinition::builder("notes").column(id).primary_key(["id"]);
    /// # let notes = db.create_table(notes.build()?)?;
    /// let (mut writer, mut reader) = (db.session()?, db.session()?);
    /// writer.insert_token(&notes, &[1i64.into()])?; // committed, and perhaps not durable
    /// reader.set_waits_later(true);
    /// let row = reader.get(&notes, &[1i64.into()])?;
    /// reader.take_rest().expect("the row is there by somebody's commit").wait()?;
    /// println!("{row:?} survives a power cut");
    /// assert!(reader.take_rest().is_none_or(|rest| rest.is_durable()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_waits_later(&mut self, waits_later: bool) {
        self.waits_later = waits_later;
    }

    /// What the answers since the last call rest on: a token for the newest commit that one of them tells
    /// of, made by this session or by another; none if they tell of none. What table names mean counts
    /// as told in every answer of a durable session.
    pub fn take_rest(&mut self) -> Option<CommitToken> {
        let mut end = std::mem::take(&mut self.rests_on);
        if self.durability == Durability::Durable {
            end = end.max(self.worker.engine.catalog.changed_at());
        }
        end.map(|end| CommitToken::new(&self.source, end))
    }

    /// The next answer tells of what a key was seen to be.
    #[inline]
    pub(super) fn saw_at(&mut self, look: Look) {
        if let Some(lsn) = look.lsn {
            self.saw(lsn + 1);
        }
    }

    /// The next answer tells of commits below `end`.
    #[inline]
    pub(super) fn saw(&mut self, end: Lsn) {
        self.last_seen = self.last_seen.max(Some(end));
        if self.durability == Durability::Durable {
            self.rests_on = self.rests_on.max(Some(end));
        }
    }

    /// The next answer tells of the commit at `lsn`, if there is one, and is no row: a session that waits by
    /// itself does so here.
    pub(super) fn rest_on(&mut self, lsn: Option<Lsn>) -> Result<()> {
        if let Some(lsn) = lsn
            && !planted(Fault::DuplicateNoWait)
        {
            self.saw(lsn + 1);
            self.wait_for(lsn + 1)?;
        }
        Ok(())
    }

    /// The end of a transaction that wrote nothing rests on all that was read.
    pub(super) fn rest_on_all_seen(&mut self) -> Result<()> {
        self.rests_on.map_or(Ok(()), |end| self.wait_for(end))
    }

    fn wait_for(&mut self, end: Lsn) -> Result<()> {
        if self.durability == Durability::Durable && !self.waits_later {
            self.worker.release();
            self.worker.engine.log.wait_durable(end, &self.worker.recorder)?;
        }
        Ok(())
    }

    /// Step 6 of an insert: counts the commit, and waits as the session's durability says. A commit of
    /// rows that are not logged has nothing to wait for.
    #[inline]
    pub(super) fn acknowledge(&mut self, end: Lsn, logged: bool) -> Result<()> {
        self.last_commit = Some(end);
        if !logged {
            self.worker.recorder.count(Counter::UnloggedCommits, 1);
            return self.worker.engine.check_readable();
        }
        match self.durability {
            Durability::Delayed => {
                self.worker.recorder.count(Counter::DelayedCommits, 1);
                Ok(self.worker.engine.log.note_delayed(end, &self.worker.recorder)?)
            }
            Durability::Durable => {
                self.worker.recorder.count(Counter::DurableCommits, 1);
                if planted(Fault::AcknowledgeEarly) {
                    return Ok(());
                }
                if self.waits_later {
                    self.rests_on = Some(end);
                    return Ok(());
                }
                self.worker.release();
                Ok(self.worker.engine.log.wait_durable(end, &self.worker.recorder)?)
            }
        }
    }

    /// A token for a commit that has just happened, which is counted as one of that kind.
    #[inline]
    pub(super) fn token(&mut self, end: Lsn, logged: bool) -> CommitToken {
        self.last_commit = Some(end);
        let kind = if logged { Counter::TokenCommits } else { Counter::UnloggedCommits };
        self.worker.recorder.count(kind, 1);
        CommitToken::new(&self.source, end)
    }

    /// The answer *no such row* rests on whoever removed it being durable.
    pub(super) fn nothing_there(&mut self, look: Look) -> Result<bool> {
        self.rest_on(look.lsn)?;
        Ok(false)
    }
}

impl Transaction<'_> {
    /// As [`Session::take_rest`], while the transaction is open.
    pub fn take_rest(&mut self) -> Option<CommitToken> {
        self.session.take_rest()
    }

    /// As [`Session::set_durability`], while the transaction is open.
    pub fn set_durability(&mut self, durability: Durability) {
        self.session.set_durability(durability);
    }
}
