//! LISTEN, UNLISTEN and NOTIFY: what one client tells others.
//!
//! Invariants
//! 1. What a transaction says is said when it is committed, and nothing of it where it is not.
//! 2. A notification is given to its listeners once the commit that it belongs to is durable, and told to a client
//!    only between its transactions, in the order in which they were given.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::{Result, SqlError, state};

/// Longest name of a channel, in bytes.
const CHANNEL_BYTES_MAX: usize = 63;
/// Longest payload, in bytes.
const PAYLOAD_BYTES_MAX: usize = 7999;
/// What may wait for one client that does not take it, in bytes.
const INBOX_BYTES_MAX: usize = 8 << 20;
/// What a transaction may say, in bytes.
const SAID_BYTES_MAX: usize = 8 << 20;
/// What a notification takes beside its texts, about.
const NOTIFICATION_BYTES: usize = 64;

/// What is told to those who listen to a channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Notification {
    pub(crate) channel: Arc<str>,
    pub(crate) payload: Arc<str>,
    /// The number of the client that tells it.
    pub(crate) sender: i32,
}

impl Notification {
    fn bytes(&self) -> usize {
        NOTIFICATION_BYTES + self.channel.len() + self.payload.len()
    }
}

/// What a client listens to, and what was told and not sent to it yet.
#[derive(Default)]
pub(crate) struct Inbox {
    content: Mutex<Content>,
    arrived: Notify,
}

#[derive(Default)]
struct Content {
    channels: BTreeSet<String>,
    notifications: VecDeque<Notification>,
    bytes: usize,
}

impl Inbox {
    /// Gives the client a notification, if it listens to the channel.
    pub(crate) fn give(&self, notification: &Notification) {
        let mut content = self.content.lock();
        if content.channels.contains(&*notification.channel) {
            content.bytes += notification.bytes();
            content.notifications.push_back(notification.clone());
            drop(content);
            self.arrived.notify_one();
        }
    }

    /// Whether the client has long not taken what it listens to.
    pub(crate) fn is_full(&self, channel: &str) -> bool {
        let content = self.content.lock();
        content.bytes >= INBOX_BYTES_MAX && content.channels.contains(channel)
    }

    /// Everything that has come.
    pub(crate) fn take(&self) -> VecDeque<Notification> {
        let mut content = self.content.lock();
        content.bytes = 0;
        std::mem::take(&mut content.notifications)
    }

    /// Waits until something has come.
    pub(crate) async fn wait(&self) {
        while self.content.lock().notifications.is_empty() {
            self.arrived.notified().await;
        }
    }

    fn change(&self, change: Change) {
        let mut content = self.content.lock();
        match change {
            Change::Listen(channel) => {
                content.channels.insert(channel);
            }
            Change::Unlisten(Some(channel)) => {
                content.channels.remove(&channel);
            }
            Change::Unlisten(None) => content.channels.clear(),
        }
    }
}

/// What changes of the channels that a client listens to.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Listen(String),
    /// None: to all.
    Unlisten(Option<String>),
}

/// What a client has said in its transaction, and what was committed of it and not given to others yet.
#[derive(Default)]
pub(crate) struct Said {
    said: Mutex<Words>,
    committed: Mutex<Vec<Notification>>,
}

/// What is said in one transaction.
#[derive(Default)]
struct Words {
    in_order: Vec<Word>,
    /// The notifications among them.
    notifications: HashSet<Notification>,
    bytes: usize,
}

enum Word {
    Change(Change),
    Notify(Notification),
}

impl Words {
    fn push(&mut self, word: Word) -> Result<()> {
        let bytes = match &word {
            Word::Notify(notification) if self.notifications.contains(notification) => {
                return Ok(());
            }
            Word::Notify(notification) => notification.bytes(),
            Word::Change(_) => NOTIFICATION_BYTES,
        };
        if self.bytes + bytes > SAID_BYTES_MAX {
            let message = "too many notifications in one transaction";
            return Err(SqlError::new(state::LIMIT_EXCEEDED, message)
                .with_hint("COMMIT more often: up to 8 MiB are kept for the commit."));
        }
        self.bytes += bytes;
        if let Word::Notify(notification) = &word {
            self.notifications.insert(notification.clone());
        }
        self.in_order.push(word);
        Ok(())
    }

    fn go_back(&mut self, length: usize) {
        for word in self.in_order.drain(length.min(self.in_order.len())..) {
            self.bytes -= match &word {
                Word::Notify(notification) => {
                    self.notifications.remove(notification);
                    notification.bytes()
                }
                Word::Change(_) => NOTIFICATION_BYTES,
            };
        }
    }
}

impl Said {
    pub(crate) fn change(&self, change: Change) -> Result<()> {
        if let Change::Listen(channel) = &change {
            check_channel(channel)?;
        }
        self.said.lock().push(Word::Change(change))
    }

    /// The same is told once in a transaction, however often it is said.
    pub(crate) fn notify(&self, notification: Notification) -> Result<()> {
        check_channel(&notification.channel)?;
        if notification.payload.len() > PAYLOAD_BYTES_MAX {
            return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, "payload string too long"));
        }
        self.said.lock().push(Word::Notify(notification))
    }

    /// How much was said, for [`go_back`](Self::go_back).
    pub(crate) fn length(&self) -> usize {
        self.said.lock().in_order.len()
    }

    /// What was said since is not said.
    pub(crate) fn go_back(&self, length: usize) {
        self.said.lock().go_back(length);
    }

    /// The transaction is committed, though perhaps not durable yet.
    pub(crate) fn commit(&self, inbox: &Inbox) {
        for word in std::mem::take(&mut *self.said.lock()).in_order {
            match word {
                Word::Change(change) => inbox.change(change),
                Word::Notify(notification) => self.committed.lock().push(notification),
            }
        }
    }

    /// What was committed and is to be given to others, now that it is durable.
    pub(crate) fn take_committed(&self) -> Vec<Notification> {
        std::mem::take(&mut *self.committed.lock())
    }
}

fn check_channel(channel: &str) -> Result<()> {
    let message = match channel.len() {
        0 => "channel name cannot be empty",
        1..=CHANNEL_BYTES_MAX => return Ok(()),
        _ => "channel name too long",
    };
    Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message))
}
