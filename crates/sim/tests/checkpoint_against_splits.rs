//! A checkpoint against splits, joins, evictions, inserts and transactions: in whatever order their
//! steps fall and whenever the power fails, recovery finds every change below the end of the
//! log, none twice, in leaves that meet. So does who has pinned a checkpoint, while later ones are
//! taken. And each trap, planted, is found.
//!
//! This runs a miniature of the engine under shuttle, which chooses who goes on at every lock and
//! atomic: at random, and by rare changes of priority (PCT). Seeds are fixed, so a run can be had
//! again; `ONRUSH_MODEL_SCALE=100` runs that many times as long. A failure prints the schedule,
//! for `shuttle::replay`. Which file of the engine each step mirrors: `checkpoint_model/mod.rs`.

mod checkpoint_model;
mod shuttled;

use std::sync::Arc;

use checkpoint_model::checkpoint::Checkpointer;
use checkpoint_model::imager::Evictor;
use checkpoint_model::leaf::Entry;
use checkpoint_model::pin::{CheckpointerCell, Pin};
use checkpoint_model::{Engine, Fault, Key, Value};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::{self, JoinHandle};
use shuttled::{Runs, faults_show};

const KEYS: Key = 12;
const CHANGES: u32 = 4;
const TRANSACTIONS: u32 = 2;
const CHECKPOINTS: u32 = 2;
const EVICTIONS: u32 = 2;

const RUNS: Runs = Runs { depth: 4, sound: 6_000, with_fault: 10_000, stack_bytes: Some(0x4_0000) };

#[test]
fn every_change_below_the_end_of_the_log_is_recovered() {
    RUNS.are_sound(|| run(Fault::None));
}

/// One run: all threads, then a quiet checkpoint, so that a leaf which was missed shows.
fn run(fault: Fault) {
    let (engine, directory) = Engine::checkpointed(fault, &[(0, &[0, 2, 4]), (6, &[6, 9])]);
    let threads =
        [
            spawn(&engine, |engine| writer(engine, 0)),
            spawn(&engine, |engine| {
                if thread_rng().r#gen() { writer(engine, 1) } else { remover(engine, 1) }
            }),
            spawn(&engine, |engine| transactions(engine, 2)),
            spawn(&engine, evictor),
        ];
    let cell = Arc::new(CheckpointerCell::new(Checkpointer::new(directory)));
    let background = {
        let (taken, pinned) = (Arc::clone(&cell), Arc::clone(&cell));
        [
            spawn(&engine, move |engine| checkpoints(engine, &taken)),
            spawn(&engine, move |engine| Pin::take(engine, &pinned).check(engine)),
        ]
    };
    for thread in threads.into_iter().chain(background) {
        thread.join().expect("the thread went well");
    }
    let mut checkpointer = cell.lock().expect("no checkpoint panics");
    engine.log.wait_durable(engine.log.tail());
    checkpointer.take(&engine);
    let rows = live_rows(&engine);
    assert_eq!(rows, engine.disk.all_rows(), "the rows in the leaves are those of the log");
}

fn spawn<T: Send + 'static>(
    engine: &Arc<Engine>,
    work: impl FnOnce(&Engine) -> T + Send + 'static,
) -> JoinHandle<T> {
    let engine = Arc::clone(engine);
    thread::spawn(move || work(&engine))
}

/// Puts and removes single rows, some durable.
fn writer(engine: &Engine, place: usize) {
    for number in 0..CHANGES {
        let value = (!thread_rng().gen_ratio(1, 4)).then_some(new_value(place, number));
        let end = engine.write(place, any_key(), value);
        if let Some(end) = end
            && thread_rng().r#gen()
        {
            engine.log.wait_durable(end);
        }
    }
}

/// Removes a run of keys, so that leaves become empty.
fn remover(engine: &Engine, place: usize) {
    let first = any_key();
    for key in first..(first + 6).min(KEYS) {
        engine.write(place, key, None);
    }
}

