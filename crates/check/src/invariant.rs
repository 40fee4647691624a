//! The catalogue of invariants: what must hold in a stored database, by number. `docs/check.md` is
//! made from it.

use serde::{Serialize, Serializer};

/// What a broken invariant means for the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something stored is lost or wrong.
    Damage,
    /// Nothing stored is lost; somebody should know all the same.
    Warning,
}

macro_rules! invariants {
    ($($variant:ident = $number:literal, $severity:ident, $title:literal, $advice:literal;)*) => {
        /// One thing that must hold. The hundreds of its number say where.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Invariant {
            $(#[doc = $title] $variant = $number,)*
        }

        impl Invariant {
            /// All invariants, by number.
            pub const ALL: &'static [Invariant] = &[$(Invariant::$variant,)*];

            /// What must hold, in a sentence.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Invariant::$variant => $title,)* }
            }

            /// What to do when it does not hold.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Invariant::$variant => $advice,)* }
            }

            /// What it means when it does not hold.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Invariant::$variant => Severity::$severity,)* }
            }
        }
    };
}

impl Invariant {
    /// The number; stable once released.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// Where the hundreds of the number look.
    #[must_use]
    pub const fn area(self) -> &'static str {
        match self.number() / 100 {
            1 => "superblock",
            2 => "data files",
            3 => "directory",
            4 => "slots",
            5 => "images",
            6 => "rows",
            7 => "catalogue",
            8 => "log",
            9 => "memory",
            _ => "stocks",
        }
    }
}

impl Serialize for Invariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.number())
    }
}

