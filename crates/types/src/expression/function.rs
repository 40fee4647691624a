//! The functions of the form: a closed list, so that every program that opens a database has them all.

use super::tree::Kind;

/// A function, by what PostgreSQL calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `length` and `char_length` of a text: its characters; of bytes: how many.
    Length,
    /// `octet_length`
    OctetLength,
    /// `lower`
    Lower,
    /// `upper`
    Upper,
    /// `btrim`, `trim`: without blanks, or the characters of the second argument, at both ends.
    Trim,
    /// `ltrim`
    TrimStart,
    /// `rtrim`
    TrimEnd,
    /// `left`
    Left,
    /// `right`
    Right,
    /// `substr`, `substring`: from a character on, and so many of them.
    Substring,
    /// `strpos(text, sought)`, `position(sought IN text)`: from 1, or 0.
    Position,
    /// `starts_with`
    StartsWith,
    /// `||`
    Concatenate,
    /// `LIKE`, with `\` in front of what is meant literally.
    Like,
    /// `ILIKE`
    LikeIgnoringCase,
    /// `abs`
    Absolute,
    /// `sign`
    Sign,
    /// `round`, of a decimal also to so many digits after the point.
    Round,
    /// `ceil`, `ceiling`
    Ceiling,
    /// `floor`
    Floor,
    /// `trunc`
    Truncate,
    /// `now()`: the moment of the row.
    Now,
    /// `gen_random_uuid()`
    RandomUuid,
    /// `random()`: from 0 on, below 1.
    Random,
}

impl Function {
    /// All, in the order of the numbers that stand for them in the catalogue, from 1 on.
    pub(super) const ALL: [Function; 24] = [
        Function::Length,
        Function::OctetLength,
        Function::Lower,
        Function::Upper,
        Function::Trim,
        Function::TrimStart,
        Function::TrimEnd,
        Function::Left,
        Function::Right,
        Function::Substring,
        Function::Position,
        Function::StartsWith,
        Function::Concatenate,
        Function::Like,
        Function::LikeIgnoringCase,
        Function::Absolute,
        Function::Sign,
        Function::Round,
        Function::Ceiling,
        Function::Floor,
        Function::Truncate,
        Function::Now,
        Function::RandomUuid,
        Function::Random,
    ];

    /// Its name in SQL; of operators the name of the function that does the same.
    pub(super) fn name(self) -> &'static str {
        match self {
            Function::Length => "length",
            Function::OctetLength => "octet_length",
            Function::Lower => "lower",
            Function::Upper => "upper",
            Function::Trim => "btrim",
            Function::TrimStart => "ltrim",
            Function::TrimEnd => "rtrim",
            Function::Left => "left",
            Function::Right => "right",
            Function::Substring => "substr",
            Function::Position => "strpos",
            Function::StartsWith => "starts_with",
            Function::Concatenate => "||",
            Function::Like => "LIKE",
            Function::LikeIgnoringCase => "ILIKE",
            Function::Absolute => "abs",
            Function::Sign => "sign",
            Function::Round => "round",
            Function::Ceiling => "ceil",
            Function::Floor => "floor",
            Function::Truncate => "trunc",
            Function::Now => "now",
            Function::RandomUuid => "gen_random_uuid",
            Function::Random => "random",
        }
    }

    /// The function that SQL calls by this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Function> {
        let name = match name {
            "char_length" | "character_length" => "length",
            "trim" => "btrim",
            "substring" => "substr",
            "ceiling" => "ceil",
            "transaction_timestamp" | "statement_timestamp" | "current_timestamp" => "now",
            "uuidv4" => "gen_random_uuid",
            other => other,
        };
        Function::ALL.into_iter().find(|function| function.name() == name)
    }

    /// Whether it comes to something else for the same row.
    pub(super) fn is_volatile(self) -> bool {
        matches!(self, Function::Now | Function::RandomUuid | Function::Random)
    }

    /// The kinds of its arguments where they do not depend on each other; none where they are numbers.
    pub(super) fn parameters(self) -> Option<&'static [Kind]> {
        use Kind::{Int32, Text};
        Some(match self {
            Function::Lower | Function::Upper | Function::Length | Function::OctetLength => &[Text],
            Function::Trim | Function::TrimStart | Function::TrimEnd => &[Text, Text],
            Function::Left | Function::Right => &[Text, Int32],
            Function::Substring => &[Text, Int32, Int32],
            Function::Position
            | Function::StartsWith
            | Function::Concatenate
            | Function::Like
            | Function::LikeIgnoringCase => &[Text, Text],
            Function::Now | Function::RandomUuid | Function::Random => &[],
            Function::Absolute
            | Function::Sign
            | Function::Round
            | Function::Ceiling
            | Function::Floor
            | Function::Truncate => return None,
        })
    }

    /// How many arguments it needs.
    pub(super) fn arguments_min(self) -> usize {
        match self {
            Function::Trim | Function::TrimStart | Function::TrimEnd => 1,
            Function::Substring => 2,
            _ => self.parameters().map_or(1, <[Kind]>::len),
        }
    }

    /// What it comes to for arguments of these kinds; none if it does not take them.
    pub(super) fn result(self, arguments: &[Kind]) -> Option<Kind> {
        if let Some(parameters) = self.parameters() {
            let is_bytes = arguments == [Kind::Bytes]
                && matches!(self, Function::Length | Function::OctetLength);
            // Which counts the blanks at the end.
            let is_char = arguments == [Kind::Char] && self == Function::OctetLength;
            let suits =
                arguments.len() >= self.arguments_min() && parameters.starts_with(arguments);
            if !(suits || is_bytes || is_char) {
                return None;
            }
        }
        Some(match (self, arguments) {
            (
                Function::Lower
                | Function::Upper
                | Function::Trim
                | Function::TrimStart
                | Function::TrimEnd
                | Function::Left
                | Function::Right
                | Function::Substring
                | Function::Concatenate,
                _,
            ) => Kind::Text,
            (Function::Length | Function::OctetLength | Function::Position, _) => Kind::Int32,
            (Function::StartsWith | Function::Like | Function::LikeIgnoringCase, _) => {
                Kind::Boolean
            }
            (Function::Now, _) => Kind::TimestampTz,
            (Function::RandomUuid, _) => Kind::Uuid,
            (Function::Random, _) => Kind::Float64,
            (Function::Absolute, [kind]) if kind.is_any_number() => *kind,
            (
                Function::Round | Function::Truncate,
                [kind @ (Kind::Decimal | Kind::Numeric), Kind::Int32],
            ) => *kind,
            (
                Function::Sign
                | Function::Round
                | Function::Ceiling
                | Function::Floor
                | Function::Truncate,
                [kind @ (Kind::Decimal | Kind::Numeric | Kind::Float64)],
            ) => *kind,
            _ => return None,
        })
    }
}
