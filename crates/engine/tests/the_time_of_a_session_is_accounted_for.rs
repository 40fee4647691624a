//! The time of a session is its phases, its waits, and its client's time: nothing is uncounted.
//!
//! The clients measure from outside, with their own clock, how long they were inside of calls and how
//! long they were not. Phases and waits, and the time that the client itself says it was outside, must
//! be the wall time within 5 %. IDLE is not asked for that: it is what the statistics have left over, so
//! that a sum with it is always right; it is held against the client's time outside on its own. What is
//! called work of the processor must not be more than the thread ran or was ready to. A machine that is
//! busy with other things gets several tries.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{Fixture, generated};
use onrush::{CommitToken, Database, Durability, KeyStrategy, LiveTotals, Options, Session, Table};
use onrush_waits::{Phase, PhaseClass, Wait, WaitClass};

/// Of the whole time of a session.
const TOLERANCE: f64 = 0.05;
const TRIES: usize = 10;

/// One load at a time: two of them on two processors would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a client saw of its session.
struct Seen {
    inside: Duration,
    outside: Duration,
    /// For how long its thread was ready and had no processor, as the system says.
    queued: f64,
    statistics: LiveTotals,
}

/// Calls and pauses, with the time of each kind measured from outside.
struct Client {
    began: Instant,
    inside: Duration,
    before: LiveTotals,
    queued_before: f64,
}

impl Client {
    /// The first calls are left out: a session learns how long its calls are.
    fn new(session: &Session) -> Client {
        let before = session.statistics();
        let queued_before = queued_seconds();
        Client { began: Instant::now(), inside: Duration::ZERO, before, queued_before }
    }

    fn call<T>(&mut self, calls: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = calls();
        self.inside += began.elapsed();
        result
    }

    fn end(self, session: &Session) -> Seen {
        let whole = self.began.elapsed();
        let queued = queued_seconds() - self.queued_before;
        let mut statistics = session.statistics();
        statistics.totals = statistics.totals.since(&self.before.totals);
        Seen { inside: self.inside, outside: whole - self.inside, queued, statistics }
    }
}

