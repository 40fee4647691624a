//! Composite types, whose values are records: `CREATE TYPE ... AS (...)` makes them, and so does a row in a query.
//!
//! A value is the text that PostgreSQL writes: `(1,,"a b")`, nothing between two commas being NULL.
//!
//! A [`DataType`] is copied everywhere and has to know its fields, so each list of fields is kept once for the whole
//! process and never given back: there are as many as definitions that were ever made, and kinds of rows that queries
//! made.
//!
//! Invariant: two types are equal exactly if their numbers, names and fields are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::array::{Elements, is_space};
use crate::{DataType, text};

/// Most fields of a type: as many as a table has columns.
pub const FIELDS_MAX: usize = 1024;
/// How deep composite types are inside of each other, at most.
pub(crate) const DEPTH_MAX: u32 = 16;
/// Begins a note of a type.
const NOTE: &str = "onrush_fields_";
/// Most types of rows that queries make, for the whole life of a process.
pub const ANONYMOUS_MAX: usize = 50_000;
/// What a record is of that no one declared.
const ANONYMOUS: &str = "record";

/// A type whose values are records.
#[derive(Clone, Copy)]
pub struct CompositeType(&'static Kept);

/// A field: its name and its type.
pub type CompositeField = (Box<str>, DataType);

/// What is wrong with a text that is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedRecord {
    /// It does not begin with a parenthesis.
    #[error("Missing left parenthesis.")]
    NoBeginning,
    /// It ends in the middle.
    #[error("Unexpected end of input.")]
    NoEnd,
    /// Something follows its end.
    #[error("Junk after right parenthesis.")]
    Junk,
    /// It has fewer fields than its type.
    #[error("Too few columns.")]
    TooFew,
    /// It has more.
    #[error("Too many columns.")]
    TooMany,
}

struct Kept {
    number: u32,
    of: Identity,
}

/// What tells two types apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    id: u32,
    name: Box<str>,
    fields: Box<[CompositeField]>,
}

#[derive(Default)]
struct AllKept {
    by_number: Vec<&'static Kept>,
    numbers: HashMap<Identity, u32>,
    /// How many of them are of rows that queries made.
    anonymous: usize,
}

static KEPT: LazyLock<RwLock<AllKept>> = LazyLock::new(RwLock::default);

impl CompositeType {
    /// The type of a number and name in its database, with these fields.
    #[must_use]
    pub fn new(id: u32, name: &str, fields: Vec<CompositeField>) -> CompositeType {
        let of = Identity { id: id.max(1), name: name.into(), fields: fields.into() };
        CompositeType::kept(of).expect("those of a database are not counted")
    }

    /// The type of rows that a query makes of values of these types: their fields are called `f1`, `f2` and so on. None
    /// as with [`named`](Self::named).
    #[must_use]
    pub fn anonymous(types: impl IntoIterator<Item = DataType>) -> Option<CompositeType> {
        let field = |(at, data_type)| (format!("f{}", at + 1).into(), data_type);
        CompositeType::named(types.into_iter().enumerate().map(field).collect())
    }

    /// The type of rows that a query makes of values under these names. None where there are [`ANONYMOUS_MAX`] others
    /// already: clients choose them, and they are never given back.
    #[must_use]
    pub fn named(fields: Vec<CompositeField>) -> Option<CompositeType> {
        CompositeType::kept(Identity { id: 0, name: ANONYMOUS.into(), fields: fields.into() })
    }

    fn kept(of: Identity) -> Option<CompositeType> {
        let mut kept = KEPT.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = kept.numbers.get(&of) {
            return Some(CompositeType(kept.by_number[*number as usize]));
        }
        if of.id == 0 {
            if kept.anonymous == ANONYMOUS_MAX {
                return None;
            }
            kept.anonymous += 1;
        }
        let number = kept.by_number.len() as u32;
        kept.numbers.insert(of.clone(), number);
        let made: &'static Kept = Box::leak(Box::new(Kept { number, of }));
        kept.by_number.push(made);
        Some(CompositeType(made))
    }

    /// By which name [`DataType`] is read as this type in this process.
    #[must_use]
    pub fn note(self) -> String {
        format!("{NOTE}{}", self.0.number)
    }

