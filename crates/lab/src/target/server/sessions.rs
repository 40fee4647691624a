//! One session's load: the loop in the client, or in a procedure that is called for some thousand
//! transactions at a time, so that progress is seen and a load can be stopped.

use onrush::KeyStrategy;
use onrush_measure::load::crowd::Shared;
use onrush_measure::load::ledger::Ledger;

use super::plan::{KeySource, Plan};
use super::{Connection, Refusal};
use crate::target::rows::{Key, KeySpread, Numbers, RowMaker};

/// Transactions of one call of the procedure: one round trip for all of them.
const TRANSACTIONS_PER_CALL: u64 = 2048;
/// Keys of one session, as in Onrush's session offset.
const SESSION_OFFSET: u64 = 10_000_000_000;

/// What a session is to do.
pub(super) struct Work<'w> {
    pub(super) plan: &'w Plan,
    pub(super) key: KeyStrategy,
    pub(super) numbers: &'w Numbers,
    pub(super) wanted: u64,
    pub(super) thread: usize,
}

/// Runs one session until its rows are in.
pub(super) fn run(
    work: &Work<'_>,
    connection: &mut impl Connection,
    shared: &Shared,
    ledger: &mut Ledger,
) -> Result<(), Refusal> {
    match work.plan.is_loop_in_server {
        true => loop_in_server(work, connection, shared, ledger),
        false => loop_in_client(work, connection, shared, ledger),
    }
}

fn loop_in_client(
    work: &Work<'_>,
    connection: &mut impl Connection,
    shared: &Shared,
    ledger: &mut Ledger,
) -> Result<(), Refusal> {
    let mut maker = RowMaker::new(work.key, KeySpread::Even, work.plan.numbers, work.numbers)?;
    let plan = work.plan;
    let makes_keys = plan.keys == KeySource::Client;
    let mut keys: Vec<Key> = Vec::with_capacity(plan.rows_per_statement.min(10_000));
    let mut done = 0;
    while done < work.wanted && !shared.is_stopped() {
        let count = (plan.rows_per_commit as u64).min(work.wanted - done) as usize;
        let started = ledger.start_commit();
        if !plan.is_one_statement() {
            connection.begin()?;
        }
        let mut left = count;
        while left > 0 {
            let rows = left.min(plan.rows_per_statement);
            keys.clear();
            for _ in 0..if makes_keys { rows } else { 0 } {
                keys.push(maker.next()?.key);
            }
            connection.insert(&keys, rows)?;
            left -= rows;
        }
        if !plan.is_one_statement() {
            connection.commit()?;
        }
        ledger.committed(started, count as u64);
        done += count as u64;
        shared.report(work.thread, done);
    }
    Ok(())
}

/// The procedure makes whole transactions; the rest, if the rows do not divide, is sent at the end.
fn loop_in_server(
    work: &Work<'_>,
    connection: &mut impl Connection,
    shared: &Shared,
    ledger: &mut Ledger,
) -> Result<(), Refusal> {
    let rows_per_commit = work.plan.rows_per_commit as u64;
    let number = work.numbers.lease(1).start;
    let mut next_key = i64::try_from(number * SESSION_OFFSET)?;
    let mut done = 0;
    while done < work.wanted && !shared.is_stopped() {
        let left = work.wanted - done;
        let transactions = (left / rows_per_commit).min(TRANSACTIONS_PER_CALL);
        let rows = match transactions {
            0 => {
                rest(work.plan, connection, next_key, left)?;
                ledger.committed(None, left);
                left
            }
            _ => {
                connection.call(next_key, transactions)?;
                ledger.committed_many(transactions, transactions * rows_per_commit);
                transactions * rows_per_commit
            }
        };
        done += rows;
        next_key += i64::try_from(rows)?;
        shared.report(work.thread, done);
    }
    Ok(())
}

/// Fewer rows than a transaction holds, in one statement.
fn rest(
    plan: &Plan,
    connection: &mut impl Connection,
    first_key: i64,
    rows: u64,
) -> Result<(), Refusal> {
    let keys: Vec<Key> = match plan.keys {
        KeySource::Ascending => (first_key..).take(rows as usize).map(Key::Number).collect(),
        _ => Vec::new(),
    };
    connection.insert(&keys, rows as usize)
}
