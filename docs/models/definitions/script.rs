//! What clients do: made at random, or written down for the ways in which names change hands.

use super::random::Random;
use super::types::{KEYS, NAMES, Name, Script, Statement, Unit};

/// A client of random units, which begins with a table of its own if it can.
pub(super) fn random(random: &mut Random, units: u64) -> Script {
    let durable = random.one_in(2);
    let first = Statement::Create(random.below(u64::from(NAMES)) as Name);
    let first = Unit { statements: vec![first], commits: true };
    let rest = (1..units).map(|_| random_unit(random));
    let units = [first].into_iter().chain(rest).collect();
    Script { durable, units }
}

fn random_unit(random: &mut Random) -> Unit {
    let statements = match random.below(8) {
        0..=3 => 1,
        _ => 2 + random.below(4),
    };
    let statements: Vec<Statement> = (0..statements).map(|_| statement(random)).collect();
    let commits = statements.len() == 1 || !random.one_in(6);
    Unit { statements, commits }
}

fn statement(random: &mut Random) -> Statement {
    let name = random.below(u64::from(NAMES)) as Name;
    let other = random.below(u64::from(NAMES)) as Name;
    let key = random.below(u64::from(KEYS)) as u32;
    match random.below(32) {
        0..=4 => Statement::Create(name),
        5..=6 => Statement::Drop(name),
        7..=9 => Statement::Rename(name, other),
        10..=11 => Statement::Alter(name),
        12..=13 => Statement::Truncate(name),
        14..=18 => Statement::Insert(name, key),
        19..=20 => Statement::Delete(name, key),
        21..=22 => Statement::Generate(name),
        23..=25 => Statement::Grant(name, key % 2),
        26..=28 => Statement::Select(name, key),
        29..=30 => Statement::Savepoint,
        _ => Statement::RollbackTo,
    }
}

/// Histories in which a name passes from one table to another, each beside a client that uses the names.
pub(super) fn directed() -> Vec<Vec<Script>> {
    use Statement::*;
    let [p, q, m] = [0, 1, 2];
    let alone = |statement| Unit { statements: vec![statement], commits: true };
    let together = |statements: &[_], commits| Unit { statements: statements.to_vec(), commits };
    let of = |units| Script { durable: true, units };
    let begin = |rest: Vec<Unit>| {
        let first = together(&[Create(p), Insert(p, 0), Grant(p, 0)], true);
        of([vec![first], rest].concat())
    };
    let exchange = [Rename(p, m), Create(p), Drop(p), Rename(m, p)];
    let replace = [Drop(p), Create(p), Insert(p, 1)];
    let user = || of(vec![alone(Insert(p, 1)), together(&[Grant(p, 1), Insert(p, 2)], true)]);
    let looker = || of(vec![alone(Create(q)), alone(Select(p, 0)), alone(Generate(p))]);
    vec![
        vec![begin(vec![alone(Create(q)), alone(Drop(q)), alone(Rename(p, q))]), user()],
        vec![begin(exchange.map(alone).to_vec()), looker()],
        vec![begin(vec![together(&replace, false)]), user()],
        vec![begin(vec![together(&[Savepoint, Drop(p), Create(p), RollbackTo], true)]), user()],
        vec![begin(vec![together(&replace, true), alone(Grant(p, 1))]), user()],
        vec![begin(vec![together(&[Insert(p, 2), Truncate(p), Insert(p, 1)], true)]), user()],
        vec![begin(vec![together(&[Insert(p, 2), Alter(p), Rename(p, q)], true)]), user()],
        vec![begin(vec![together(&exchange, true), alone(Generate(p))]), looker()],
    ]
}
