//! How a client has come: from where, and what it has to prove before it is let in.
//!
//! Invariant: where other machines come in nobody does without encryption and a password, whatever roles there are.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;

use super::Line;
use crate::error::{SqlError, state};

/// What a client has to prove before it is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing: only the owner of the database's files gets here.
    Nothing,
    /// That it knows a role's password, as soon as a role has one: only this machine gets here.
    PasswordOnceThereIsOne,
    /// That it knows a role's password, whatever roles there are: other machines get here.
    Password,
}

/// How a client has come.
#[derive(Clone)]
pub(crate) struct Door {
    /// What a client has to prove.
    pub(crate) proof: Proof,
    /// A client that does not encrypt is sent away.
    pub(crate) needs_tls: bool,
    /// Encryption, where it is offered.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Who stands there.
    pub(crate) peer: Peer,
    /// The client's socket, if there is one.
    pub(crate) line: Option<Arc<Line>>,
}

/// Where a client comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// This address of its machine.
    Tcp(SocketAddr),
    /// A Unix socket, whose other end has no name.
    Unix,
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) => address.fmt(formatter),
            Peer::Unix => formatter.write_str("the Unix socket"),
        }
    }
}

impl Door {
    /// That of an address that is listened on.
    pub(crate) fn on(address: SocketAddr, tls: Option<TlsAcceptor>) -> Door {
        let peer = Peer::Tcp(address);
        match address.ip().is_loopback() {
            true => Door {
                proof: Proof::PasswordOnceThereIsOne,
                needs_tls: false,
                tls,
                peer,
                line: None,
            },
            false => Door { proof: Proof::Password, needs_tls: true, tls, peer, line: None },
        }
    }

    /// That of a Unix socket, which only the owner of the database's files can open.
    pub(crate) fn of_owner() -> Door {
        Door { proof: Proof::Nothing, needs_tls: false, tls: None, peer: Peer::Unix, line: None }
    }

    /// A client that did not prove who it is, or that it may come in, could be somebody who tries names and
    /// passwords: whoever looks after the server must be able to tell from where.
    pub(super) fn tell_sent_away(&self, error: &SqlError, user: &str) {
        let (peer, state, message) = (self.peer, error.state, &error.message);
        match state {
            state::INVALID_PASSWORD | state::INVALID_AUTHORIZATION => {
                tracing::warn!(%peer, user, state, "a client was not let in: {message}");
            }
            _ => tracing::info!(%peer, user, state, "a client was sent away: {message}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_ever_open() {
        let door = |address: &str| Door::on(address.parse().expect("an address"), None);
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1"] {
            let door = door(address);
            assert_eq!(
                (door.proof, door.needs_tls),
                (Proof::PasswordOnceThereIsOne, false),
                "{address}"
            );
        }
        for address in ["0.0.0.0:1", "10.0.0.1:1", "[::]:1", "[::ffff:127.0.0.1]:1", "192.0.2.7:1"]
        {
            let door = door(address);
            assert_eq!((door.proof, door.needs_tls), (Proof::Password, true), "{address}");
        }
    }
}
