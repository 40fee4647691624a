//! Commit groups: who writes the next blocks, and who is woken when they are durable.
//!
//! Waiters join the open group. Whoever joins while nobody leads becomes the leader: it closes the
//! group, writes, and wakes exactly that group, with one wake-up call. Those who came meanwhile
//! form the next group.
//!
//! The state is one word, so that every change of it is a read-modify-write and none can be missed:
//!
//! | bits  | meaning                                                                |
//! |-------|------------------------------------------------------------------------|
//! | 32..  | number of the open group                                               |
//! | 31    | LEADER: somebody leads, and will close the open group                  |
//! | 0..31 | how many threads have joined the open group                            |
//!
//! Each group sleeps on the word of its number modulo 4: (last group that is over) * 2 + (lead is
//! free: bit 0).
//!
//! Invariants
//! 1. Nobody sleeps in the open group unless LEADER is set, or a wake-up for one of them is on its
//!    way.
//! 2. The leader drops LEADER before it wakes, then hands the lead to one of the open group, if
//!    there is any.
//! 3. A thread that was handed the lead and does not want it (its commit is durable) passes the
//!    wake-up on.
//! 4. A group is closed before the prefix is computed; so whoever is in it and had completed its
//!    record is covered.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, AtomicU64, FutexWord};

const LEADER: u64 = 1 << 31;
const COUNT: u64 = LEADER - 1;
const GROUP_SHIFT: u32 = 32;
const WORDS: u32 = 4; // the group that is written, the open one, and two for late sleepers
const LEAD_IS_FREE: u32 = 1;

/// All that commit waits share.
#[derive(Debug)]
pub(crate) struct CommitGroups {
    state: CachePadded<AtomicU64>, // see the table; changed by anyone, by read-modify-write only
    words: [CachePadded<FutexWord>; WORDS as usize], // stored by leaders
    /// When the last group of each word was over, as its leader says; only a statistic.
    over_nanos: [std::sync::atomic::AtomicU64; WORDS as usize],
    expected: CachePadded<AtomicU32>, // who was there in the last round; stored by leaders
}

/// Membership in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    group: u32,
}

/// What a thread is after it joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// The leader: it must call `close` and then `finish`.
    Lead,
    /// One of those who sleep until the group is over.
    Follow(Ticket),
}

/// A group that takes nobody more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    group: u32,
    /// How many joined it, the leader included if it joined.
    pub(crate) members: u32,
}

/// Why a follower goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Its group is over: look at `durable`.
    Over,
    /// It leads now: it must call `close` and then `finish`.
    Lead,
    /// `is_done` said so; the group has been left.
    Done,
}

fn group_of(state: u64) -> u32 {
    (state >> GROUP_SHIFT) as u32 // the upper half, exactly
}

fn members_of(state: u64) -> u32 {
    (state & COUNT) as u32 // 31 bits
}

impl CommitGroups {
    pub(crate) fn new() -> Self {
        Self {
            state: CachePadded::new(AtomicU64::new(u64::from(WORDS) << GROUP_SHIFT)),
            words: std::array::from_fn(|index| {
                CachePadded::new(FutexWord::new(u32::try_from(index).unwrap_or(0) << 1))
            }),
            over_nanos: std::array::from_fn(|_| std::sync::atomic::AtomicU64::new(0)),
            expected: CachePadded::new(AtomicU32::new(0)),
        }
    }

    fn word(&self, group: u32) -> &FutexWord {
        &self.words[(group % WORDS) as usize]
    }

    /// Changes the state by `change` until it holds or `change` says no; returns the state before.
    fn update(&self, change: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        self.state.fetch_update(AcqRel, Acquire, change)
    }

    /// Joins the open group, and takes the lead if nobody has it.
    pub(crate) fn join(&self) -> Joined {
        let before = self.update(|state| Some((state + 1) | LEADER)).unwrap_or_else(|state| state);
        if before & LEADER == 0 {
            return Joined::Lead;
        }
        Joined::Follow(Ticket { group: group_of(before) })
    }

    /// Takes the lead without joining, if nobody has it.
    pub(crate) fn try_lead(&self) -> bool {
        self.update(|state| (state & LEADER == 0).then_some(state | LEADER)).is_ok()
    }

