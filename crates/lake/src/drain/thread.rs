//! The thread of the drain: whose turn it is.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::attachment::{self, Attachment};
use super::notes::NoteTable;
use super::round::{Brought, Round};
use super::state::{Phase, TableState};
use super::{DrainCatalogue, Identity, Shared, columns};
use crate::columns::LakeColumn;
use crate::error::LakeError;
use crate::target::{Place, Target};

/// A catalogue or a store that does not answer is asked again so soon, and then after twice as long each time.
const AWAY_PAUSE: Duration = Duration::from_secs(1);
const AWAY_PAUSE_MAX: Duration = Duration::from_secs(60);

/// What the thread is asked for.
pub(super) enum Command {
    /// Which tables are attached has changed.
    Refresh,
    /// Whether a table could be attached so.
    Check(Attachment, oneshot::Sender<Result<(), LakeError>>),
    /// Rows of a table that are durable now are to be in the lake.
    Flush(u32, oneshot::Sender<Result<(), LakeError>>),
}

/// One attached table.
struct OneDrain {
    attachment: Attachment,
    /// None before it is claimed, and once it has stopped for good.
    round: Option<Round>,
    /// Of its claims. Another one once it has stopped: what it has in flight then must not meet the next claim.
    nonce: u128,
    has_stopped: bool,
    due: Instant,
    /// How long it waits for its next turn if nothing answers.
    away_pause: Duration,
}

/// All attached tables.
pub(super) struct Drains {
    shared: Arc<Shared>,
    inbox: mpsc::UnboundedReceiver<Command>,
    stop: watch::Receiver<bool>,
    notes: NoteTable,
    tables: BTreeMap<u32, OneDrain>,
    /// Those that were connected to.
    places: BTreeMap<String, Place>,
}

impl Drains {
    pub(super) fn new(
        shared: &Arc<Shared>,
        inbox: mpsc::UnboundedReceiver<Command>,
        stop: watch::Receiver<bool>,
    ) -> Result<Drains, LakeError> {
        let notes = NoteTable::open(&shared.database)?;
        let (tables, places) = (BTreeMap::new(), BTreeMap::new());
        let shared = Arc::clone(shared);
        Ok(Drains { shared, inbox, stop, notes, tables, places })
    }