invariants! {
    SuperblockReadable = 101, Damage,
        "one copy of the superblock at least is whole",
        "restore the newest backup; without a superblock nothing says which slots count";
    SuperblockCopies = 102, Warning,
        "both copies of the superblock are whole",
        "open the database: its next superblock replaces the damaged copy; if no crash came before, test the device";
    SuperblockTurns = 103, Damage,
        "the copies of the superblock were written in turn: generations follow each other, each in its place",
        "do not open the database; a write went to the wrong place or was lost: test the device, restore a backup";
    SuperblockFields = 104, Damage,
        "the fields of the superblock fit together",
        "do not open the database; restore a backup";
    Folders = 105, Damage,
        "the superblock file names the folders of data and log",
        "restore the superblock file from a backup of the same database: this part never changes";
    CountersPossible = 106, Damage,
        "the counters of superblock and log stand where counting can have brought them: below 2^61",
        "do not open the database, which is refused; restore a backup, and report this as a bug";
    DataFileReadable = 201, Damage,
        "every data file is there and can be read",
        "bring the file back to the folder that the finding names, or repair the device";
    DataFileHeader = 202, Damage,
        "every data file starts with its header",
        "make sure that the file is that of this database and number; else restore a backup";
    PageWhole = 301, Damage,
        "every page of the directory is whole: magic, checksum, zeros",
        "test the device and restore a backup; the leaves that the page names cannot be found without it";
    PagePlace = 302, Damage,
        "every page of the directory is of this database and in its own slot",
        "test the device: a write went to the wrong place; restore a backup";
    BlobNamed = 303, Damage,
        "the pages of a blob make up the bytes that were named: chain, length, checksum",
        "test the device: a write was lost or an old one came back; restore a backup";
    RootDecodes = 304, Damage,
        "the root of the directory decodes",
        "restore a backup, and report this as a bug: the bytes are as they were written";
    SegmentDecodes = 305, Damage,
        "every directory segment decodes and is of its table",
        "restore a backup, and report this as a bug: the bytes are as they were written";
    FencesMeet = 306, Damage,
        "the leaves of a table cover all keys, in order, without gap or overlap",
        "restore a backup, and report this as a bug: rows may be missing in the named range";
    SlotExists = 401, Damage,
        "every slot that is named lies in a data file, and is not its header",
        "see whether the data file was cut off; else restore a backup";
    SlotOwned = 402, Damage,
        "every slot has one owner: a table's image or a page of one blob",
        "restore a backup, and report this as a bug: one of the owners has lost its bytes";
    LeafInsideImage = 403, Damage,
        "every leaf lies inside the range of keys that its image was made for",
        "restore a backup, and report this as a bug: rows may be missing in the named range";
    ImageWhole = 501, Damage,
        "every image is whole: magic and checksum",
        "test the device; restore a backup, or what of it lies in the named range";
    ImagePlace = 502, Damage,
        "every image is of this database, of its table and in its own slot",
        "test the device: a write went to the wrong place; restore a backup";
    ImageNamed = 503, Damage,
        "every image is the one that the directory names",
        "test the device: a write was lost, and the slot holds what was there before; restore a backup";
    ImageAddsUp = 504, Damage,
        "entries, counts and fences of an image add up to its bytes",
        "restore a backup, and report this as a bug: the bytes are as they were written";
    KeysAscend = 601, Damage,
        "the keys in an image ascend",
        "restore a backup, and report this as a bug: rows in the named range may not be found";
    RowInsideFences = 602, Damage,
        "every row lies inside the fences of its image",
        "restore a backup, and report this as a bug: the named row cannot be found by its key";
    RowLsn = 603, Damage,
        "no row is newer than the log that the checkpoint needs (E)",
        "restore a backup, and report this as a bug: the image holds what the log may have lost";
    KeyDecodes = 604, Damage,
        "every key is that of its key columns, in the only form they have",
        "restore a backup, or write the row anew under its right key";
    RowDecodes = 605, Damage,
        "every row has the parts that its table definition says",
        "restore a backup, or write the named row anew";
    ValuesFit = 606, Damage,
        "every value is one that its column can hold",
        "restore a backup, or write the named row anew";
    EntryHolder = 607, Damage,
        "removals stand in fragments only",
        "restore a backup, and report this as a bug: the bytes are as they were written";
    LongValuesWhole = 608, Damage,
        "every long value that a row points to has all its pieces, and every piece belongs to one",
        "restore a backup, and report this as a bug; rows without their pieces cannot be read as a whole";
    DefinitionDecodes = 701, Damage,
        "every table definition decodes and is sound",
        "restore a backup, and report this as a bug: the table cannot be opened";
    ObjectNumbers = 702, Damage,
        "tables differ in name, number and object, and their objects were handed out",
        "restore a backup, and report this as a bug";
    Counters = 703, Damage,
        "every generated column has one counter",
        "restore a backup, and report this as a bug: keys might be handed out twice";
    CounterBeyond = 704, Warning,
        "every counter stands beyond the stored keys of its column",
        "if keys were inserted by hand, generated ones will meet them (a duplicate key); if not, report this as a bug";
    NumbersLeft = 705, Warning,
        "of the numbers for tables and generated keys more than a sixteenth is left",
        "in time, move the rows to a wider type, another node or strategy; for table numbers, to a new database";
    LargeTransactions = 706, Damage,
        "large transactions that the root names have numbers that were given, and objects that were handed out",
        "restore a backup, and report this as a bug";
    SegmentReadable = 801, Damage,
        "the log segments from the checkpoint on are there, each with its header",
        "bring the file back to the log folder; else restore a backup";
    BlockChain = 802, Damage,
        "the log's blocks follow each other as far as anything was durable",
        "do not open the database: test the device; what is behind the break is lost; restore a backup";
    LogReachesEnd = 803, Damage,
        "the log reaches the LSN that the checkpoint needs (E)",
        "see whether log files are missing; else restore a backup";
    TornTail = 804, Warning,
        "the log ends with its last whole block",
        "nothing to do after a crash: opening the database cuts what was never durable";
    RecordDecodes = 805, Damage,
        "every log record decodes",
        "restore a backup, and report this as a bug: the bytes are as they were written";
    RecordFits = 806, Damage,
        "every log record fits the catalogue and its table",
        "restore a backup, and report this as a bug: opening the database may refuse this record";
    LiveAsStored = 901, Damage,
        "the rows that sessions see are those of the images with the changes of the log",
        "make a backup, do not close the database, and report this as a bug: what is in memory may not come back";
    IndexFollowsRows = 902, Damage,
        "each index has exactly one entry for each row of its table, with the row's values",
        "drop the index and create it again; and report this as a bug";
    LongValuesFollowRows = 903, Damage,
        "every long value that a row points to has all its pieces, and every piece belongs to one",
        "copy the other rows to a new table, or restore a backup; and report this as a bug";
    RunHeadDecodes = 1001, Damage,
        "the head of every run decodes and is of its table",
        "restore a backup, and report this as a bug: the bytes are as they were written";
    RunsFit = 1002, Damage,
        "runs lie inside their range, the oldest alone may be a base, and none is newer than the log that \
          the checkpoint needs (E)",
        "restore a backup, and report this as a bug: rows in the named range may be missing or old";
    RunAddsUp = 1003, Damage,
        "the head of a run says how many entries its images have, of how many bytes, up to which LSN, and whose \
          intents",
        "restore a backup, and report this as a bug: rows in the named range may be missing";
    RunKnowsKeys = 1004, Damage,
        "the filter of a base misses no key, and a fragment has the hash of each in its place",
        "restore a backup, and report this as a bug: a row may not be found by its key, and its key be given twice";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_texts_are_whole() {
        assert!(Invariant::ALL.is_sorted_by(|a, b| a.number() < b.number()));
        for invariant in Invariant::ALL {
            assert!(invariant.title().len() > 20 && invariant.advice().len() > 20);
        }
    }
}