fn pause(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

impl Seen {
    /// The same with a wait that nobody had a name for.
    fn without(mut self, wait: Wait) -> Seen {
        let waits = self.statistics.totals.waits.iter_mut();
        waits.filter(|total| total.wait == wait).for_each(|total| total.nanos = 0);
        self
    }

    /// What does not agree, in words.
    fn disagreement(&self) -> Option<String> {
        let totals = &self.statistics.totals;
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let of_phases = |class: PhaseClass| -> f64 {
            let phases = totals.phases.iter().filter(|total| total.phase.class() == class);
            phases.map(|total| seconds(total.nanos)).sum()
        };
        let in_database = |wait: Wait| wait.class() != WaitClass::Idle && wait != Wait::CpuQueue;
        let waits = totals.waits.iter().filter(|total| in_database(total.wait));
        let waits: f64 = waits.map(|total| seconds(total.nanos)).sum();
        // A thread can lose its processor inside of calls as well as outside.
        let queued = seconds(totals.wait(Wait::CpuQueue).nanos);
        // CPU_QUEUE is found by sampling. What of it was missed, where others take the processors,
        // was on either side.
        let missed = (self.queued - queued).max(0.0);
        let inside = of_phases(PhaseClass::Session) + waits;
        let outside = of_phases(PhaseClass::Idle);
        let whole = (self.inside + self.outside).as_secs_f64();
        let bounds = [
            (
                "inside of calls",
                inside - missed,
                inside + queued + missed,
                self.inside.as_secs_f64(),
            ),
            (
                "outside of calls",
                outside - missed,
                outside + queued + missed,
                self.outside.as_secs_f64(),
            ),
            // What the statistics count and what the client saw of itself: nothing is a remainder here.
            (
                "in all",
                inside - missed + self.outside.as_secs_f64(),
                inside + queued + missed + self.outside.as_secs_f64(),
                whole,
            ),
        ];
        let tolerance = TOLERANCE * whole;
        let is_wrong =
            |least: f64, most: f64, seen: f64| least > seen + tolerance || most < seen - tolerance;
        let wrong: Vec<String> = bounds
            .iter()
            .filter(|(_, least, most, seen)| is_wrong(*least, *most, *seen))
            .map(|(what, least, most, seen)| {
                format!("{what}: {least:.4} to {most:.4} s counted, {seen:.4} s seen of {whole:.4}")
            })
            .collect();
        (!wrong.is_empty()).then(|| {
            format!("{}\n{}\n{}", wrong.join("; "), totals.wait_report(), totals.phase_report())
        })
    }
}

/// Space in memory and log, so that sessions work and do not wait for space all the time.
fn roomy() -> Options {
    Options {
        leaf_memory_bytes: 256 << 20,
        // The first touch of a page is a call so long that the sample leaves it out.
        prefault_leaf_memory: true,
        log_ring_bytes: 4 << 20,
        log_segment_bytes: 16 << 20,
        log_capacity_bytes: 256 << 20,
        ..Options::small()
    }
}

/// Runs the load on a new database each time, until every session agrees.
fn assert_accounted(what: &str, load: impl Fn(&Database, &Table) -> Vec<Seen>) {
    let _alone = alone();
    let mut disagreements = Vec::new();
    for _ in 0..TRIES {
        let mut fixture = Fixture::new();
        fixture.options = roomy();
        let (db, table) = fixture.create_with(generated(KeyStrategy::SessionOffset));
        let seen = load(&db, &table);
        let found: Vec<String> = seen.iter().filter_map(Seen::disagreement).collect();
        if found.is_empty() {
            return;
        }
        disagreements.push(found.join("\n"));
    }
    panic!("{what}: {} tries, of which the last says:\n{}", TRIES, disagreements.pop().unwrap());
}

/// A thread for each of `sessions`.
fn threads(
    db: &Database,
    sessions: usize,
    client: impl Fn(&mut Session) -> Seen + Sync,
) -> Vec<Seen> {
    std::thread::scope(|scope| {
        let run = |_| {
            scope.spawn(|| {
                let mut session = db.session().unwrap();
                client(&mut session)
            })
        };
        let clients: Vec<_> = (0..sessions).map(run).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

fn durable_clients(db: &Database, table: &Table, sessions: usize, rounds: usize) -> Vec<Seen> {
    threads(db, sessions, |session| {
        session.insert(table, &[]).unwrap();
        let mut client = Client::new(session);
        for _ in 0..rounds {
            client.call(|| session.insert(table, &[]).unwrap());
            pause(Duration::from_micros(20));
        }
        client.end(session)
    })
}

#[test]
fn of_one_thread_with_durable_commits() {
    assert_accounted("durable, one thread", |db, table| durable_clients(db, table, 1, 3_000));
}

#[test]
fn of_threads_with_durable_commits() {
    assert_accounted("durable, 8 threads", |db, table| durable_clients(db, table, 8, 1_500));
}

#[test]
fn a_wait_without_a_name_would_be_seen() {
    let _alone = alone();
    let fixture = Fixture { options: roomy(), ..Fixture::new() };
    let (db, table) = fixture.create_with(generated(KeyStrategy::SessionOffset));
    for seen in durable_clients(&db, &table, 4, 500) {
        let found = seen.without(Wait::WriteLog).disagreement().unwrap();
        assert!(found.contains("inside of calls") && found.contains("in all"), "{found}");
    }
}

fn delayed_clients(db: &Database, table: &Table, sessions: usize, rounds: usize) -> Vec<Seen> {
    threads(db, sessions, |session| {
        session.set_durability(Durability::Delayed);
        (0..20_000).for_each(|_| session.insert(table, &[]).unwrap());
        let mut client = Client::new(session);
        for _ in 0..rounds {
            // Many calls at a time: reading the clock takes a good part of the time of one.
            client.call(|| (0..50).for_each(|_| session.insert(table, &[]).unwrap()));
            pause(Duration::from_micros(10));
        }
        client.end(session)
    })
}

#[test]
fn of_one_thread_with_delayed_commits() {
    assert_accounted("delayed, one thread", |db, table| delayed_clients(db, table, 1, 20_000));
}

#[test]
fn of_more_threads_than_processors_with_delayed_commits() {
    assert_accounted("delayed, 6 threads", |db, table| delayed_clients(db, table, 6, 6_000));
}

/// Sessions that share a thread: each has one commit on its way, and waits for it in between.
fn tasks(db: &Database, table: &Table, sessions: usize, rounds: usize) -> Vec<Seen> {
    let mut all: Vec<Session> = (0..sessions).map(|_| db.session().unwrap()).collect();
    for session in &mut all {
        (0..1000).for_each(|_| drop(session.insert_token(table, &[]).unwrap()));
    }
    let mut clients: Vec<Client> = all.iter().map(Client::new).collect();
    let mut on_their_way: Vec<Option<(CommitToken, Instant)>> = all.iter().map(|_| None).collect();
    for _ in 0..rounds {
        for ((session, client), on_its_way) in
            all.iter_mut().zip(&mut clients).zip(&mut on_their_way)
        {
            if on_its_way.as_ref().is_some_and(|(token, _)| !token.is_durable()) {
                continue;
            }
            if let Some((_, inserted)) = on_its_way.take() {
                let waited = inserted.elapsed();
                session.waited_for_commit(waited);
                client.inside += waited;
            }
            let token = client.call(|| session.insert_token(table, &[]).unwrap());
            *on_its_way = Some((token, Instant::now()));
        }
        db.write_log().unwrap();
    }
    clients.into_iter().zip(&all).map(|(client, session)| client.end(session)).collect()
}

#[test]
fn of_tasks_that_share_a_thread() {
    assert_accounted("tasks", |db, table| tasks(db, table, 16, 5_000));
}

/// Sessions that share a thread and need not wait: one after the other has its turn.
#[test]
fn of_tasks_with_delayed_commits() {
    assert_accounted("tasks, delayed", |db, table| {
        let mut all: Vec<Session> = (0..4).map(|_| db.session().unwrap()).collect();
        for session in &mut all {
            session.set_durability(Durability::Delayed);
            (0..20_000).for_each(|_| session.insert(table, &[]).unwrap());
        }
        let mut clients: Vec<Client> = all.iter().map(Client::new).collect();
        for _ in 0..5_000 {
            for (session, client) in all.iter_mut().zip(&mut clients) {
                client.call(|| (0..50).for_each(|_| session.insert(table, &[]).unwrap()));
            }
        }
        clients.into_iter().zip(&all).map(|(client, session)| client.end(session)).collect()
    });
}

#[test]
fn of_transactions_and_reads() {
    assert_accounted("transactions", |db, table| {
        threads(db, 2, |session| {
            session.set_durability(Durability::Delayed);
            let mut client = Client::new(session);
            // A few in a hundred calls are timed, and a commit takes ten times as long as an insert:
            // so many that their mean is good for 2 %.
            for _ in 0..60_000 {
                client.call(|| {
                    let mut transaction = session.begin().unwrap();
                    for _ in 0..3 {
                        transaction.insert(table, &[]).unwrap();
                    }
                    transaction.commit().unwrap();
                });
                pause(Duration::from_micros(5));
            }
            client.end(session)
        })
    });
}

#[test]
fn phases_hold_no_sleep() {
    let _alone = alone();
    let mut found = Vec::new();
    for _ in 0..TRIES {
        let mut fixture = Fixture::new();
        fixture.options = roomy();
        let (db, table) = fixture.create_with(generated(KeyStrategy::SessionOffset));
        let before = ready_seconds();
        let mut session = db.session().unwrap();
        session.set_durability(Durability::Delayed);
        (0..2_000_000).for_each(|_| session.insert(&table, &[]).unwrap());
        let ready = ready_seconds() - before;
        let totals = session.statistics().totals;
        let phases = totals.phases.iter();
        let phases = phases.filter(|total| total.phase.class() == PhaseClass::Session);
        let counted = phases.map(|total| total.nanos as f64 / 1e9).sum::<f64>();
        assert!(totals.phase(Phase::Write).count > 0);
        if counted <= ready * (1.0 + 2.0 * TOLERANCE) {
            return;
        }
        found.push(format!("{counted:.3} s counted, {ready:.3} s ready or running"));
    }
    panic!("{}", found.join("; "));
}

/// Time that this thread ran or was ready to run, in seconds: all but its sleep. Where the system
/// does not say how long it was ready, only what it ran.
fn ready_seconds() -> f64 {
    let ran = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    ran.tv_sec as f64 + ran.tv_nsec as f64 / 1e9 + queued_seconds()
}

/// Time that this thread was ready to run and had no processor, in seconds; none where the system
/// does not say.
fn queued_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_ascii_whitespace().nth(1).and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.unwrap_or(0.0) / 1e9
}