    /// The type with this note.
    pub(crate) fn noted(note: &str) -> Option<CompositeType> {
        let number: usize = note.strip_prefix(NOTE)?.parse().ok()?;
        let kept = KEPT.read().unwrap_or_else(PoisonError::into_inner);
        kept.by_number.get(number).copied().map(CompositeType)
    }

    /// Its number in its database; 0 for what no one declared.
    #[must_use]
    pub fn id(self) -> u32 {
        self.0.of.id
    }

    /// Whether it is of rows that a query makes.
    #[must_use]
    pub fn is_anonymous(self) -> bool {
        self.id() == 0
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.0.of.name
    }

    /// Its fields.
    #[must_use]
    pub fn fields(self) -> &'static [CompositeField] {
        &self.0.of.fields
    }

    /// How many composite types are inside of each other, this one included.
    fn depth(self) -> u32 {
        let inside = self.fields().iter().map(|(_, data_type)| match data_type {
            DataType::Composite(of) => of.depth(),
            _ => 0,
        });
        1 + inside.max().unwrap_or(0)
    }

    /// The reason why no column can be of it, if so.
    pub(crate) fn fault(self) -> Option<&'static str> {
        match () {
            () if self.depth() > DEPTH_MAX => {
                Some("composite types are at most 16 deep inside of each other")
            }
            () if self.fields().len() > FIELDS_MAX => Some("a composite type has too many fields"),
            () => self.fields().iter().find_map(|(_, data_type)| data_type.fault()),
        }
    }

    /// Whether a type is among its fields, those of composite types inside of it included.
    #[must_use]
    pub fn has(self, is_it: &dyn Fn(DataType) -> bool) -> bool {
        self.fields().iter().any(|(_, data_type)| {
            let element = match data_type {
                DataType::Array(element) => **element,
                other => *other,
            };
            let is_inside = || matches!(element, DataType::Composite(of) if of.has(is_it));
            is_it(element) || is_inside()
        })
    }

    /// The fields of a record of this type. Those at its end that the record lacks, being written before they were
    /// added, are NULL.
    ///
    /// # Errors
    /// Text that is no record; one of more fields.
    pub fn read(self, written: &str) -> Result<Elements<'_>, MalformedRecord> {
        let fields = self.fields();
        let mut read = match fields {
            [] if written.trim_matches(is_space) == "()" => Vec::new(),
            _ => read_record(written)?,
        };
        if read.len() > fields.len() {
            return Err(MalformedRecord::TooMany);
        }
        read.resize(fields.len(), None);
        Ok(read)
    }

    /// Whether a text is a record of this type; else why it is not.
    pub(crate) fn check(self, written: &str) -> Result<(), Box<str>> {
        let read = self.read(written).map_err(|fault| fault.to_string())?;
        for ((_, data_type), field) in self.fields().iter().zip(&read) {
            if let Some(field) = field {
                text::parse(*data_type, field).map_err(|fault| fault.to_string())?;
            }
        }
        Ok(())
    }
}

impl PartialEq for CompositeType {
    fn eq(&self, other: &CompositeType) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for CompositeType {}

impl Hash for CompositeType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}

impl fmt::Debug for CompositeType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.of.fmt(formatter)
    }
}

/// Reads the fields of a record, none for NULL. `()` has one field.
///
/// # Errors
/// Text that is no record.
pub fn read_record(written: &str) -> Result<Elements<'_>, MalformedRecord> {
    let inner = written.trim_start_matches(is_space);
    let mut rest = inner.strip_prefix('(').ok_or(MalformedRecord::NoBeginning)?;
    let mut fields = Elements::new();
    loop {
        let (field, after) = read_field(rest)?;
        fields.push(field);
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => {
                // What ended the field is the parenthesis then.
                let behind = after[1..].trim_start_matches(is_space);
                return if behind.is_empty() { Ok(fields) } else { Err(MalformedRecord::Junk) };
            }
        }
    }
}

/// A field, and what follows it: the comma or parenthesis at its end.
fn read_field(rest: &str) -> Result<(Option<Cow<'_, str>>, &str), MalformedRecord> {
    let end = rest.find([',', ')', '"', '\\']).ok_or(MalformedRecord::NoEnd)?;
    if rest[end..].starts_with([',', ')']) {
        let plain = (end > 0).then(|| Cow::Borrowed(&rest[..end]));
        return Ok((plain, &rest[end..]));
    }
    let (mut field, mut is_quoted) = (String::new(), false);
    let mut characters = rest.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            ',' | ')' if !is_quoted => return Ok((Some(Cow::Owned(field)), &rest[at..])),
            '\\' => field.push(characters.next().ok_or(MalformedRecord::NoEnd)?.1),
            '"' if is_quoted && characters.peek().is_some_and(|(_, next)| *next == '"') => {
                characters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            other => field.push(other),
        }
    }
    Err(MalformedRecord::NoEnd)
}

