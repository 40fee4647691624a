//! Which of many nodes the database is: the number that `node_offset()` takes and by which the lake knows it. Kept in
//! the database from the first start that names one, since keys and marks of a node are its own for ever.
//!
//! A number belongs to one history. A database that was restored from a backup has another history than the one that
//! was lost, whose rows may be in the lake and in hands of clients: so it takes another number, and remembers the ones
//! before it, and up to where it has their rows.

use onrush::{
    ColumnDefinition, DataType, Database, DefaultValue, KeyStrategy, Row, ScanOptions, Session,
    TableChange, TableDefinition, Transaction, Value,
};
use onrush_lake::{Identity, LostNode, NodeId};

use crate::kept::{durable_session, existing, made};
use crate::listener::ServerError;

const NODE: &str = "onrush.nodes";

/// One history of those that the database comes from, its own last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Life {
    history: u128,
    /// Its number, if it had one.
    node: Option<u32>,
    /// The next one has its rows below.
    restored_to: Option<u64>,
}

fn definition() -> onrush::Result<TableDefinition> {
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64);
    let history = ColumnDefinition::new("history", DataType::Text).not_null();
    let table = TableDefinition::builder(NODE).column(number("place").not_null()).column(history);
    let table = table.column(number("node")).column(number("restored_to"));
    Ok(table.primary_key(["place"]).build()?)
}

/// The node that the database is, which it becomes now if it is none yet.
pub(crate) fn of(database: &Database, asked: Option<u32>) -> Result<Option<Identity>, ServerError> {
    let kept = read(database, &mut database.session()?)?;
    let restored = database.restored_from().map(|from| (from.history, from.lsn.0));
    let Some(lives) = lives(&kept, (database.id(), restored), asked)? else { return Ok(None) };
    if lives != kept {
        write(database, &lives)?;
    }
    Ok(identity(&lives))
}

/// The histories with that of the database and its number; none if there is no number to keep.
fn lives(
    kept: &[Life],
    (history, restored): (u128, Option<(u128, u64)>),
    asked: Option<u32>,
) -> Result<Option<Vec<Life>>, ServerError> {
    let mut lives = kept.to_vec();
    if lives.last().is_none_or(|life| life.history != history) {
        if let Some(last) = lives.last_mut() {
            match (restored, asked) {
                (Some((from, to)), _) if from == last.history => last.restored_to = Some(to),
                (_, None) => return Ok(None),
                (_, Some(asked)) => {
                    let lost = kept.iter().rev().find_map(|life| life.node).unwrap_or_default();
                    return Err(ServerError::UnknownHistory { asked, lost });
                }
            }
        }
        lives.push(Life { history, node: None, restored_to: None });
    }
    let Some((own, before)) = lives.split_last_mut() else { return Ok(None) };
    match (own.node, asked) {
        (Some(known), Some(asked)) if known != asked => {
            return Err(ServerError::OtherNode { known, asked });
        }
        (None, Some(asked)) if before.iter().any(|life| life.node == Some(asked)) => {
            return Err(ServerError::LostNode { asked });
        }
        (None, asked) => own.node = asked,
        _ => {}
    }
    let has_number = lives.iter().any(|life| life.node.is_some());
    Ok(has_number.then_some(lives))
}

/// Who drains: with those that were lost, the oldest first.
fn identity(lives: &[Life]) -> Option<Identity> {
    let (own, before) = lives.split_last()?;
    let lost = |life: &Life| {
        let (node, restored_to) = (NodeId(life.node?), life.restored_to?);
        Some(LostNode { node, history: life.history, restored_to })
    };
    let lost = before.iter().filter_map(lost).collect();
    Some(Identity { node: NodeId(own.node?), history: own.history, lost })
}

fn read(database: &Database, session: &mut Session) -> Result<Vec<Life>, ServerError> {
    let Some(table) = existing(database, NODE)? else { return Ok(Vec::new()) };
    let life = |row: onrush::Result<Row>| {
        let row = row?;
        let history = row[1].as_str().and_then(|digits| u128::from_str_radix(digits, 16).ok());
        let number = |at: usize| row[at].as_i64().and_then(|number| u64::try_from(number).ok());
        Ok(Life {
            history: history.unwrap_or_default(),
            node: number(2).and_then(|number| u32::try_from(number).ok()),
            restored_to: number(3),
        })
    };
    // In the order of their places, by which they are kept.
    session.scan(&table, &ScanOptions::default())?.map(life).collect()
}

