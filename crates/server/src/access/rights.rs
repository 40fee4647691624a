//! What can be granted.

/// A right on a table, a sequence or a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    Select,
    Insert,
    Update,
    Delete,
    Truncate,
    /// To reference its rows by a foreign key.
    References,
    /// There are no triggers: it is kept and shown, and lets nobody do anything.
    Trigger,
    /// Of a schema: without it nothing can be done with its tables. Everyone has that of `public`. Of a sequence: to
    /// be given its values.
    Usage,
    /// Of a schema: to make tables there.
    Create,
}

impl Right {
    /// Those on a table.
    pub(crate) const OF_TABLES: [Right; 7] = [
        Right::Select,
        Right::Insert,
        Right::Update,
        Right::Delete,
        Right::Truncate,
        Right::References,
        Right::Trigger,
    ];

    /// Those on a sequence.
    pub(crate) const OF_SEQUENCES: [Right; 3] = [Right::Select, Right::Update, Right::Usage];

    /// Those on a schema.
    pub(crate) const OF_SCHEMAS: [Right; 2] = [Right::Usage, Right::Create];

    /// All, in the order in which PostgreSQL shows their letters.
    pub(crate) const ALL: [Right; 9] = [
        Right::Insert,
        Right::Select,
        Right::Update,
        Right::Delete,
        Right::Truncate,
        Right::References,
        Right::Trigger,
        Right::Usage,
        Right::Create,
    ];

    /// As it stands in GRANT, and in the table of grants.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::Select => "SELECT",
            Right::Insert => "INSERT",
            Right::Update => "UPDATE",
            Right::Delete => "DELETE",
            Right::Truncate => "TRUNCATE",
            Right::References => "REFERENCES",
            Right::Trigger => "TRIGGER",
            Right::Usage => "USAGE",
            Right::Create => "CREATE",
        }
    }

    /// As lists of rights show it.
    pub(crate) fn letter(self) -> char {
        match self {
            Right::Select => 'r',
            Right::Insert => 'a',
            Right::Update => 'w',
            Right::Delete => 'd',
            Right::Truncate => 'D',
            Right::References => 'x',
            Right::Trigger => 't',
            Right::Usage => 'U',
            Right::Create => 'C',
        }
    }
}