/// Writes fields as a record.
pub fn write_record<'f>(fields: impl IntoIterator<Item = Option<&'f str>>) -> String {
    let mut written = String::from("(");
    for (number, field) in fields.into_iter().enumerate() {
        if number > 0 {
            written.push(',');
        }
        match field {
            None => {}
            Some(field) if is_plain(field) => written.push_str(field),
            Some(field) => {
                written.push('"');
                written.push_str(&field.replace('\\', "\\\\").replace('"', "\"\""));
                written.push('"');
            }
        }
    }
    written.push(')');
    written
}

/// Whether a field needs no quotes.
fn is_plain(field: &str) -> bool {
    let is_special =
        |character: char| matches!(character, '(' | ')' | ',' | '"' | '\\') || is_space(character);
    !field.is_empty() && !field.contains(is_special)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair() -> CompositeType {
        let fields = vec![("number".into(), DataType::Int32), ("word".into(), DataType::Text)];
        CompositeType::new(7, "pair", fields)
    }

    proptest! {
        #[test]
        fn a_record_reads_back(fields in prop::collection::vec(prop::option::of(".*"), 1..6)) {
            let written = write_record(fields.iter().map(Option::as_deref));
            let read = read_record(&written).expect("it was written here");
            let read: Vec<Option<String>> =
                read.into_iter().map(|field| field.map(Cow::into_owned)).collect();
            prop_assert_eq!(read, fields);
        }

        #[test]
        fn any_text_is_read_or_refused(written in "[(),\"\\\\a ]*") {
            let _ = read_record(&written);
        }
    }

    #[test]
    fn a_record_is_read_as_postgresql_does() {
        let read = |written| {
            let fields = read_record(written).expect(written);
            fields.into_iter().map(|field| field.map(Cow::into_owned)).collect::<Vec<_>>()
        };
        assert_eq!(read(" ( a ,) "), [Some(" a ".to_owned()), None]);
        assert_eq!(
            read(r#"(a"b"c,"x""y",\,)"#),
            [Some("abc".into()), Some("x\"y".into()), Some(",".into())]
        );
        assert_eq!(read("()"), [None]);
        assert_eq!(read("(\"\")"), [Some(String::new())]);
        for (written, fault) in [
            ("", MalformedRecord::NoBeginning),
            ("(1", MalformedRecord::NoEnd),
            ("(\"1)", MalformedRecord::NoEnd),
            ("(1)x", MalformedRecord::Junk),
        ] {
            assert_eq!(read_record(written), Err(fault), "{written}");
        }
    }

    #[test]
    fn fields_are_of_their_types() {
        assert_eq!(pair().check("(1,a)"), Ok(()));
        assert_eq!(pair().check("(,)"), Ok(()));
        assert!(pair().check("(a,a)").is_err());
        assert!(pair().check("(1,a,b)").is_err());
    }

    #[test]
    fn a_field_that_was_added_later_is_null() {
        assert_eq!(pair().read("(1)").map(|fields| fields.len()), Ok(2));
    }

    #[test]
    fn types_are_only_so_deep_inside_of_each_other() {
        let nested = |depth: u32| {
            let mut of = pair();
            for id in 1..depth {
                of = CompositeType::new(id, "outer", vec![("of".into(), DataType::Composite(of))]);
            }
            of
        };
        assert_eq!(nested(DEPTH_MAX).fault(), None);
        assert!(nested(DEPTH_MAX + 1).fault().is_some());
    }

    #[test]
    fn equal_types_are_one() {
        assert_eq!(pair(), pair());
        assert_eq!(DataType::Composite(pair()), pair().note().parse().expect("it is noted"));
        let row = CompositeType::anonymous([DataType::Int32, DataType::Text]).expect("few");
        assert_ne!(row, pair());
        assert_eq!(row.fields()[1].0.as_ref(), "f2");
    }
}
