//! What clients do: made at random, or written down.

use super::random::Random;
use super::types::{KEYS, Key, LargeStep, Script, Unit, Verb, Work};

pub(super) fn random(random: &mut Random, units: u64) -> Script {
    let durable = random.one_in(2);
    // Few keys meet more often.
    let keys = [u64::from(KEYS), 6, 3][random.below(3) as usize];
    let first = random.below(u64::from(KEYS) - keys + 1);
    let likes_large = random.one_in(2);
    let units = (0..units).map(|_| random_unit(random, (first, keys), likes_large)).collect();
    Script { durable, units }
}

fn random_unit(random: &mut Random, (first, keys): (u64, u64), likes_large: bool) -> Unit {
    let work = match random.below(12) {
        0..=4 if likes_large => large(random, first, keys),
        0 => large(random, first, keys),
        1..=5 => {
            let count = 1 + random.below(3);
            Work::Transaction((0..count).map(|_| change(random, first, keys)).collect())
        }
        _ => Work::Single(change(random, first, keys)),
    };
    let commits = !random.one_in(if matches!(work, Work::Large(_)) { 4 } else { 6 });
    Unit { work, commits }
}

/// The first change comes before the first savepoint, so that there is something to go back to.
fn large(random: &mut Random, first: u64, keys: u64) -> Work {
    let (verb, key) = change(random, first, keys);
    let mut steps = vec![LargeStep::Change(verb, key)];
    if random.one_in(3) {
        let (again, _) = change(random, first, keys);
        steps.extend([LargeStep::Savepoint, LargeStep::Change(again, key), LargeStep::RollBack]);
    }
    let count = 1 + random.below(6);
    steps.extend((0..count).map(|_| large_step(random, first, keys)));
    Work::Large(steps)
}

fn large_step(random: &mut Random, first: u64, keys: u64) -> LargeStep {
    match random.below(12) {
        0..=1 => LargeStep::EndPiece,
        2 => LargeStep::Savepoint,
        3 => LargeStep::RollBack,
        4 if random.one_in(2) => LargeStep::Release,
        _ => {
            let (verb, key) = change(random, first, keys);
            LargeStep::Change(verb, key)
        }
    }
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
    use LargeStep::{Change, EndPiece, RollBack, Savepoint};
    use Verb::{Delete, Insert, Update};
    let alone = |change| Unit { work: Work::Single(change), commits: true };
    let together =
        |changes: &[_], commits| Unit { work: Work::Transaction(changes.to_vec()), commits };
    let large = |steps: &[_], commits| Unit { work: Work::Large(steps.to_vec()), commits };
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
        // A large transaction over a range and a whole leaf; others want its keys while it is open and after.
        vec![
            of(vec![large(
                &[Change(Insert, 1), EndPiece, Change(Delete, 2), Change(Update, 6)],
                true,
            )]),
            of(vec![alone((Insert, 1)), alone((Update, 2)), alone((Delete, 6))]),
        ],
        // It writes a key twice, and goes back to between; one that is given up comes first.
        vec![
            of(vec![
                large(&[Change(Insert, 3), Change(Update, 4), EndPiece], false),
                large(&[Change(Update, 4), Savepoint, Change(Delete, 4), EndPiece, RollBack], true),
            ]),
            of(vec![alone((Update, 4)), alone((Insert, 3))]),
        ],
    ]
}
