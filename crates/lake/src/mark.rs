//! The mark: how far one node's rows have come into a table.
//!
//! A mark is the property `onrush.node.<id>` of the Iceberg table, written
//! `<history>:<nonce>:<lsn>`, the first two as 32 hexadecimal digits each. It says: every durable
//! row of that history below `lsn` is in the table, and none at or above. It stands among the
//! table's properties because those outlive snapshots; each snapshot's summary repeats it, so that
//! readers see where their snapshot parts from the node's own rows.
//!
//! A node whose database was lost is closed by the one that goes on from its backup. Its mark then
//! is `<history>:<nonce>:<lsn>:closed:<id>`, with the number of that node and the nonce of its
//! claim: it says the same of the rows, and nobody may move or claim it any more.

use std::collections::HashMap;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// In front of the node's number in the name of the property.
const PROPERTY_PREFIX: &str = "onrush.node.";
/// Hexadecimal digits of a history and of a nonce.
const HEX_DIGITS: usize = 32;
/// In a mark that is closed, before the number of the node that closed it.
const CLOSED: &str = "closed";

/// Which node of the many that drain into a table. A node's id belongs to one history for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The name of the table's property that holds this node's mark.
    #[must_use]
    pub fn property(self) -> String {
        format!("{PROPERTY_PREFIX}{self}")
    }

    /// The node whose mark a property of this name holds; `None` for any other property.
    #[must_use]
    pub fn from_property(name: &str) -> Option<NodeId> {
        let number = name.strip_prefix(PROPERTY_PREFIX)?.parse().ok()?;
        let node = NodeId(number);
        // One node has one name: `onrush.node.07` is nobody's.
        (node.property() == name).then_some(node)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How far one node's rows have come into a table, and who brought them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Drawn when the node's database was made or restored.
    pub history: u128,
    /// Drawn by each claim, so that of two who take themselves for the node only the last goes on.
    pub nonce: u128,
    /// Rows below are in the table, rows at or above are not.
    pub lsn: u64,
    /// The node that goes on in place of this one, whose database was lost.
    pub closed_by: Option<NodeId>,
}

impl Mark {
    /// The mark of a node that drains.
    #[must_use]
    pub fn new(history: u128, nonce: u128, lsn: u64) -> Mark {
        Mark { history, nonce, lsn, closed_by: None }
    }

    /// The mark of the same claim, further on.
    #[must_use]
    pub fn at(self, lsn: u64) -> Mark {
        Mark { lsn, ..self }
    }

    /// The mark as another node leaves it that goes on in place of this one.
    #[must_use]
    pub fn closed(self, by: NodeId, nonce: u128) -> Mark {
        Mark { nonce, closed_by: Some(by), ..self }
    }

    /// A node's mark among properties: of a table, or of a snapshot's summary.
    ///
    /// # Errors
    /// The property is there and is no mark.
    pub fn find(
        properties: &HashMap<String, String>,
        node: NodeId,
    ) -> Result<Option<Mark>, MarkUnreadable> {
        properties.get(&node.property()).map(|text| text.parse()).transpose()
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}:{:032x}:{}", self.history, self.nonce, self.lsn)?;
        match self.closed_by {
            Some(by) => write!(formatter, ":{CLOSED}:{by}"),
            None => Ok(()),
        }
    }
}

/// Why a text is no mark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarkUnreadable {
    /// It has other parts.
    #[error("{0:?} is not of the form history:nonce:lsn, nor of that with :closed:node behind")]
    Form(String),
    /// A history or nonce is not 32 hexadecimal digits.
    #[error("{0:?} is not 32 hexadecimal digits")]
    Hex(String),
    /// The LSN is not a number.
    #[error("{0:?} is not an LSN: {1}")]
    Lsn(String, ParseIntError),
}

impl FromStr for Mark {
    type Err = MarkUnreadable;