    /// How many have joined the open group.
    pub(crate) fn open_members(&self) -> u32 {
        members_of(self.state.load(Relaxed))
    }

    /// How many there were in and around the last round: about as many will come back.
    pub(crate) fn expected_members(&self) -> u32 {
        self.expected.load(Relaxed)
    }

    /// Whether nobody leads.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Relaxed) & LEADER == 0
    }

    /// For the leader: from here on others join the next group.
    pub(crate) fn close(&self) -> Closed {
        let next =
            |state: u64| (u64::from(group_of(state).wrapping_add(1)) << GROUP_SHIFT) | LEADER;
        let before = self.update(|state| Some(next(state))).unwrap_or_else(|state| state);
        debug_assert_ne!(before & LEADER, 0, "only the leader closes a group");
        Closed { group: group_of(before), members: members_of(before) }
    }

    /// For the leader, when the outcome is known: gives the lead away and wakes `closed`.
    pub(crate) fn finish(&self, closed: Closed, leader_joined: bool, now_nanos: u64) {
        self.over_nanos[(closed.group % WORDS) as usize].store(now_nanos, Relaxed);
        let word = self.word(closed.group);
        // As leader still, or a later leader might overtake it. A swap, so that it has its order
        // among the offers.
        word.value.swap(closed.group << 1, AcqRel);
        let before = self.state.fetch_and(!LEADER, AcqRel); // before any wake: invariant 2
        let open = members_of(before);
        self.expected.store(closed.members.saturating_add(open), Relaxed);
        if closed.members > u32::from(leader_joined) {
            word.wake_all();
        }
        if open > 0 {
            self.offer_lead(group_of(before));
        }
    }

    fn offer_lead(&self, group: u32) {
        let word = self.word(group);
        // The value changes first, or a member on its way to sleep would miss the wake-up. A word
        // that already belongs to a later group is left alone: then somebody has led this one.
        let before = word.value.load(Acquire);
        if !is_over(before, group) {
            let _ = word.value.compare_exchange(before, before | LEAD_IS_FREE, AcqRel, Acquire);
        }
        word.wake_one();
    }

    /// When the group was over, as its leader said; later if others have used its word since.
    pub(crate) fn over_nanos(&self, ticket: Ticket) -> u64 {
        self.over_nanos[(ticket.group % WORDS) as usize].load(Relaxed)
    }

    /// For a follower: waits until its group is over, or it leads, or `is_done` when something has
    /// changed. Before each sleep `poll` may look for a change in its own way; it says whether it
    /// has seen one.
    pub(crate) fn wait(
        &self,
        ticket: Ticket,
        is_done: impl Fn() -> bool,
        poll: impl Fn(&dyn Fn() -> bool) -> bool,
    ) -> Woken {
        let word = self.word(ticket.group);
        loop {
            let seen = word.value.load(Acquire);
            if is_over(seen, ticket.group) {
                return Woken::Over;
            }
            if is_done() {
                self.leave(ticket);
                return Woken::Done;
            }
            let lead = |state: u64| {
                (state & LEADER == 0 && group_of(state) == ticket.group).then_some(state | LEADER)
            };
            if self.update(lead).is_ok() {
                return Woken::Lead;
            }
            if !poll(&|| word.value.load(Acquire) != seen) {
                word.sleep_while(seen);
            }
        }
    }

    /// Leaves a group that may be open still; passes an unused offer to lead on (invariant 3).
    fn leave(&self, ticket: Ticket) {
        let is_open = |state: u64| group_of(state) == ticket.group;
        let before = self.update(|state| is_open(state).then(|| state - 1));
        if before.is_ok_and(|state| state & LEADER == 0 && members_of(state) > 1) {
            self.offer_lead(ticket.group);
        }
    }
}