    /// Until it is asked to stop. Whatever else ends it shows in the states.
    pub(super) fn run(mut self) {
        let (shared, mut stop) = (Arc::clone(&self.shared), self.stop.clone());
        let serve = || match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(async {
                tokio::select! {
                    biased;
                    // A round is left between two steps, as if the process ended there.
                    _ = stop.wait_for(|is_asked| *is_asked) => None,
                    () = self.serve() => Some("nobody can reach it any more".to_owned()),
                }
            }),
            Err(cause) => Some(format!("it has no runtime: {cause}")),
        };
        let ended = std::panic::catch_unwind(AssertUnwindSafe(serve));
        if let Some(cause) = ended.unwrap_or_else(|_| Some("its thread panicked".to_owned())) {
            let cause = format!("the drain has ended: {cause}; start the server again");
            tracing::error!("{cause}");
            for state in shared.states.lock().values_mut() {
                state.phase = Phase::Stopped { cause: cause.clone() };
            }
        }
    }

    async fn serve(&mut self) {
        loop {
            let next = self.tables.iter().filter(|(_, it)| !it.has_stopped);
            let next = next.min_by_key(|(_, it)| it.due).map(|(table, it)| (*table, it.due));
            let due = async {
                match next {
                    Some((table, due)) => {
                        sleep_until(due).await;
                        table
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                command = self.inbox.recv() => match command {
                    None => return,
                    Some(Command::Refresh) => {
                        if let Err(error) = self.refresh() {
                            tracing::error!("the lake drain cannot read what is attached: {error}");
                        }
                    }
                    Some(Command::Check(attachment, told)) => {
                        let _ = told.send(self.check(&attachment).await);
                    }
                    // Whoever asked may have gone since.
                    Some(Command::Flush(_, told)) if told.is_closed() => {}
                    Some(Command::Flush(table, told)) => {
                        let _ = told.send(self.drain(table).await);
                    }
                },
                table = due => drop(self.drain(table).await),
            }
        }
    }

    /// Follows what is attached.
    pub(super) fn refresh(&mut self) -> Result<(), LakeError> {
        let attached = attachment::all(&self.shared.database)?;
        let mut before = std::mem::take(&mut self.tables);
        let mut states = self.shared.states.lock();
        for attachment in attached {
            let known = before.remove(&attachment.table).filter(|it| it.attachment == attachment);
            if known.is_none() {
                states.insert(attachment.table, TableState::new(attachment.clone()));
            }
            let new = || OneDrain {
                attachment: attachment.clone(),
                round: None,
                nonce: Uuid::new_v4().as_u128(),
                has_stopped: false,
                due: Instant::now(),
                away_pause: AWAY_PAUSE,
            };
            self.tables.insert(attachment.table, known.unwrap_or_else(new));
        }
        states.retain(|table, _| self.tables.contains_key(table));
        Ok(())
    }

    async fn check(&mut self, attachment: &Attachment) -> Result<(), LakeError> {
        let patience = self.shared.options.patience;
        let state = self.target(attachment).await?.0.load(patience).await?;
        // Which table the rows of a lost node are of is not known.
        let Identity { node, lost, .. } = &self.shared.options.identity;
        let mut nodes = lost.iter().map(|lost| lost.node).chain([*node]);
        match nodes.find(|node| state.marks.contains_key(node)) {
            Some(node) => Err(LakeError::HasRows { node, table: attachment.name.clone() }),
            None => Ok(()),
        }
    }

    /// The lake's table of an attachment, made if there is none.
    async fn target(
        &mut self,
        attachment: &Attachment,
    ) -> Result<(Target, Vec<LakeColumn>), LakeError> {
        let Attachment { catalogue: named, name, table: number, .. } = attachment;
        let number = *number;
        let table = self.shared.database.table_numbered(number);
        let table = table.ok_or(LakeError::NoTable { number })?;
        let place = match self.places.get(named) {
            Some(place) => place.clone(),
            None => {
                let place = match self.shared.options.catalogues.get(named) {
                    Some(DrainCatalogue::Configured(config)) => config.place(named).await?,
                    Some(DrainCatalogue::Open(catalogue)) => {
                        Place::Catalogue(Arc::clone(catalogue))
                    }
                    None => {
                        let (name, cause) = (named.clone(), "none is configured so".into());
                        return Err(LakeError::NoSuchCatalogue { name, cause });
                    }
                };
                self.places.insert(named.clone(), place.clone());
                place
            }
        };
        let (columns, key) = columns::of_table(table.definition())?;
        let patience = self.shared.options.patience;
        let key: Vec<&str> = key.iter().map(String::as_str).collect();
        let opened = Target::open_or_create(place, name, &columns, &key, patience);
        Ok((opened.await?, columns))
    }

    /// Makes a round of a table; of one that has stopped, if it can go on now.
    async fn drain(&mut self, table: u32) -> Result<(), LakeError> {
        let mut brought = Brought::default();
        let outcome = self.try_to_drain(table, &mut brought).await;
        let Some(one) = self.tables.get_mut(&table) else { return outcome };
        let phase = match &outcome {
            Ok(()) => Phase::Running,
            Err(error) if error.is_retryable() => Phase::Away { cause: error.to_string() },
            Err(error) => Phase::Stopped { cause: error.to_string() },
        };
        let is_away = matches!(phase, Phase::Away { .. });
        one.has_stopped = matches!(phase, Phase::Stopped { .. });
        let pause = if is_away { one.away_pause } else { one.attachment.lag };
        one.due = Instant::now() + pause;
        one.away_pause =
            if is_away { (2 * one.away_pause).min(AWAY_PAUSE_MAX) } else { AWAY_PAUSE };
        if let Some(state) = self.shared.states.lock().get_mut(&table) {
            if let Some(cause) = phase.cause().filter(|_| state.phase != phase) {
                tracing::warn!(table = %one.attachment.name, "the lake drain does not go on: {cause}");
            }
            state.phase = phase;
            if let Some(round) = &one.round {
                (state.mark, state.read_to) = (Some(round.mark()), round.read_to());
            }
            state.rows += brought.rows;
            state.files += brought.files;
            state.bytes += brought.bytes;
            state.commits += brought.commits;
            state.refusals += brought.refusals;
            if outcome.is_ok() {
                state.drained_at = Some(SystemTime::now());
            }
        }
        if one.has_stopped {
            one.round = None;
            one.nonce = Uuid::new_v4().as_u128();
        }
        outcome
    }

    async fn try_to_drain(&mut self, number: u32, brought: &mut Brought) -> Result<(), LakeError> {
        let Some(one) = self.tables.get(&number) else {
            return Err(LakeError::Internal(format!("table {number} is not attached to a lake")));
        };
        if one.round.is_none() {
            let (attachment, nonce) = (one.attachment.clone(), one.nonce);
            let target = self.target(&attachment).await?;
            let options = &self.shared.options;
            let round = Round::open(options, &self.notes, target, &attachment, nonce).await?;
            self.tables.entry(number).and_modify(|one| one.round = Some(round));
        }
        let Drains { shared, notes, tables, .. } = self;
        let round = tables.get_mut(&number).and_then(|one| one.round.as_mut());
        let round = round.ok_or_else(|| LakeError::Internal("no round was opened".into()))?;
        round.run(&shared.database, notes, brought).await
    }
}