/// Commits and gives up transactions of two rows.
fn transactions(engine: &Engine, place: usize) {
    for number in 0..TRANSACTIONS {
        let value = new_value(place, number);
        let first = thread_rng().gen_range(0..KEYS - 1);
        let second = thread_rng().gen_range(first + 1..KEYS);
        let removes = thread_rng().gen_ratio(1, 4);
        let writes = [(first, Some(value)), (second, (!removes).then_some(value))];
        if thread_rng().gen_ratio(1, 4) {
            engine.abort(place, &writes);
        } else {
            let end = engine.commit(place, &writes);
            engine.log.wait_durable(end);
        }
    }
}

fn evictor(engine: &Engine) {
    let mut evictor = Evictor::default();
    for _ in 0..EVICTIONS {
        evictor.run(engine);
    }
}

fn checkpoints(engine: &Engine, cell: &CheckpointerCell) {
    for _ in 0..CHECKPOINTS {
        cell.lock().expect("no checkpoint panics").take(engine);
    }
}

fn any_key() -> Key {
    thread_rng().gen_range(0..KEYS)
}

fn new_value(place: usize, number: u32) -> Value {
    Value::try_from(place + 1).expect("small") * 1000 + number
}

/// What a scan finds, now that nothing else runs; the leaves meet.
fn live_rows(engine: &Engine) -> Vec<Entry> {
    let mut rows = Vec::new();
    let mut at = 0;
    loop {
        let (id, leaf) = engine.latch_exclusive(at);
        assert_eq!(leaf.low, at, "the leaves meet");
        if leaf.rows.is_none() {
            drop(leaf);
            engine.load_leaf(id);
            continue;
        }
        let mut sorted: Vec<Entry> = leaf.rows.iter().flatten().copied().collect();
        sorted.sort_unstable_by_key(|entry| entry.key);
        assert!(sorted.iter().all(|entry| leaf.covers(entry.key)), "rows lie within the fences");
        rows.extend(sorted);
        match leaf.high {
            Some(high) => at = high,
            None => return rows,
        }
    }
}

faults_show! {
    c_after_the_epoch_is_found: CAfterEpoch,
    e_before_the_walk_is_found: EBeforeWalk,
    a_log_that_is_not_durable_to_e_is_found: LogNotToE,
    slots_freed_before_the_superblock_are_found: FreeBeforeSuperblock,
    data_that_is_not_synced_is_found: NoDataSync,
    a_walk_that_does_not_wait_for_images_is_found: WalkNoWait,
    a_sibling_of_another_epoch_is_found: SplitNoEpoch,
    a_sibling_without_the_shared_image_is_found: SplitNoShare,
    a_clean_leaf_with_an_intent_is_found: CleanWithIntent,
    an_intent_in_an_image_is_found: IntentImaged,
    a_shared_image_that_is_not_trimmed_is_found: NoTrim,
    a_log_recycled_to_e_is_found: RecycleToE,
    a_dirty_leaf_on_no_list_is_found: DirtyNoList,
    a_segment_that_is_not_rewritten_is_found: SegmentNotRewritten,
    lists_kept_by_parity_are_found: ParityLists,
    rows_dropped_before_they_are_written_are_found: DropUnwritten,
    a_drain_that_takes_the_lists_once_is_found: ListsTakenOnce,
    a_join_that_keeps_a_wider_image_is_found: MergeKeepsImage,
    a_join_that_is_imaged_late_is_found: MergeImagedLate,
    a_join_of_a_leaf_that_the_inner_nodes_do_not_know_is_found: JoinUnknownLeaf,
    a_group_reserved_before_its_intents_stand_is_found: GroupReservedFirst,
    a_slot_freed_while_it_is_written_is_found: WriterKeepsNoSlot,
    a_walk_by_the_fences_of_images_is_found: FencesOfImage,
    a_pin_that_keeps_no_slots_is_found: PinKeepsNoSlots,
    a_pin_that_holds_no_log_is_found: PinHoldsNoLog,
}
