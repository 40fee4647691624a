//! What clients do: made at random, or written down.

use super::random::Random;
use super::types::{KEYS, Key, Script, Unit, Verb};

pub(super) fn random(random: &mut Random, units: u64) -> Script {
    let durable = random.one_in(2);
    // Few keys meet more often.
    let keys = [u64::from(KEYS), 6, 3][random.below(3) as usize];
    let first = random.below(u64::from(KEYS) - keys + 1);
    let units = (0..units).map(|_| random_unit(random, first, keys)).collect();
    Script { durable, units }
}

fn random_unit(random: &mut Random, first: u64, keys: u64) -> Unit {
    let is_transaction = random.one_in(3);
    let count = if is_transaction { 1 + random.below(3) } else { 1 };
    let changes = (0..count).map(|_| change(random, first, keys)).collect();
    Unit { changes, is_transaction, commits: !random.one_in(6) }
}

fn change(random: &mut Random, first: u64, keys: u64) -> (Verb, Key) {
    let verb = match random.below(12) {
        0..=4 => Verb::Insert,
        5 => Verb::InsertDrawn,
        6..=7 => Verb::Update,
        _ => Verb::Delete,
    };
    (verb, (first + random.below(keys)) as Key)
}

/// Histories around one or two keys, which pass between rows, frozen rows, fragments and base.
pub(super) fn directed() -> Vec<Vec<Script>> {
    use Verb::{Delete, Insert, Update};
    let alone = |change| Unit { changes: vec![change], is_transaction: false, commits: true };
    let together =
        |changes: &[_], commits| Unit { changes: changes.to_vec(), is_transaction: true, commits };
    let of = |units| Script { durable: true, units };
    vec![
        // Two insert one key; a third row fills the leaf.
        vec![of(vec![alone((Insert, 1)), alone((Insert, 3))]), of(vec![alone((Insert, 1))])],
        // A stored row is deleted, inserted again and updated.
        vec![
            of(vec![alone((Delete, 2)), alone((Insert, 2)), alone((Update, 2))]),
            of(vec![alone((Insert, 2)), alone((Delete, 2))]),
        ],
        // A transaction over a range and a whole leaf, beside one that is given up.
        vec![
            of(vec![together(&[(Insert, 1), (Update, 4), (Insert, 7)], true)]),
            of(vec![together(&[(Insert, 3), (Delete, 4)], false), alone((Delete, 4))]),
        ],
        // Rows that split front leaves across the cut of their range.
        vec![
            of(vec![alone((Insert, 1)), alone((Insert, 3)), alone((Insert, 5))]),
            of(vec![alone((Update, 4)), alone((Delete, 0)), alone((Insert, 0))]),
        ],
        // Deletes in whole leaves that become a range.
        vec![
            of(vec![alone((Delete, 6)), alone((Insert, 6)), alone((Delete, 10))]),
            of(vec![alone((Insert, 7)), alone((Delete, 8)), alone((Insert, 10))]),
        ],
    ]
}
