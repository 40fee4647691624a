//! Rivals that are servers, each over its own protocol.
//!
//! A server brings how to make, start and stop it, and what one connection can do; everything else,
//! the crowd of sessions, keys, timing and the comparison, is the same for all and stands here.
//!
//! - `programs.rs`: where a server's programs are, and as whom it runs.
//! - `process.rs`: a server's process, which never outlives the lab.
//! - `plan.rs`: who makes the keys, and what one statement and one transaction hold.
//! - `sessions.rs`: the loop, in the client or in a procedure of the server.
//! - `watch.rs`: what sessions wait for, seen by looking often.
//! - `session.rs`: a connection over PostgreSQL's protocol.
//! - `postgresql/`, `mariadb/`, `sqlserver/`: the servers. `onrush.rs`: our own, as one of them.
//!
//! Invariants
//! 1. Connections are open and statements prepared before the clock starts.
//! 2. Keys that the server makes are unknown to the lab: rows are compared by number, order and
//!    content, not byte by byte.

mod mariadb;
mod onrush;
mod plan;
mod postgresql;
pub(crate) mod process;
mod programs;
mod session;
mod sessions;
mod sqlserver;
mod watch;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) use self::onrush::OnrushServer;
pub(super) use mariadb::Mariadb;
pub(super) use postgresql::Postgresql;
pub(super) use sqlserver::SqlServer;

use crate::error::LabError;
use onrush_measure::fingerprint::Fingerprint;
use onrush_measure::load::crowd;
use onrush_measure::load::ledger::KeySample;
use onrush_measure::progress::{Observer, Step};
use onrush_measure::stand::unix_micros;
use onrush_measure::verify::{self, Acknowledged, Verification};

use super::embedded::{compare_rows, crowd_of};
use super::onrush::figures;
use super::record::Snapshot;
use super::rows::{Key, Numbers, Row};
use super::{Checked, Instance, LoadFigures, LoadOrder, Sampler};
use crate::study::{Setting, Settings};
use plan::Plan;
use process::Process;
use watch::{Seen, Watch};

/// What a server, a driver or the system says when it refuses.
pub(super) type Refusal = super::embedded::Refusal;

/// A server for one case.
trait BaselineServer: Send + Sync + Sized + 'static {
    /// The target's name.
    const NAME: &'static str;

    /// One session, for one thread.
    type Connection: Connection;

    /// What a load asks of it.
    fn plan(settings: &Settings) -> Plan {
        Plan::of(settings)
    }

    /// Makes the database and the table below `folder`, and starts the server.
    fn create(folder: &Path, settings: &Settings, plan: &Plan) -> Result<Self, Refusal>;

    /// A connection for the load.
    fn connect(&self) -> Result<Self::Connection, Refusal>;

    /// A connection that looks on: it is not counted among the sessions of the load.
    fn look_on(&self) -> Result<Self::Connection, Refusal>;

    /// The clock by which the server stamps rows, in microseconds since 1970-01-01 00:00:00 UTC.
    fn now_micros(&self) -> Result<i64, Refusal> {
        Ok(unix_micros())
    }

    /// From now on commits wait until they are on disk, or do not.
    fn set_durable(&self, is_durable: bool) -> Result<(), Refusal>;

    /// Everything acknowledged becomes durable.
    fn settle(&self) -> Result<(), Refusal>;

    /// Checks everything that is stored in the table; returns the bytes that the table takes. Damage
    /// is a refusal.
    fn check(&self, _threads: u64) -> Result<u64, Refusal> {
        Err("the lab has no check for it".into())
    }

    /// Returns when the sessions of the load have handed in what they counted.
    fn wait_for_sessions(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Starts the server, where the lab may; returns when it answers.
    fn start(&mut self) -> Result<(), Refusal>;

    /// The server's process; None where the lab has not started it.
    fn process(&mut self) -> &mut Option<Process>;

    /// Stops the server in good order, where the lab may, and starts it again.
    fn restart(&mut self) -> Result<(), Refusal> {
        self.process().take().map_or(Ok(()), Process::stop)?;
        self.start()
    }

    /// Stops the server, and takes away what the lab has made in it.
    fn stop(mut self) -> Result<(), Refusal> {
        self.process().take().map_or(Ok(()), Process::stop)
    }

    /// How the server ended, if it did or is about to: the cause of whatever else went wrong.
    fn ended(&mut self) -> Option<String> {
        self.process().as_mut().and_then(Process::ends)
    }

    /// Processor time of the server so far; zero where it cannot be known.
    fn cpu_time(&mut self) -> Duration {
        self.process().as_ref().map_or(Duration::ZERO, Process::cpu_time)
    }
}

