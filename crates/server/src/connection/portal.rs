//! Portals: statements with their parameters, on their way.
//!
//! Most clients use the one without a name for everything, again and again, so it has a place of its
//! own.

use std::collections::HashMap;
use std::sync::Arc;

use super::extended::Prepared;
use crate::error::{Result, SqlError, state};
use crate::execute::RowStream;
use crate::sql::Bound;
use crate::values::Formats;

/// Most portals of one client that have names.
const PORTALS_MAX: usize = 1000;

/// A prepared statement with its parameters.
pub(super) struct Portal {
    pub(super) statement: Arc<Prepared>,
    pub(super) bound: Bound,
    /// Of the columns of the answer.
    pub(super) formats: Formats,
    pub(super) state: State,
}

/// What a portal takes beside its parameters, without the rows that a query holds for it: itself, and the piece of
/// input that its message is in.
const PORTAL_BYTES: usize = 10 << 10;

impl Portal {
    /// What it takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        PORTAL_BYTES + self.bound.message.len()
    }
}

pub(super) enum State {
    New,
    /// Rows were sent, and there may be more.
    Open(Box<RowStream>),
    /// Everything was sent.
    Done,
}

/// All portals of one client.
#[derive(Default)]
pub(super) struct Portals {
    unnamed: Option<Portal>,
    named: HashMap<String, Portal>,
}

impl Portals {
    /// What they take in memory, about.
    pub(super) fn bytes(&self) -> usize {
        self.named.values().chain(&self.unnamed).map(Portal::bytes).sum()
    }

    pub(super) fn get(&self, name: &str) -> Result<&Portal> {
        let portal = if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) };
        portal.ok_or_else(|| no_portal(name))
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Result<&mut Portal> {
        let portal = if name.is_empty() { self.unnamed.as_mut() } else { self.named.get_mut(name) };
        portal.ok_or_else(|| no_portal(name))
    }

    pub(super) fn take(&mut self, name: &str) -> Result<Portal> {
        let portal = if name.is_empty() { self.unnamed.take() } else { self.named.remove(name) };
        portal.ok_or_else(|| no_portal(name))
    }

    /// In the place of one of the same name.
    pub(super) fn insert(&mut self, name: &str, portal: Portal) -> Result<()> {
        if name.is_empty() {
            self.unnamed = Some(portal);
            return Ok(());
        }
        if self.named.len() >= PORTALS_MAX && !self.named.contains_key(name) {
            let message = format!("there are {PORTALS_MAX} portals already");
            return Err(SqlError::new(state::LIMIT_EXCEEDED, message));
        }
        self.named.insert(name.to_owned(), portal);
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        *self = Portals::default();
    }
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(state::UNKNOWN_PORTAL, format!("portal {name:?} does not exist"))
}
