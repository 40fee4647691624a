//! How far each table is in the lake, as this node knows it: what was confirmed, and what was asked for since. Kept in
//! a table of the database and durable before the catalogue is asked, so that a mark which the lake shows later is
//! either one of these or somebody else's: of a copy of the database, or of one that a backup was restored from. They
//! name the lake's table: a table that is attached to another one begins without notes. A database that was restored
//! has the notes of the one that was lost, until its own first claim.

use onrush::{
    ColumnDefinition, DataType, Database, Durability, Result, Row, Table, TableDefinition, Value,
};
use uuid::Uuid;

use super::Identity;
use super::attachment::{Attachment, made};
use crate::claim::Confirmed;
use crate::error::{FencedBecause, LakeError};
use crate::mark::{Mark, NodeId};

const NOTES: &str = "onrush.lake_notes";

/// What is noted of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// What the lake has shown, and the mark that it had then.
    pub(super) confirmed: Option<(Confirmed, Mark)>,
    /// Marks that were asked for since: what an earlier process asked for may come late.
    pub(super) asked: Vec<Mark>,
}

impl Notes {
    /// Takes out what is noted of nodes that were lost: what the youngest one had confirmed.
    ///
    /// # Errors
    /// Something is noted of a history that is none of them.
    pub(super) fn take_lost(
        &mut self,
        own: &Identity,
    ) -> std::result::Result<Option<(NodeId, Confirmed)>, FencedBecause> {
        let node_of = |mark: &Mark| own.lost.iter().find(|lost| lost.history == mark.history);
        let is_own = |mark: &Mark| mark.history == own.history;
        let confirmed = self.confirmed.filter(|(_, mark)| !is_own(mark));
        let mut noted = confirmed.iter().map(|(_, mark)| mark).chain(&self.asked);
        if let Some(noted) = noted.find(|mark| !is_own(mark) && node_of(mark).is_none()) {
            return Err(FencedBecause::RestoredUnnoticed { noted: *noted });
        }
        self.asked.retain(is_own);
        self.confirmed = self.confirmed.filter(|(_, mark)| is_own(mark));
        Ok(confirmed.and_then(|(it, mark)| Some((node_of(&mark)?.node, it))))
    }

    /// Whether the mark that the lake shows is one of this node's own.
    pub(super) fn check(&self, found: Option<Mark>) -> std::result::Result<(), FencedBecause> {
        let confirmed = self.confirmed.map(|(_, mark)| mark);
        match found {
            None if confirmed.is_some() => Err(FencedBecause::MarkMissing),
            Some(found) if confirmed == Some(found) || self.asked.contains(&found) => Ok(()),
            Some(found) => Err(FencedBecause::NotNoted { found }),
            None => Ok(()),
        }
    }

    /// The mark is about to be asked for; false if it was before.
    pub(super) fn ask(&mut self, mark: Mark) -> bool {
        let is_new = !self.asked.contains(&mark);
        if is_new {
            self.asked.push(mark);
        }
        is_new
    }

    /// The lake has shown this.
    pub(super) fn of(confirmed: Confirmed, mark: Mark) -> Notes {
        Notes { confirmed: Some((confirmed, mark)), asked: Vec::new() }
    }
}

fn definition() -> Result<TableDefinition> {
    let number = |name: &str| ColumnDefinition::new(name, DataType::Int64);
    let text = |name: &str| ColumnDefinition::new(name, DataType::Text);
    let table = TableDefinition::builder(NOTES).column(number("table").not_null());
    let table = table.column(text("lake_table").not_null());
    let table = table.column(text("table_uuid")).column(number("snapshot_id"));
    Ok(table.column(text("confirmed")).column(text("asked")).primary_key(["table"]).build()?)
}

/// The notes of a database.
pub(super) struct NoteTable {
    database: Database,
    table: Table,
}

impl NoteTable {
    pub(super) fn open(database: &Database) -> Result<NoteTable> {
        Ok(NoteTable { database: database.clone(), table: made(database, definition()?)? })
    }

    pub(super) fn read(&self, of: &Attachment) -> std::result::Result<Notes, LakeError> {
        let key = [i64::from(of.table).into()];
        let row = self.database.session()?.get(&self.table, &key)?;
        let row = row.filter(|row| row[1].as_str() == Some(of.lake_table().as_str()));
        row.map_or(Ok(Notes::default()), |row| {
            read(&row)
                .ok_or_else(|| LakeError::Internal("a note of the drain is unreadable".into()))
        })
    }

    /// Returns when it is durable.
    pub(super) fn write(&self, of: &Attachment, notes: &Notes) -> Result<()> {
        let text = |text: Option<String>| text.map_or(Value::Null, Value::from);
        let confirmed = notes.confirmed.map(|(confirmed, _)| confirmed);
        let row = [
            i64::from(of.table).into(),
            of.lake_table().into(),
            text(confirmed.map(|confirmed| confirmed.table_uuid.to_string())),
            confirmed.map_or(Value::Null, |confirmed| confirmed.snapshot_id.into()),
            text(notes.confirmed.map(|(_, mark)| mark.to_string())),
            text(Some(notes.asked.iter().map(Mark::to_string).collect::<Vec<_>>().join(" "))),
        ];
        let mut session = self.database.session()?;
        session.set_durability(Durability::Durable);
        session.upsert(&self.table, &row)
    }
}

