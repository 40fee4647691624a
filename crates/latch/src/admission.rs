//! Step 2 of an insert: a permit inside the engine. About as many threads as processors are inside
//! at a time.
//!
//! A thread that loses its processor inside holds up everyone's durability; with no more threads
//! inside than processors that seldom happens. A shared counter per insert would cost more than the
//! insert, so permits are *owned*: a session that comes back finds its permit as it left it, and
//! enters by one compare-and-swap on a line that nobody else wants. Ownership changes in three
//! ways:
//!
//! - *stolen*: a permit whose owner stays outside is taken by whoever needs one;
//! - *given up*: a session about to wait for something long (a sync, another transaction) releases
//!   its permit;
//! - *handed over*: if all are in use, newcomers queue. The first in the queue looks for an owner
//!   who stays outside, as soon as it is the first; if there is none it asks, about every
//!   millisecond, and for each request one session that leaves makes the first in the queue the
//!   owner of its permit.
//!
//! Invariants
//! 1. While the owner is inside, only it writes the word of the permit (or the first of the queue
//!    becomes the owner by its hand).
//! 2. The word of a permit with nobody inside changes by compare-and-swap only. So a permit has at
//!    most one ticket inside.
//! 3. What a thread wrote while inside is seen by the next one inside the same permit (release, then
//!    acquire).
//! 4. Whoever queues gets a permit: by a session that leaves, releases or ends; or, if an owner
//!    stays away without releasing, by looking again every millisecond.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::{Duration, Instant};

use onrush_waits::{Counter, Recorder, Spin, Spun, Wait};

use crate::cpus::available_cpus;
use crate::permit_word::{Owned, PermitWord, is_inside};
use crate::queue::{Grant, Queue, Waiter};
use crate::sync::{self, AtomicU64, AtomicUsize, Parker, fence};

/// How often the first in the queue looks for a permit and asks for one.
/// The model checker has no time: there it asks at once.
const REQUEST_INTERVAL: Duration =
    if cfg!(loom) { Duration::ZERO } else { Duration::from_millis(1) };
/// With more than so many in the queue, more than one permit is asked for at a time.
const QUEUE_PER_REQUEST: usize = 8;
/// Whoever waited for a permit keeps it for so long at least, or each request would go to the newest
/// owner.
const TENURE_MIN: Duration = REQUEST_INTERVAL;
/// Its time is looked up at one in so many entries. A power of two.
const ENTRIES_PER_LOOK: u64 = if cfg!(loom) { 1 } else { 32 };
/// Between the two looks that tell an idle owner from a busy one: about 2 us, longer than most
/// inserts.
const PAUSES_BETWEEN_LOOKS: u32 = 200;

/// One permit on two cache lines of its own (the neighbour line is prefetched).
#[derive(Debug)]
#[repr(align(128))]
struct Permit {
    word: PermitWord,
}

#[derive(Debug)]
struct Shared {
    permits: Box<[Permit]>,
    background_permits: usize,
    next_ticket: AtomicU64,
    requests: AtomicUsize, // permits asked for by the first in the queue; a hint, only ever too late
    queue: Queue,
}

/// Limits how many sessions are inside the engine at a time. Clones are handles to the same permits.
#[derive(Clone, Debug)]
pub struct Admission {
    shared: Arc<Shared>,
}

/// A session's right to ask for a permit; one a session. It remembers where the session was last.
#[derive(Debug)]
pub struct Ticket {
    shared: Arc<Shared>,
    id: u64,             // from 1
    permit: usize,       // where it was last, or where to look first
    left: Option<Owned>, // what it left there, if anything; while it is inside, what it put there
    since: Instant,      // when it last stole a permit or was given one
    waiter: Arc<Waiter>,
}

/// A permit inside, until dropped.
#[must_use = "the permit is left as soon as this is dropped"]
#[derive(Debug)]
pub struct Entered<'a> {
    shared: &'a Shared,
    ticket: &'a mut Ticket,
}