/// A connection to a server.
trait Connection: Send {
    /// Prepares what the load will need.
    fn prepare(&mut self, plan: &Plan) -> Result<(), Refusal>;

    /// One INSERT statement: so many rows, with these keys unless the server makes them.
    fn insert(&mut self, keys: &[Key], rows: usize) -> Result<(), Refusal>;

    /// Begins a transaction of several statements.
    fn begin(&mut self) -> Result<(), Refusal>;

    /// Commits it; returns when that is acknowledged.
    fn commit(&mut self) -> Result<(), Refusal>;

    /// Calls the procedure: so many transactions, keys ascending from this one where it needs any.
    fn call(&mut self, first_key: i64, transactions: u64) -> Result<(), Refusal>;

    /// What every session of the load does just now: group, name, and whether that is idling.
    fn look(&mut self, seen: &mut dyn FnMut(Seen)) -> Result<(), Refusal>;

    /// What the server counts.
    fn statistics(&mut self) -> Result<Snapshot, Refusal>;

    /// Every row in the order of its keys.
    fn scan(&mut self, visit: &mut dyn FnMut(&Row)) -> Result<(), Refusal>;
}

/// A server prepared for one case.
struct Hosted<R: BaselineServer> {
    server: Option<R>,
    settings: Settings,
    /// Whether it was stopped and started again, to be checked as something that was closed.
    is_restarted: bool,
    plan: Plan,
    numbers: Numbers,
    watch: Watch,
    acknowledged: Acknowledged,
}

impl<R: BaselineServer> Hosted<R> {
    fn prepare(settings: &Settings, folder: &Path) -> Result<Self, LabError> {
        let plan = R::plan(settings);
        let server = R::create(&folder.join(R::NAME), settings, &plan).map_err(told::<R>)?;
        let (now, numbers) = (server.now_micros().map_err(told::<R>)?, plan.numbers);
        Ok(Hosted {
            server: Some(server),
            settings: settings.clone(),
            is_restarted: false,
            plan,
            numbers: Numbers::default(),
            watch: Watch::default(),
            acknowledged: Acknowledged {
                is_classic: true,
                numbers,
                rows: 0,
                fingerprint: Fingerprint::default(),
                keys: KeySample::default(),
                inserted_micros: (now, now),
            },
        })
    }

    fn server(&mut self) -> Result<&mut R, LabError> {
        self.server.as_mut().ok_or_else(|| told::<R>("it was stopped".into()))
    }

    /// An error of the server's; if it died, that is the cause.
    fn failed(&mut self, error: Refusal) -> LabError {
        let cause = error.to_string();
        match self.server.as_mut().and_then(BaselineServer::ended) {
            Some(end) if !cause.contains(&end) => told::<R>(format!("{cause}; {end}").into()),
            _ => told::<R>(error),
        }
    }

    fn run(&mut self, order: LoadOrder, observer: &dyn Observer) -> Result<LoadFigures, LabError> {
        let settings = self.settings.clone();
        let is_preload = order.step == Step::Preload;
        let crowd = crowd_of(&settings, &order, false);
        let plan = if is_preload { self.plan.for_preload() } else { self.plan.clone() };
        let sessions = settings.size(Setting::Sessions);
        let server = self.server.as_mut().ok_or_else(|| told::<R>("it was stopped".into()))?;
        server.set_durable(crowd.ledger.is_durable).map_err(told::<R>)?;
        let connections = connect_all(server, sessions, &plan).map_err(told::<R>)?;
        let (numbers, key) = (&self.numbers, settings.key());
        let cpu_before = server.cpu_time();
        let watching = match is_preload {
            true => None,
            false => Some(self.watch.start(server.look_on().map_err(told::<R>)?)),
        };
        let loaded = crowd::run(crowd, observer, &|shared, thread, ledger| {
            let taken = connections[thread].lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut connection = taken.ok_or_else(|| told::<R>("no connection is left".into()))?;
            let wanted = onrush_measure::load::rows_of(order.rows, sessions, thread);
            let work = sessions::Work { plan: &plan, key, numbers, wanted, thread };
            sessions::run(&work, &mut connection, shared, ledger).map_err(told::<R>)
        });
        drop(watching);
        drop(connections);
        let mut loaded = loaded?;
        server.wait_for_sessions().map_err(told::<R>)?;
        loaded.cpu += server.cpu_time().saturating_sub(cpu_before);
        self.acknowledged.rows += loaded.ledger.rows;
        self.acknowledged.inserted_micros.1 = server.now_micros().map_err(told::<R>)?;
        let figures = figures(&loaded);
        if is_preload {
            self.settle()?;
        }
        Ok(figures)
    }
}