fn read(row: &Row) -> Option<Notes> {
    let mark = |at: usize| match &row[at] {
        Value::Null => Some(None),
        value => Some(Some(value.as_str()?.parse::<Mark>().ok()?)),
    };
    let confirmed = match mark(4)? {
        None => None,
        Some(mark) => {
            let table_uuid: Uuid = row[2].as_str()?.parse().ok()?;
            let snapshot_id = row[3].as_i64()?;
            Some((Confirmed { table_uuid, snapshot_id, lsn: mark.lsn }, mark))
        }
    };
    let asked = row[5].as_str()?.split_whitespace().map(|mark| mark.parse().ok());
    Some(Notes { confirmed, asked: asked.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(nonce: u128, lsn: u64) -> Mark {
        Mark::new(1, nonce, lsn)
    }

    fn confirmed(mark: Mark) -> (Confirmed, Mark) {
        (Confirmed { table_uuid: Uuid::nil(), snapshot_id: 7, lsn: mark.lsn }, mark)
    }

    #[test]
    fn a_mark_that_was_not_noted_is_somebody_elses() {
        let nothing = Notes::default();
        assert_eq!(nothing.check(None), Ok(()));
        assert!(nothing.check(Some(mark(1, 1))).is_err());
        let claiming = Notes { asked: vec![mark(1, 1)], ..nothing };
        assert_eq!(claiming.check(None), Ok(()));
        assert_eq!(claiming.check(Some(mark(1, 1))), Ok(()));
        let asked = vec![mark(1, 9), mark(3, 5)];
        let notes = Notes { confirmed: Some(confirmed(mark(1, 5))), asked };
        assert_eq!(notes.check(Some(mark(1, 5))), Ok(()));
        assert_eq!(notes.check(Some(mark(1, 9))), Ok(()));
        assert_eq!(notes.check(Some(mark(3, 5))), Ok(()));
        assert_eq!(notes.check(None), Err(FencedBecause::MarkMissing));
        for other in [mark(1, 7), mark(2, 5), mark(2, 9)] {
            let refused = FencedBecause::NotNoted { found: other };
            assert_eq!(notes.check(Some(other)), Err(refused));
        }
    }

    #[test]
    fn notes_of_a_lost_node_are_told_from_ones_own() {
        use crate::claim::LostNode;

        let lost = LostNode { node: NodeId(7), history: 1, restored_to: 9 };
        let restored = Identity { node: NodeId(8), history: 2, lost: vec![lost] };
        let (theirs, own) = (mark(1, 5), Mark::new(2, 3, 5));
        let mut notes = Notes { confirmed: Some(confirmed(theirs)), asked: vec![mark(1, 8), own] };
        let unnoticed = Identity { lost: Vec::new(), ..restored.clone() };
        let refused = FencedBecause::RestoredUnnoticed { noted: theirs };
        assert_eq!(notes.clone().take_lost(&unnoticed), Err(refused));
        let taken = (NodeId(7), confirmed(theirs).0);
        assert_eq!(notes.take_lost(&restored), Ok(Some(taken)));
        assert_eq!(notes, Notes { confirmed: None, asked: vec![own] });
        let mut notes = Notes { confirmed: Some(confirmed(own)), asked: Vec::new() };
        assert_eq!(notes.take_lost(&restored), Ok(None));
        assert!(notes.confirmed.is_some());
    }

    #[test]
    fn notes_come_back_for_the_same_iceberg_table() -> std::result::Result<(), LakeError> {
        let folder = tempfile::tempdir().map_err(|error| LakeError::Internal(error.to_string()))?;
        let database = Database::create(folder.path().join("db"), onrush::Options::small())?;
        let attachment = |name: &str| Attachment {
            table: 3,
            catalogue: "prod".to_owned(),
            name: name.to_owned(),
            lag: std::time::Duration::ZERO,
        };
        let (of, other) = (attachment("a.b"), attachment("a.c"));
        let kept = NoteTable::open(&database)?;
        assert_eq!(kept.read(&of)?, Notes::default());
        let claiming = Notes { confirmed: None, asked: vec![mark(1, 1)] };
        let asked = vec![mark(1, u64::MAX), mark(2, 5)];
        let noted = Notes { confirmed: Some(confirmed(mark(1, 5))), asked };
        for notes in [claiming, noted] {
            kept.write(&of, &notes)?;
            assert_eq!(NoteTable::open(&database)?.read(&of)?, notes);
        }
        assert_eq!(kept.read(&other)?, Notes::default());
        Ok(())
    }
}