    fn from_str(text: &str) -> Result<Mark, MarkUnreadable> {
        let form = || MarkUnreadable::Form(text.to_owned());
        let parts: Vec<&str> = text.split(':').collect();
        let (history, nonce, lsn, by) = match parts[..] {
            [history, nonce, lsn] => (history, nonce, lsn, None),
            [history, nonce, lsn, CLOSED, by] => (history, nonce, lsn, Some(by)),
            _ => return Err(form()),
        };
        // `parse` takes a plus sign and noughts in front, and a mark is written in one way only.
        let is_plain = |number: &str| {
            !number.starts_with('+') && (number.len() == 1 || !number.starts_with('0'))
        };
        if !is_plain(lsn) || !by.is_none_or(is_plain) {
            return Err(form());
        }
        let by = by.map(|by| by.parse().map(NodeId).map_err(|_| form()));
        Ok(Mark {
            history: parse_hex(history)?,
            nonce: parse_hex(nonce)?,
            lsn: lsn.parse().map_err(|cause| MarkUnreadable::Lsn(lsn.to_owned(), cause))?,
            closed_by: by.transpose()?,
        })
    }
}

fn parse_hex(digits: &str) -> Result<u128, MarkUnreadable> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != HEX_DIGITS || !digits.bytes().all(is_hex) {
        return Err(MarkUnreadable::Hex(digits.to_owned()));
    }
    u128::from_str_radix(digits, 16).map_err(|_| MarkUnreadable::Hex(digits.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            history: u128,
            nonce: u128,
            lsn: u64,
            by in prop::option::of(any::<u32>()),
        ) {
            let mark = Mark { closed_by: by.map(NodeId), ..Mark::new(history, nonce, lsn) };
            prop_assert_eq!(mark.to_string().parse::<Mark>(), Ok(mark));
        }

        #[test]
        fn what_reads_is_written_alike(text in "[0-9a-f]{32}:[0-9a-f]{32}:[0-9+]{0,3}(:closed:[0-9+]{0,3})?|\\PC*") {
            if let Ok(mark) = text.parse::<Mark>() {
                prop_assert_eq!(mark.to_string(), text);
            }
        }

        #[test]
        fn near_misses_are_refused_without_a_panic(
            mark in (any::<u128>(), any::<u128>(), any::<u64>(), prop::option::of(any::<u32>())),
            place: prop::sample::Index,
            other in any::<char>(),
        ) {
            let (history, nonce, lsn, by) = mark;
            let mark = Mark { closed_by: by.map(NodeId), ..Mark::new(history, nonce, lsn) };
            let mut text: Vec<char> = mark.to_string().chars().collect();
            let place = place.index(text.len());
            text[place] = other;
            let text: String = text.into_iter().collect();
            if let Ok(mark) = text.parse::<Mark>() {
                prop_assert_eq!(mark.to_string(), text);
            }
        }

        #[test]
        fn a_node_has_one_property(number: u32, text in "onrush\\.node\\.[+0-9]{0,12}|\\PC*") {
            let node = NodeId(number);
            prop_assert_eq!(NodeId::from_property(&node.property()), Some(node));
            if let Some(node) = NodeId::from_property(&text) {
                prop_assert_eq!(node.property(), text);
            }
        }
    }

    #[test]
    fn a_mark_is_written_in_one_way() {
        let mark = Mark::new(0xab, 1, 7);
        let text = "000000000000000000000000000000ab:00000000000000000000000000000001:7";
        assert_eq!(mark.to_string(), text);
        for wrong in [
            "",
            ":",
            "::",
            "a:b:1",
            &text.to_uppercase(),
            &format!("{text}:0"),
            &format!("{text} "),
        ] {
            assert!(wrong.parse::<Mark>().is_err(), "{wrong:?} was taken");
        }
        let closed = mark.closed(NodeId(9), 2).to_string();
        let expected =
            "000000000000000000000000000000ab:00000000000000000000000000000002:7:closed:9";
        assert_eq!(closed, expected);
        for wrong in [":closed", ":closed:", ":closed:09", ":open:9", ":closed:9:9", ":closed:x"] {
            assert!(format!("{text}{wrong}").parse::<Mark>().is_err(), "{wrong:?} was taken");
        }
        assert!(text.replace(":7", ":07").parse::<Mark>().is_err());
        assert!(text.replace(":7", ":18446744073709551616").parse::<Mark>().is_err());
    }
}