/// Whether the word of a group says that it is over. Numbers wrap around.
fn is_over(word: u32, group: u32) -> bool {
    // Group numbers in words have 31 bits.
    (word & !LEAD_IS_FREE).wrapping_sub(group << 1) < 1 << 31
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_leads_and_the_next_follow() {
        let groups = CommitGroups::new();
        assert_eq!(groups.join(), Joined::Lead);
        let Joined::Follow(ticket) = groups.join() else { panic!("two leaders") };
        let closed = groups.close();
        assert_eq!(closed.members, 2);
        assert!(matches!(groups.join(), Joined::Follow(next) if next != ticket));
        groups.finish(closed, true, 0);
        assert_eq!(groups.wait(ticket, || false, |_| false), Woken::Over);
        assert_eq!(groups.expected_members(), 3);
    }

    #[test]
    fn a_member_of_the_open_group_is_handed_the_lead() {
        let groups = CommitGroups::new();
        assert_eq!(groups.join(), Joined::Lead);
        let closed = groups.close();
        let Joined::Follow(ticket) = groups.join() else { panic!("two leaders") };
        groups.finish(closed, true, 0);
        assert_eq!(groups.wait(ticket, || false, |_| false), Woken::Lead);
    }

    #[test]
    fn whoever_is_done_leaves_and_the_next_one_leads() {
        let groups = CommitGroups::new();
        assert_eq!(groups.join(), Joined::Lead);
        let closed = groups.close();
        let (Joined::Follow(first), Joined::Follow(second)) = (groups.join(), groups.join()) else {
            panic!("two leaders")
        };
        groups.finish(closed, true, 0);
        assert_eq!(groups.wait(first, || true, |_| false), Woken::Done);
        assert_eq!(groups.open_members(), 1);
        assert_eq!(groups.wait(second, || false, |_| false), Woken::Lead);
    }

    #[test]
    fn group_numbers_wrap_around() {
        assert!(is_over(0, 0) && is_over(2, 1) && is_over(3, 1) && is_over(2, u32::MAX >> 1));
        assert!(!is_over(0, 1) && !is_over(1, 1) && !is_over(u32::MAX - 1, 0));
    }
}

/// Run with `RUSTFLAGS="--cfg loom" cargo test -p onrush-log --release --lib loom`.
#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::atomic::Ordering::Release;

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Model {
        groups: CommitGroups,
        published: AtomicU32,
        durable: AtomicU32,
        /// Whether waits look once more before they sleep.
        polls: bool,
    }

    impl Model {
        fn commit(&self) {
            let end = self.published.fetch_add(1, AcqRel) + 1;
            self.wait(end);
        }

        fn wait(&self, end: u32) {
            while self.durable.load(Acquire) < end {
                let leads = match self.groups.join() {
                    Joined::Lead => true,
                    Joined::Follow(ticket) => {
                        let is_done = || self.durable.load(Acquire) >= end;
                        let poll = |is_changed: &dyn Fn() -> bool| {
                            self.polls && {
                                thread::yield_now();
                                is_changed()
                            }
                        };
                        self.groups.wait(ticket, is_done, poll) == Woken::Lead
                    }
                };
                if leads {
                    self.lead();
                }
            }
        }

        fn lead(&self) {
            let closed = self.groups.close();
            self.durable.store(self.published.load(Acquire), Release);
            self.groups.finish(closed, true, 0);
        }
    }

    fn every_commit_returns(threads: u32, commits: u32, preemptions: usize, polls: bool) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(move || {
            let model = Arc::new(Model {
                groups: CommitGroups::new(),
                published: AtomicU32::new(0),
                durable: AtomicU32::new(0),
                polls,
            });
            let others: Vec<_> = (1..threads)
                .map(|_| {
                    let model = Arc::clone(&model);
                    thread::spawn(move || (0..commits).for_each(|_| model.commit()))
                })
                .collect();
            (0..commits).for_each(|_| model.commit());
            others.into_iter().for_each(|thread| thread.join().expect("committer"));
            assert_eq!(model.durable.load(Relaxed), threads * commits);
            assert_eq!(model.groups.open_members(), 0);
            assert!(model.groups.is_idle());
        });
    }

    #[test]
    fn loom_no_wake_up_is_lost_by_two() {
        every_commit_returns(2, 2, 3, false);
    }

    #[test]
    fn loom_no_wake_up_is_lost_by_three() {
        every_commit_returns(3, 1, 2, false);
    }

    #[test]
    fn loom_no_wake_up_is_lost_by_those_who_poll() {
        every_commit_returns(2, 2, 3, true);
        every_commit_returns(3, 1, 2, true);
    }
}