/// The error of a target.
fn told<R: BaselineServer>(error: Refusal) -> LabError {
    super::embedded::failed_as(R::NAME, &*error)
}

/// Each waits in its place until its thread takes it.
type Connections<C> = Vec<Mutex<Option<C>>>;

fn connect_all<R: BaselineServer>(
    server: &R,
    sessions: usize,
    plan: &Plan,
) -> Result<Connections<R::Connection>, Refusal> {
    let open = |_| {
        let mut connection = server.connect()?;
        connection.prepare(plan)?;
        Ok(Mutex::new(Some(connection)))
    };
    (0..sessions).map(open).collect()
}

impl<R: BaselineServer> Instance for Hosted<R> {
    fn load(&mut self, order: LoadOrder, observer: &dyn Observer) -> Result<LoadFigures, LabError> {
        self.run(order, observer).map_err(|error| match error {
            LabError::Target { what, .. } => self.failed(what.into()),
            other => other,
        })
    }

    fn settle(&mut self) -> Result<(), LabError> {
        let settled = self.server()?.settle();
        settled.map_err(|error| self.failed(error))
    }

    fn check(&mut self, observer: &dyn Observer) -> Result<Checked, LabError> {
        if !self.is_restarted {
            observer.begin(Step::Reopen, None);
            let restarted = self.server()?.restart();
            observer.end();
            restarted.map_err(|error| self.failed(error))?;
            self.is_restarted = true;
        }
        let (rows, threads) = (self.acknowledged.rows, self.settings.number(Setting::CheckThreads));
        let server = self.server()?;
        observer.begin(Step::Check, None);
        let cpu_before = server.cpu_time();
        let passed = Checked::of(rows, || server.check(threads));
        let cpu = server.cpu_time().saturating_sub(cpu_before);
        let passed = passed.map(|one| Checked { cpu: one.cpu + cpu, ..one });
        observer.end();
        passed.map_err(|error| self.failed(error))
    }

    fn statistics(&mut self) -> Result<Snapshot, LabError> {
        let asked = self.server()?.look_on().and_then(|mut connection| connection.statistics());
        let mut snapshot = asked.map_err(|error| self.failed(error))?;
        snapshot.waits.extend(self.watch.waits());
        Ok(snapshot)
    }

    fn sampler(&mut self) -> Option<Sampler> {
        // Counters over time are left out where no further connection is to be had.
        let mut connection = self.server.as_ref()?.look_on().ok()?;
        Some(Box::new(move || connection.statistics().ok()))
    }

    fn verify(&mut self, observer: &dyn Observer) -> Result<Option<Verification>, LabError> {
        let started = Instant::now();
        observer.begin(Step::Reopen, None);
        let restarted = self.server()?.restart();
        observer.end();
        restarted.map_err(|error| self.failed(error))?;
        observer.begin(Step::Verify, Some(self.acknowledged.rows));
        let connection = self.server()?.look_on();
        let part = connection.and_then(|mut connection| {
            compare_rows(&self.acknowledged, observer, |visit| {
                connection.scan(&mut |row| visit(row.key_bytes(), row.value_bytes()))
            })
        });
        observer.end();
        let part = part.map_err(|error| self.failed(error))?;
        Ok(Some(verify::compare(&self.acknowledged, part, started.elapsed())))
    }

    fn clean_up(mut self: Box<Self>) -> Result<(), LabError> {
        match self.server.take() {
            Some(server) => server.stop().map_err(told::<R>),
            None => Ok(()),
        }
    }
}
