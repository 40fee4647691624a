//! The clients that are there: how each is cancelled, and what others see of it in `pg_stat_activity`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

use onrush::Uuid;
use onrush_query::clock::unix_micros;
use parking_lot::Mutex;
use pgwire::messages::response::TransactionStatus;
use tokio::sync::Notify;

use crate::notifications::{Inbox, Notification};
use crate::rewrite::Rewrites;

/// What is kept of a statement's text, in bytes.
pub(crate) const STATEMENT_BYTES_MAX: usize = 1024;

/// All clients, by number.
pub(crate) struct Clients {
    by_number: Mutex<BTreeMap<i32, Arc<ClientEntry>>>,
    last_number: AtomicI32,
    /// The number that was given to a transaction last, which no earlier run of the server gave to one.
    last_transaction: AtomicI64,
    /// Tables that some of them have written anew just now.
    pub(crate) rewrites: Arc<Rewrites>,
}

/// One client.
pub(crate) struct ClientEntry {
    /// What a cancel request names, and `pg_backend_pid()` gives.
    pub(crate) number: i32,
    /// What a cancel request must know.
    pub(crate) secret: i32,
    pub(crate) user: Arc<str>,
    /// The number of its session among the engine's.
    pub(crate) session: u64,
    /// Where it comes from.
    pub(crate) address: String,
    pub(crate) began_micros: i64,
    signals: Arc<Signals>,
    pub(crate) inbox: Inbox,
    now: Mutex<Activity>,
}

/// What others want of a client.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Set by a cancel request, cleared when a statement begins.
    pub(crate) is_cancelled: AtomicBool,
    is_ended: AtomicBool,
    ended: Notify,
}

impl Signals {
    /// Whether the client is to be sent away.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Waits until the client is to be sent away.
    pub(crate) async fn wait_for_end(&self) {
        let ended = self.ended.notified();
        if !self.is_ended() {
            ended.await;
        }
    }
}

/// What is known of a client when it comes.
pub(crate) struct Newcomer<'a> {
    pub(crate) number: i32,
    pub(crate) user: &'a Arc<str>,
    pub(crate) session: u64,
    pub(crate) address: String,
}

/// What a client is doing, or did last.
#[derive(Clone)]
pub(crate) struct Activity {
    pub(crate) application: Arc<str>,
    pub(crate) state: &'static str,
    pub(crate) state_micros: i64,
    pub(crate) statement: Arc<str>,
    /// When the statement began; none before the first one.
    pub(crate) statement_micros: Option<i64>,
}

/// A client's place in the list, until it is dropped.
pub(crate) struct Presence {
    clients: Arc<Clients>,
    entry: Arc<ClientEntry>,
}

impl Default for Clients {
    fn default() -> Clients {
        Clients {
            by_number: Mutex::default(),
            last_number: AtomicI32::default(),
            last_transaction: AtomicI64::new(unix_micros()),
            rewrites: Arc::default(),
        }
    }
}

impl Clients {
    /// A number for one more transaction.
    pub(crate) fn next_transaction(&self) -> i64 {
        self.last_transaction.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn with(&self, number: i32) -> Option<Arc<ClientEntry>> {
        self.by_number.lock().get(&number).cloned()
    }

    /// A number for one more client.
    pub(crate) fn next_number(&self) -> i32 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A client is there; who wants it to stop will signal.
    pub(crate) fn enter(
        self: &Arc<Clients>,
        newcomer: Newcomer<'_>,
        signals: &Arc<Signals>,
    ) -> Presence {
        let Newcomer { number, user, session, address } = newcomer;
        // Random bits of the system: who does not know them cannot cancel.
        let (secret, _, _, _) = Uuid::new_v4().as_fields();
        let began_micros = unix_micros();
        let now = Activity {
            application: "".into(),
            state: "idle",
            state_micros: began_micros,
            statement: "".into(),
            statement_micros: None,
        };
        let entry = Arc::new(ClientEntry {
            number,
            secret: i32::from_be_bytes(secret.to_be_bytes()),
            user: Arc::clone(user),
            session,
            address,
            began_micros,
            signals: Arc::clone(signals),
            inbox: Inbox::default(),
            now: Mutex::new(now),
        });
        self.by_number.lock().insert(number, Arc::clone(&entry));
        Presence { clients: Arc::clone(self), entry }
    }

    /// Gives up the statement that client `number` runs, if the secret is right.
    pub(crate) fn cancel(&self, number: i32, secret: i32) {
        if let Some(entry) = self.by_number.lock().get(&number)
            && entry.secret == secret
        {
            entry.cancel();
        }
    }

    /// Tells something to all who listen to it.
    pub(crate) fn tell(&self, notification: &Notification) {
        self.all().iter().for_each(|client| client.inbox.give(notification));
    }

    pub(crate) fn all(&self) -> Vec<Arc<ClientEntry>> {
        self.by_number.lock().values().cloned().collect()
    }
}

impl ClientEntry {
    /// Gives up the statement that runs now.
    pub(crate) fn cancel(&self) {
        self.signals.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Sends the client away, in the middle of a statement, too.
    pub(crate) fn end(&self) {
        self.signals.is_ended.store(true, Ordering::Relaxed);
        self.signals.ended.notify_waiters();
    }

    pub(crate) fn activity(&self) -> Activity {
        self.now.lock().clone()
    }
}

impl Presence {
    pub(crate) fn entry(&self) -> &Arc<ClientEntry> {
        &self.entry
    }

    /// What the client calls itself.
    pub(crate) fn is_called(&self, application: &str) {
        self.entry.now.lock().application = application.into();
    }

    /// The client begins a statement with this text, which [`shown`] has made fit.
    /// Returns when that is, in microseconds since 1970.
    pub(crate) fn begins(&self, text: &Arc<str>) -> i64 {
        let mut now = self.entry.now.lock();
        if !Arc::ptr_eq(&now.statement, text) {
            now.statement = Arc::clone(text);
        }
        now.state = "active";
        now.state_micros = unix_micros();
        now.statement_micros = Some(now.state_micros);
        now.state_micros
    }

    /// The client has its answers, and is waited for.
    pub(crate) fn rests(&self, status: TransactionStatus) {
        let state = match status {
            TransactionStatus::Idle => "idle",
            TransactionStatus::Transaction => "idle in transaction",
            TransactionStatus::Error => "idle in transaction (aborted)",
        };
        let mut now = self.entry.now.lock();
        now.state = state;
        now.state_micros = unix_micros();
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.clients.by_number.lock().remove(&self.entry.number);
    }
}

/// What others may see of a statement's text: its beginning, and nothing of one that may have a
/// password in it.
pub(crate) fn shown(text: &str) -> Arc<str> {
    let text = &text[..text.floor_char_boundary(STATEMENT_BYTES_MAX)];
    let word = b"password";
    let has_password =
        text.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    if has_password { "<not shown: there may be a password in it>".into() } else { text.into() }
}