fn write(database: &Database, lives: &[Life]) -> Result<(), ServerError> {
    let table = made(database, definition()?)?;
    let mut session = durable_session(database)?;
    let mut transaction = session.begin()?;
    let number = |number: Option<u64>| {
        number.map_or(Value::Null, |number| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)))
    };
    for (place, life) in lives.iter().enumerate() {
        let Life { history, node, restored_to } = *life;
        let (place, history) = (number(Some(place as u64)), format!("{history:032x}").into());
        let row = [place, history, number(node.map(u64::from)), number(restored_to)];
        transaction.upsert(&table, &row)?;
    }
    if let Some((Life { node: Some(node), .. }, before)) = lives.split_last() {
        let lost: Vec<u32> = before.iter().filter_map(|life| life.node).collect();
        make_keys_as(&mut transaction, &lost, *node)?;
    }
    Ok(transaction.commit()?)
}

/// Columns that made keys of lost nodes make those of this one: the others may be in the lake, of rows that are not
/// here.
fn make_keys_as(transaction: &mut Transaction<'_>, lost: &[u32], node: u32) -> onrush::Result<()> {
    let own = DefaultValue::Key(KeyStrategy::NodeOffset { node });
    for table in transaction.tables() {
        let is_of_lost = |column: &&ColumnDefinition| {
            matches!(&column.default, DefaultValue::Key(KeyStrategy::NodeOffset { node })
                if lost.contains(node))
        };
        let change = |column: &ColumnDefinition| TableChange::SetColumn {
            name: column.name.clone(),
            nullable: column.nullable,
            default: own.clone(),
        };
        let changes: Vec<_> = table.columns().iter().filter(is_of_lost).map(change).collect();
        if !changes.is_empty() {
            transaction.alter_table(table.name(), &changes)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(history: u128, node: Option<u32>, restored_to: Option<u64>) -> Life {
        Life { history, node, restored_to }
    }

    #[test]
    fn a_number_is_kept_from_the_first_start_that_names_one() {
        assert_eq!(lives(&[], (1, None), None).unwrap(), None);
        let kept = lives(&[], (1, None), Some(7)).unwrap().unwrap();
        assert_eq!(kept, [life(1, Some(7), None)]);
        assert_eq!(lives(&kept, (1, None), None).unwrap(), Some(kept.clone()));
        let other = lives(&kept, (1, None), Some(8)).unwrap_err();
        assert!(matches!(other, ServerError::OtherNode { known: 7, asked: 8 }));
    }

    #[test]
    fn a_restored_database_takes_another_number_and_remembers_those_before() {
        let kept = [life(1, Some(7), None)];
        let lost = lives(&kept, (2, Some((1, 50))), Some(7)).unwrap_err();
        assert!(matches!(lost, ServerError::LostNode { asked: 7 }));
        // Started without a number, it is none, and remembers where it was restored to.
        let nameless = lives(&kept, (2, Some((1, 50))), None).unwrap().unwrap();
        assert_eq!(nameless, [life(1, Some(7), Some(50)), life(2, None, None)]);
        assert_eq!(identity(&nameless), None);
        let named = lives(&nameless, (2, Some((1, 50))), Some(8)).unwrap().unwrap();
        let again = lives(&named, (3, Some((2, 80))), Some(9)).unwrap().unwrap();
        let lost = |node, history, restored_to| LostNode { node, history, restored_to };
        let expected = [lost(NodeId(7), 1, 50), lost(NodeId(8), 2, 80)];
        let Identity { node, history, lost } = identity(&again).unwrap();
        assert_eq!((node, history, lost), (NodeId(9), 3, expected.to_vec()));
        for number in [7, 8] {
            let refused = lives(&named, (3, Some((2, 80))), Some(number)).unwrap_err();
            assert!(matches!(refused, ServerError::LostNode { .. }));
        }
    }

    #[test]
    fn a_history_in_between_that_no_server_has_seen_is_told() {
        let kept = [life(1, Some(7), None)];
        assert_eq!(lives(&kept, (3, Some((2, 80))), None).unwrap(), None);
        let unknown = lives(&kept, (3, Some((2, 80))), Some(8)).unwrap_err();
        assert!(matches!(unknown, ServerError::UnknownHistory { asked: 8, lost: 7 }));
        // Where nobody had a number, nothing is lost.
        let named = lives(&[], (3, Some((2, 80))), Some(8)).unwrap().unwrap();
        assert_eq!(named, [life(3, Some(8), None)]);
    }
}
