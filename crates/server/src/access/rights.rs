//! What can be granted, and on what.

/// A right on a table, a sequence, a type or a schema.
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
    /// be given its values. Of a type: to define something with it.
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

    /// Those on a type.
    pub(crate) const OF_TYPES: [Right; 1] = [Right::Usage];

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

/// Of what kind something is that rights are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// And views.
    Table,
    Sequence,
    /// Enumerated types and domains.
    Type,
    Schema,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Table, Kind::Sequence, Kind::Type, Kind::Schema];

    /// All rights that there are on it.
    pub(crate) fn rights(self) -> &'static [Right] {
        match self {
            Kind::Table => &Right::OF_TABLES,
            Kind::Sequence => &Right::OF_SEQUENCES,
            Kind::Type => &Right::OF_TYPES,
            Kind::Schema => &Right::OF_SCHEMAS,
        }
    }

    /// The rights of everyone as long as nobody has said otherwise.
    pub(crate) fn rights_of_everyone(self) -> &'static [Right] {
        match self {
            Kind::Type => &Right::OF_TYPES,
            Kind::Table | Kind::Sequence | Kind::Schema => &[],
        }
    }

    /// As `pg_default_acl` and the table of default rights have it.
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Kind::Table => "r",
            Kind::Sequence => "S",
            Kind::Type => "T",
            Kind::Schema => "n",
        }
    }

    /// As it is called where a right is refused that there is none of on it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Table => "relation",
            Kind::Sequence => "sequence",
            Kind::Type => "type",
            Kind::Schema => "schema",
        }
    }
}