impl Admission {
    /// So many permits for sessions (at least one), and so many for background threads.
    pub fn new(session_permits: usize, background_permits: usize) -> Self {
        let nobodys = || Permit { word: PermitWord::new() };
        let shared = Shared {
            permits: std::iter::repeat_with(nobodys).take(session_permits.max(1)).collect(),
            background_permits,
            next_ticket: AtomicU64::new(1),
            requests: AtomicUsize::new(0),
            queue: Queue::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// One permit more than there are processors: one session may lose its processor inside and
    /// nobody stands idle.
    pub fn for_this_machine(background_permits: usize) -> Self {
        Self::new(available_cpus() + 1, background_permits)
    }

    /// All permits, those of background threads included: the length of an array with an entry for
    /// each.
    pub fn permits(&self) -> usize {
        self.session_permits() + self.shared.background_permits
    }

    /// Permits for sessions: 0 up to this.
    pub fn session_permits(&self) -> usize {
        self.shared.permits.len()
    }

    /// The permit of background thread `index`, which is its own and never waited for.
    ///
    /// # Panics
    /// If there are not so many background permits.
    pub fn background_permit(&self, index: usize) -> usize {
        let permits = self.shared.background_permits;
        assert!(index < permits, "background permit {index} of {permits}");
        self.session_permits() + index
    }

    /// Whether no session is inside right now. Whoever closes something first says so (sequentially
    /// consistent), then waits for this: a session that enters later looks after it has entered.
    pub fn is_empty(&self) -> bool {
        fence(SeqCst);
        self.shared.permits.iter().all(|permit| !is_inside(permit.word.load(SeqCst)))
    }

    /// Returns when every session that is inside now has left, or has left and come back. Whoever
    /// changes what sessions look at inside first does so (sequentially consistent), then waits for
    /// this: a session that enters later sees the change.
    pub fn wait_until_left(&self) {
        fence(SeqCst);
        for permit in &self.shared.permits {
            let word = permit.word.load(SeqCst);
            while is_inside(word) && permit.word.load(SeqCst) == word {
                sync::thread::yield_now();
            }
        }
    }

    /// A ticket for a new session.
    pub fn ticket(&self) -> Ticket {
        let id = self.shared.next_ticket.fetch_add(1, Relaxed);
        let permit = usize::try_from(id).unwrap_or(0) % self.session_permits();
        let shared = Arc::clone(&self.shared);
        Ticket { shared, id, permit, left: None, since: Instant::now(), waiter: Waiter::new(id) }
    }

    /// Goes inside, after waiting for a permit if all are in use. `ticket` is one of this
    /// admission's own.
    #[inline]
    pub fn enter<'a>(&'a self, ticket: &'a mut Ticket, recorder: &Recorder) -> Entered<'a> {
        let shared = &*self.shared;
        debug_assert!(std::ptr::eq(shared, &*ticket.shared), "a ticket of another admission");
        if !shared.reenter(ticket) {
            shared.find_permit(ticket, recorder);
        }
        Entered { shared, ticket }
    }
}

impl Shared {
    /// Enters the permit where the ticket was last, if it is as it was left.
    #[inline]
    fn reenter(&self, ticket: &mut Ticket) -> bool {
        let inside = match ticket.left {
            Some(left) => left.next_entry(),
            None => Owned::first_entry(ticket.id),
        };
        self.take(ticket, ticket.permit, ticket.left, inside)
    }

    /// Makes `permit` the ticket's, with the ticket inside, if its word still is `before`.
    #[inline]
    fn take(
        &self,
        ticket: &mut Ticket,
        permit: usize,
        before: Option<Owned>,
        inside: Owned,
    ) -> bool {
        debug_assert!(!is_inside(before), "nobody is taken out of a permit");
        let taken = self.permits[permit].word.replace(before, Some(inside), Acquire);
        if taken {
            ticket.permit = permit;
            ticket.left = Some(inside);
        }
        taken
    }

    /// The slow path: the ticket owns no permit.
    #[cold]
    fn find_permit(&self, ticket: &mut Ticket, recorder: &Recorder) {
        recorder.spun(Spin::AdmissionPermit, Spun { spins: 1, ..Spun::default() });
        if self.take_free(ticket) {
            return;
        }
        let stolen = self.queue.is_empty() && self.take_from_absent(ticket, recorder);
        if !stolen {
            self.wait_for_permit(ticket, recorder);
        }
        ticket.since = Instant::now();
    }

    /// Takes a permit that is nobody's, even before those in the queue: they have to wake up first,
    /// and meanwhile the permit would stand empty. They do not starve, because nobody overtakes a
    /// request.
    fn take_free(&self, ticket: &mut Ticket) -> bool {
        self.looks(ticket.permit).any(|(permit, word)| {
            word.is_none() && self.take(ticket, permit, None, Owned::first_entry(ticket.id))
        })
    }

    /// Takes a permit whose owner stays outside.
    fn take_from_absent(&self, ticket: &mut Ticket, recorder: &Recorder) -> bool {
        let first_look: Vec<Option<Owned>> =
            self.looks(ticket.permit).map(|(_, word)| word).collect();
        if first_look.iter().all(|word| is_inside(*word)) {
            return false;
        }
        sync::pause(PAUSES_BETWEEN_LOOKS);
        self.steal_unchanged(ticket, &first_look, recorder)
    }

    /// Takes a permit whose owner was outside at the look before, and has not moved since.
    fn steal_unchanged(
        &self,
        ticket: &mut Ticket,
        before: &[Option<Owned>],
        recorder: &Recorder,
    ) -> bool {
        for ((permit, word), before) in self.looks(ticket.permit).zip(before) {
            let idle = word == *before && !is_inside(word);
            if idle && self.take(ticket, permit, word, Owned::first_entry(ticket.id)) {
                recorder.count(Counter::AdmissionSteals, 1);
                return true;
            }
        }
        false
    }

    /// Every permit with its word, from `start` round to it again: newcomers should not all go for
    /// the same one.
    fn looks(&self, start: usize) -> impl Iterator<Item = (usize, Option<Owned>)> + '_ {
        let count = self.permits.len();
        (0..count).map(move |step| {
            let permit = (start + step) % count;
            (permit, self.permits[permit].word.load(Relaxed))
        })
    }

    fn wait_for_permit(&self, ticket: &mut Ticket, recorder: &Recorder) {
        let mut waiting = recorder.wait(Wait::Admission);
        let waiter = Arc::clone(&ticket.waiter);
        let parker = Parker::of_this_thread();
        self.queue.push(&waiter, &parker);
        let mut asked = Instant::now();
        loop {
            if let Some(Grant { permit, when }) = waiter.take_grant() {
                ticket.permit = permit;
                ticket.left = Some(Owned::first_entry(ticket.id));
                waiting.signalled_at(when);
                return;
            }
            if !self.queue.is_first(&waiter) {
                parker.park(None);
                asked = Instant::now(); // the first's time begins when it becomes the first
                continue;
            }
            let first_look: Vec<Option<Owned>> = self.looks(0).map(|(_, word)| word).collect();
            sync::pause(PAUSES_BETWEEN_LOOKS);
            if self.help_first(&first_look, recorder) {
                continue; // a permit was found for the first in the queue, which most likely is us
            }
            if asked.elapsed() >= REQUEST_INTERVAL {
                asked = Instant::now();
                let requests = self.queue.len() / QUEUE_PER_REQUEST + 1;
                self.requests.store(requests.min(self.permits.len()), Relaxed);
            }
            parker.park(Some(REQUEST_INTERVAL));
        }
    }

    /// Gives the first in the queue a permit that is nobody's, or whose owner was outside at the look
    /// before, and has not moved since.
    fn help_first(&self, before: &[Option<Owned>], recorder: &Recorder) -> bool {
        for ((permit, word), before) in self.looks(0).zip(before) {
            let idle = !is_inside(word) && word == *before;
            if (word.is_none() || idle) && self.grant(permit, word) {
                recorder.count(Counter::AdmissionSteals, u64::from(word.is_some()));
                return true;
            }
        }
        false
    }

    /// Makes the first in the queue the owner of a permit, and inside, if its word still is
    /// `before`.
    fn grant(&self, permit: usize, before: Option<Owned>) -> bool {
        self.queue.grant_first(|ticket_id| {
            let inside = Owned::first_entry(ticket_id);
            // What the one before wrote inside comes to us by Acquire, and from us to the grantee
            // with the grant.
            self.permits[permit].word.replace(before, Some(inside), Acquire).then_some(permit)
        })
    }

    /// Somebody in the queue has asked for a permit: hands over the ticket's own, or leaves if
    /// nobody is there any more.
    #[cold]
    fn hand_over(&self, ticket: &mut Ticket) {
        let entries = ticket.left.map_or(0, Owned::entries);
        let look = entries.is_multiple_of(ENTRIES_PER_LOOK);
        if !look || ticket.since.elapsed() < TENURE_MIN {
            return self.leave(ticket);
        }
        let requests = self.requests.load(Relaxed);
        let answered = requests.checked_sub(1).is_some_and(|rest| {
            self.requests.compare_exchange(requests, rest, Relaxed, Relaxed).is_ok()
        });
        if !answered {
            return self.leave(ticket); // another one has answered it
        }
        let permit = ticket.permit;
        let granted = self.queue.grant_first(|ticket_id| {
            let inside = Owned::first_entry(ticket_id);
            self.permits[permit].word.store(Some(inside), Release);
            Some(permit)
        });
        if granted {
            ticket.left = None;
        } else {
            self.leave(ticket);
        }
    }

    #[inline]
    fn leave(&self, ticket: &mut Ticket) {
        ticket.left = ticket.left.and_then(Owned::outside);
        self.permits[ticket.permit].word.store(ticket.left, Release);
    }

    /// Makes a permit nobody's, if its word still is `before`, and lets the first in the queue know.
    fn release(&self, permit: usize, before: Owned) {
        if !self.permits[permit].word.replace(Some(before), None, Release) {
            return; // stolen already
        }
        // Pairs with the fence of those who queue: they see our permit free, or we see them.
        fence(SeqCst);
        if !self.queue.is_empty() {
            self.queue.wake_first();
        }
    }
}

impl Entered<'_> {
    /// Which permit: below [`Admission::session_permits`], and nobody else's meanwhile.
    #[inline]
    pub fn permit(&self) -> usize {
        self.ticket.permit
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.shared.requests.load(Relaxed) == 0 {
            self.shared.leave(self.ticket);
        } else {
            self.shared.hand_over(self.ticket);
        }
    }
}

impl Ticket {
    /// Gives up the permit that the session has left: to be called before it waits for something
    /// long, such as a sync, another transaction or its client. Else those in the queue find out
    /// only by looking, which takes them milliseconds. Entering again costs no more than before if
    /// nobody has taken the permit meanwhile.
    pub fn release(&mut self) {
        if let Some(before) = self.left.take() {
            self.shared.release(self.permit, before);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.release();
    }
}
