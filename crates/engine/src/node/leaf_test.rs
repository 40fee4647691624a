use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::memory::{FramePool, LargePages};

fn recorder() -> std::sync::Arc<onrush_waits::Recorder> {
    onrush_waits::Recorder::new(&onrush_waits::Registry::new(), "test")
}

fn leaf(pool: &FramePool) -> LeafRows {
    LeafRows::empty(pool.take(&recorder()).unwrap())
}

/// One step of a random run over a leaf.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    Remove(u8),
    Compact,
    Sort,
    Split,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (any::<u8>(), 0usize..300).prop_map(|(key, bytes)| Step::Put(key, bytes)),
        3 => any::<u8>().prop_map(Step::Remove),
        1 => Just(Step::Compact),
        1 => Just(Step::Sort),
        1 => Just(Step::Split),
    ];
    proptest::collection::vec(step, 1..200)
}

/// The entries as an image gets them, read back.
fn imaged(rows: &LeafRows) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut bytes = [0; LEAF_BYTES];
    let (count, end) = rows.copy_lasting(&mut bytes);
    let mut at = 0;
    let entries = (0..count).map(|_| {
        let (entry, next) = read_entry(&bytes, at).unwrap();
        at = next;
        (entry.key.to_vec(), entry.value.to_vec())
    });
    let entries: Vec<_> = entries.collect();
    assert_eq!(at, end);
    entries
}

fn content(rows: &LeafRows) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entry = |index: u16| {
        let entry = rows.entry(usize::from(index));
        (entry.key.to_vec(), entry.value.to_vec())
    };
    rows.order().into_iter().map(entry).collect()
}

proptest! {
    #[test]
    fn a_leaf_does_what_a_sorted_map_does(steps in steps()) {
        let pool = FramePool::new(3, LargePages::Off, false).unwrap();
        let mut scratch = pool.take(&recorder()).unwrap();
        let mut rows = leaf(&pool);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (lsn, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(key, bytes) => {
                    let (key, value) = (vec![b'k', key], vec![lsn as u8; bytes]);
                    if let Some(index) = rows.find(&key).committed {
                        rows.remove(index);
                        model.remove(&key);
                    }
                    if !rows.fits(Entry::bytes(&key, &value)) {
                        rows.compact(&mut scratch);
                    }
                    if rows.fits(Entry::bytes(&key, &value)) {
                        rows.append(Stamp::committed(Lsn(lsn as u64)), &key, &value);
                        model.insert(key, value);
                    }
                }
                Step::Remove(key) => {
                    let key = vec![b'k', key];
                    let index = rows.find(&key).committed;
                    prop_assert_eq!(index.is_some(), model.remove(&key).is_some());
                    if let Some(index) = index {
                        rows.remove(index);
                    }
                }
                Step::Compact => rows.compact(&mut scratch),
                Step::Sort => {
                    rows.sort();
                    prop_assert!(!rows.is_sortable());
                }
                Step::Split => {
                    let order = rows.order();
                    let half = order.len() / 2;
                    let right = rows.split_off(&order, half, pool.take(&recorder()).unwrap(), &mut scratch);
                    let mut both = content(&rows);
                    both.extend(content(&right));
                    let expected: Vec<_> = model.clone().into_iter().collect();
                    prop_assert_eq!(both, expected);
                    let kept = content(&rows);
                    model = kept.into_iter().collect();
                    pool.give_back(right.into_frame());
                }
            }
            let expected: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(content(&rows), expected.clone());
            prop_assert_eq!(imaged(&rows), expected);
            for (low, high) in [(0, None), (40, Some(41)), (90, Some(200)), (200, Some(90)), (7, None)] {
                let (low, high) = (vec![b'k', low], high.map(|high| vec![b'k', high]));
                let is_between = |index: &u16| {
                    let key = rows.entry(usize::from(*index)).key;
                    key >= low.as_slice() && high.as_deref().is_none_or(|high| key < high)
                };
                let wanted: Vec<u16> = rows.order().into_iter().filter(is_between).collect();
                prop_assert_eq!(rows.order_between(&low, high.as_deref()), wanted);
            }
        }
    }
}

#[test]
fn a_full_leaf_takes_as_many_rows_as_it_says() {
    let pool = FramePool::new(1, LargePages::Off, false).unwrap();
    for value_bytes in [0usize, 1, 30, 135, 500, 4000] {
        let mut rows = leaf(&pool);
        let bytes = ENTRY_HEADER_BYTES + 8 + value_bytes;
        let mut count = 0u64;
        while rows.fits(bytes) {
            rows.append(Stamp::committed(Lsn(1)), &count.to_be_bytes(), &vec![0; value_bytes]);
            count += 1;
        }
        assert_eq!(count, LeafRows::capacity(bytes) as u64, "rows of {bytes} bytes");
        pool.give_back(rows.into_frame());
    }
}

#[test]
fn a_row_and_an_intent_on_its_key_stand_side_by_side() {
    let pool = FramePool::new(1, LargePages::Off, false).unwrap();
    let mut rows = leaf(&pool);
    rows.append(Stamp::committed(Lsn(5)), b"key", b"old");
    rows.append(Stamp::intent(Owner::Small(9), false), b"key", b"new");
    let found = rows.find(b"key");
    assert_eq!((found.committed, found.intent), (Some(0), Some(1)));
    assert_eq!(rows.entry(1).stamp.as_intent(), Some((Owner::Small(9), false)));
    assert_eq!(rows.intents(), 1);
    let mut entries = [0; LEAF_BYTES];
    assert_eq!(
        rows.copy_lasting(&mut entries).0,
        1,
        "an image has no intent that only memory knows"
    );
}

#[test]
fn an_intent_of_a_large_transaction_goes_into_the_image_behind_the_row() {
    let pool = FramePool::new(1, LargePages::Off, false).unwrap();
    let mut rows = leaf(&pool);
    let owner = Owner::Large(LargeOwner { id: LargeOwner::IDS - 1, piece: LargeOwner::PIECES - 1 });
    rows.append(Stamp::intent(owner, true), b"key", b"");
    rows.append(Stamp::committed(Lsn(5)), b"key", b"old");
    assert_eq!(rows.entry(0).stamp.as_intent(), Some((owner, true)));
    assert!(!rows.holds_small_intents());
    let expected = [(b"key".to_vec(), b"old".to_vec()), (b"key".to_vec(), Vec::new())];
    assert_eq!(imaged(&rows), expected);
}

#[test]
fn ascending_appends_keep_the_leaf_sorted() {
    let pool = FramePool::new(1, LargePages::Off, false).unwrap();
    let mut rows = leaf(&pool);
    for key in 0u8..20 {
        assert!(rows.is_above_all(&[key]));
        rows.append(Stamp::committed(Lsn(1)), &[key], b"");
    }
    assert!(!rows.is_above_all(&[7]));
}
