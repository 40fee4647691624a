//! Which of PostgreSQL's functions of a name a call means, so that constants in quotes and parameters among its
//! arguments have the types that the function takes.
//!
//! `signatures.txt` lists them, a name a line, as PostgreSQL 15's `pg_proc` has them, one entry for each number of
//! arguments; `...` behind a last one that may come several times. The choice is made by PostgreSQL's rules
//! (Function Type Resolution in its manual).

use std::collections::HashMap;
use std::sync::LazyLock;

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo, Ident, ObjectName, TimezoneInfo,
};
use onrush::{Clock, DataType};

use super::types::Type;
use crate::types::ColumnType;

/// The types that one function takes, called as `pg_type` calls them.
struct Signature {
    parameters: Vec<&'static str>,
    is_variadic: bool,
}

static SIGNATURES: LazyLock<HashMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
    let lines = include_str!("signatures.txt").lines();
    lines.filter_map(|line| line.split_once(": ")).map(|(name, all)| (name, read(all))).collect()
});

fn read(all: &'static str) -> Vec<Signature> {
    let one = |text: &'static str| {
        let mut parameters: Vec<&str> = text.split(' ').filter(|part| *part != "-").collect();
        let is_variadic = parameters.last() == Some(&"...");
        if is_variadic {
            parameters.pop();
        }
        Signature { parameters, is_variadic }
    };
    all.split(" | ").map(one).collect()
}

/// What constants among the arguments of a call are.
pub(super) enum Choice {
    /// Their types, each by its place, where it is known.
    Types(Vec<Option<&'static str>>),
    /// Several functions take them, none before the others.
    Ambiguous,
    /// The function takes arguments of any type, and none of them tells which.
    NoType,
    /// There is nothing to say of the function.
    Unknown,
}

/// Chooses among the functions of a name by the types of the arguments.
pub(super) fn choose(name: &str, arguments: &[Type]) -> Choice {
    let Some(all) = SIGNATURES.get(name) else { return Choice::Unknown };
    let given: Vec<Given> = arguments.iter().map(|argument| Given::of(*argument)).collect();
    let mut candidates: Vec<Vec<&'static str>> = all
        .iter()
        .filter_map(|signature| signature.of(given.len()))
        .filter(|candidate| {
            given.iter().zip(candidate).all(|(given, wanted)| given.goes_as(wanted))
        })
        .collect();
    if !given.contains(&Given::Untold) {
        keep_nearest(&mut candidates, &given);
        if candidates.len() > 1 {
            candidates = by_category(candidates, &given);
        }
        match candidates.len() {
            0 => return Choice::Unknown,
            1 => {}
            _ => return Choice::Ambiguous,
        }
        if let Some(only) = candidates.first()
            && lacks_type(only, &given)
        {
            return Choice::NoType;
        }
    }
    let types = (0..given.len()).map(|at| {
        let mut wanted = candidates.iter().map(|candidate| candidate[at]);
        let first = wanted.next().filter(|_| given[at] == Given::Constant)?;
        wanted.all(|other| other == first).then_some(first)
    });
    Choice::Types(types.collect())
}

impl Signature {
    /// The types of so many arguments.
    fn of(&self, count: usize) -> Option<Vec<&'static str>> {
        let own = self.parameters.len();
        if !self.is_variadic {
            return (own == count).then(|| self.parameters.clone());
        }
        let (last, before) = self.parameters.split_last()?;
        let last = last.strip_prefix('_').unwrap_or(last);
        let rest = count.checked_sub(before.len()).filter(|rest| *rest > 0)?;
        Some(before.iter().copied().chain(std::iter::repeat_n(last, rest)).collect())
    }
}

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Known(&'static str),
    /// An array of a type that is known.
    Array,
    Constant,
    Untold,
}

impl Given {
    fn of(argument: Type) -> Given {
        match argument {
            Type::Constant => Given::Constant,
            Type::Untold => Given::Untold,
            Type::Known(ColumnType::Char) => Given::Known("char"),
            Type::Known(ColumnType::Stored(DataType::Array(_)) | ColumnType::Array(_)) => {
                Given::Array
            }
            Type::Known(ColumnType::Stored(own)) => {
                name_of(own).map_or(Given::Untold, Given::Known)
            }
            Type::Known(ColumnType::Vector(_)) => Given::Untold,
        }
    }

    /// Whether it may stand where a type is wanted.
    fn goes_as(self, wanted: &str) -> bool {
        match self {
            Given::Constant | Given::Untold => true,
            _ if matches!(wanted, "any" | "anyelement" | "anycompatible") => true,
            Given::Array => wanted.starts_with('_') || is_any_array(wanted),
            Given::Known(_) if is_any_array(wanted) => false,
            Given::Known(own) => {
                own == wanted || is_polymorphic(wanted) || is_implicit(own, wanted)
            }
        }
    }

    fn is_exactly(self, wanted: &str) -> bool {
        matches!(self, Given::Known(own) if own == wanted)
    }
}

fn name_of(own: DataType) -> Option<&'static str> {
    Some(match own {
        DataType::Boolean => "bool",
        DataType::Int16 => "int2",
        DataType::Int32 => "int4",
        DataType::Int64 => "int8",
        DataType::Float32 => "float4",
        DataType::Float64 => "float8",
        DataType::Decimal { .. } | DataType::Numeric(_) => "numeric",
        DataType::Text => "text",
        DataType::Varchar(_) => "varchar",
        DataType::Char(_) => "bpchar",
        DataType::Name => "name",
        DataType::Bytes => "bytea",
        DataType::Date => "date",
        DataType::Time | DataType::Rounded(Clock::Time, _) => "time",
        DataType::TimeTz | DataType::Rounded(Clock::TimeTz, _) => "timetz",
        DataType::Timestamp | DataType::Rounded(Clock::Timestamp, _) => "timestamp",
        DataType::TimestampTz | DataType::Rounded(Clock::TimestampTz, _) => "timestamptz",
        DataType::Interval | DataType::Rounded(Clock::Interval(_), _) => "interval",
        DataType::Uuid => "uuid",
        DataType::Json => "json",
        DataType::Jsonb => "jsonb",
        DataType::Oid => "oid",
        DataType::Inet => "inet",
        DataType::Cidr => "cidr",
        DataType::MacAddress => "macaddr",
        _ => return None,
    })
}

/// Types with their categories, as `pg_type` has them.
const KNOWN: &[(&str, char)] = &[
    ("bool", 'B'),
    ("int2", 'N'),
    ("int4", 'N'),
    ("int8", 'N'),
    ("float4", 'N'),
    ("float8", 'N'),
    ("numeric", 'N'),
    ("money", 'N'),
    ("oid", 'N'),
    ("regclass", 'N'),
    ("text", 'S'),
    ("varchar", 'S'),
    ("bpchar", 'S'),
    ("name", 'S'),
    ("date", 'D'),
    ("time", 'D'),
    ("timetz", 'D'),
    ("timestamp", 'D'),
    ("timestamptz", 'D'),
    ("interval", 'T'),
    ("inet", 'I'),
    ("cidr", 'I'),
    ("macaddr", 'U'),
    ("bit", 'V'),
    ("bytea", 'U'),
    ("uuid", 'U'),
    ("json", 'U'),
    ("jsonb", 'U'),
    ("char", 'Z'),
];

fn category(name: &str) -> char {
    match name {
        _ if name.starts_with('_') => 'A',
        _ if is_polymorphic(name) => 'P',
        _ => KNOWN.iter().find(|(own, _)| *own == name).map_or('U', |(_, category)| *category),
    }
}

fn is_preferred(name: &str) -> bool {
    matches!(name, "bool" | "oid" | "float8" | "text" | "timestamptz" | "interval" | "inet")
}

fn is_polymorphic(name: &str) -> bool {
    name.starts_with("any")
}

fn is_any_array(name: &str) -> bool {
    matches!(name, "anyarray" | "anycompatiblearray")
}

/// The casts that PostgreSQL makes by itself.
fn is_implicit(from: &str, to: &str) -> bool {
    match from {
        "int2" => {
            matches!(to, "int4" | "int8" | "float4" | "float8" | "numeric" | "oid" | "regclass")
        }
        "int4" => matches!(to, "int8" | "float4" | "float8" | "numeric" | "oid" | "regclass"),
        "int8" => matches!(to, "float4" | "float8" | "numeric" | "oid" | "regclass"),
        "numeric" => matches!(to, "float4" | "float8"),
        "float4" => to == "float8",
        "text" | "varchar" | "bpchar" => {
            matches!(to, "text" | "varchar" | "bpchar" | "name")
                || to == "regclass" && from != "bpchar"
        }
        "name" | "char" => to == "text",
        "date" => matches!(to, "timestamp" | "timestamptz"),
        "timestamp" => to == "timestamptz",
        "time" => matches!(to, "interval" | "timetz"),
        "oid" => to == "regclass",
        "cidr" => to == "inet",
        _ => false,
    }
}

/// Keeps those that take most arguments as they are, and of these those that take most of them as a preferred type.
fn keep_nearest(candidates: &mut Vec<Vec<&'static str>>, given: &[Given]) {
    keep_most(candidates, |candidate| {
        given.iter().zip(candidate).filter(|(given, wanted)| given.is_exactly(wanted)).count()
    });
    keep_most(candidates, |candidate| {
        let is_near = |(given, wanted): &(&Given, &&'static str)| {
            given.is_exactly(wanted) || **given != Given::Constant && is_preferred(wanted)
        };
        given.iter().zip(candidate).filter(is_near).count()
    });
}

fn keep_most(candidates: &mut Vec<Vec<&'static str>>, count: impl Fn(&Vec<&'static str>) -> usize) {
    let most = candidates.iter().map(&count).max().unwrap_or(0);
    candidates.retain(|candidate| count(candidate) == most);
}

/// Those that take constants as what they are most likely to be: text, or else what all take them as.
fn by_category(candidates: Vec<Vec<&'static str>>, given: &[Given]) -> Vec<Vec<&'static str>> {
    let constants = || (0..given.len()).filter(|at| given[*at] == Given::Constant);
    let mut chosen = candidates.clone();
    for at in constants() {
        let categories = || candidates.iter().map(|candidate| category(candidate[at]));
        let own = match categories().any(|category| category == 'S') {
            true => 'S',
            false => {
                let first = categories().next().unwrap_or('U');
                if categories().any(|category| category != first) {
                    return of_one_type(candidates, given);
                }
                first
            }
        };
        chosen.retain(|candidate| category(candidate[at]) == own);
        if chosen.iter().any(|candidate| is_preferred(candidate[at])) {
            chosen.retain(|candidate| is_preferred(candidate[at]));
        }
    }
    if chosen.len() == 1 { chosen } else { of_one_type(candidates, given) }
}

/// Where all that is known is of one type, the constants are of it, too.
fn of_one_type(candidates: Vec<Vec<&'static str>>, given: &[Given]) -> Vec<Vec<&'static str>> {
    let mut known = given.iter().filter(|given| **given != Given::Constant);
    let Some(first @ Given::Known(own)) = known.next() else { return candidates };
    if known.any(|other| other != first) {
        return candidates;
    }
    let takes = |candidate: &&Vec<&'static str>| {
        candidate.iter().all(|wanted| Given::Known(own).goes_as(wanted))
    };
    let chosen: Vec<_> = candidates.iter().filter(takes).cloned().collect();
    if chosen.len() == 1 { chosen } else { candidates }
}

/// Whether all arguments that should tell the type of the result are constants.
fn lacks_type(candidate: &[&'static str], given: &[Given]) -> bool {
    let mut telling = candidate
        .iter()
        .zip(given)
        .filter(|(wanted, _)| is_polymorphic(wanted) && **wanted != "any")
        .map(|(wanted, given)| (wanted.starts_with("anycompatible"), *given))
        .peekable();
    // What is compatible with nothing is text.
    telling.peek().is_some() && telling.all(|(is_free, given)| !is_free && given == Given::Constant)
}

/// The type of an argument that is an array, as a cast has it.
pub(super) fn array(argument: Type) -> Option<SqlType> {
    let element = match argument {
        Type::Known(ColumnType::Stored(DataType::Array(element))) => *element,
        Type::Known(ColumnType::Array(element)) => element,
        _ => return None,
    };
    let element = match name_of(element)? {
        "text" | "varchar" | "bpchar" | "name" => SqlType::Text,
        other => written(other)?,
    };
    Some(SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None)))
}

/// The type of an argument, as a cast has it, whose values DataFusion knows as bytes, beside which no text stands.
pub(super) fn of_bytes(argument: Type) -> Option<SqlType> {
    let Type::Known(ColumnType::Stored(own)) = argument else { return None };
    match own.unrounded() {
        DataType::Uuid
        | DataType::TimeTz
        | DataType::Inet
        | DataType::Cidr
        | DataType::MacAddress => written(name_of(own)?),
        DataType::Enum(of) => {
            Some(SqlType::Custom(ObjectName::from(vec![Ident::new(of.note())]), Vec::new()))
        }
        _ => None,
    }
}

/// The type as a cast has it; none for those that constants in quotes are read as anyway.
pub(super) fn written(name: &str) -> Option<SqlType> {
    if let Some(element) = name.strip_prefix('_') {
        let element = match element {
            "text" => SqlType::Text,
            other => written(other)?,
        };
        return Some(SqlType::Array(ArrayElemTypeDef::SquareBracket(Box::new(element), None)));
    }
    let of_catalogue = |name: Ident| SqlType::Custom(ObjectName::from(vec![name]), Vec::new());
    Some(match name {
        "bool" => SqlType::Boolean,
        "int2" => SqlType::SmallInt(None),
        "int4" => SqlType::Integer(None),
        "int8" => SqlType::BigInt(None),
        "float4" => SqlType::Real,
        "float8" => SqlType::DoublePrecision,
        "numeric" => SqlType::Numeric(ExactNumberInfo::None),
        "bytea" => SqlType::Bytea,
        "date" => SqlType::Date,
        "time" => SqlType::Time(None, TimezoneInfo::None),
        "timetz" => SqlType::Time(None, TimezoneInfo::WithTimeZone),
        "timestamp" => SqlType::Timestamp(None, TimezoneInfo::None),
        "timestamptz" => SqlType::Timestamp(None, TimezoneInfo::WithTimeZone),
        "interval" => SqlType::Interval { fields: None, precision: None },
        "uuid" => SqlType::Uuid,
        "json" => SqlType::JSON,
        "jsonb" => SqlType::JSONB,
        "oid" | "inet" | "cidr" | "macaddr" => of_catalogue(Ident::new(name)),
        "char" => of_catalogue(Ident::with_quote('"', "char")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Type = Type::INTEGER;
    const TEXT: Type = Type::TEXT;

    fn types(name: &str, arguments: &[Type]) -> Vec<Option<&'static str>> {
        match choose(name, arguments) {
            Choice::Types(types) => types,
            _ => panic!("{name} has no types for {arguments:?}"),
        }
    }

    #[test]
    fn a_constant_is_text_where_a_function_takes_text() {
        assert_eq!(types("length", &[Type::Constant]), [Some("text")]);
        assert_eq!(types("substr", &[Type::Constant, INT]), [Some("text"), None]);
    }

    #[test]
    fn a_constant_is_of_the_preferred_type_of_its_kind() {
        assert_eq!(types("abs", &[Type::Constant]), [Some("float8")]);
    }

    #[test]
    fn a_constant_is_of_the_type_of_what_stands_beside_it() {
        assert_eq!(types("mod", &[INT, Type::Constant]), [None, Some("int4")]);
        assert_eq!(types("generate_series", &[INT, Type::Constant]), [None, Some("int4")]);
    }

    #[test]
    fn what_several_functions_take_is_ambiguous() {
        assert!(matches!(choose("isfinite", &[Type::Constant]), Choice::Ambiguous));
        assert!(matches!(choose("date_trunc", &[TEXT, Type::Constant]), Choice::Ambiguous));
    }

    #[test]
    fn a_constant_alone_does_not_tell_the_type_of_an_array() {
        assert!(matches!(choose("array_length", &[Type::Constant, INT]), Choice::NoType));
    }

    #[test]
    fn what_is_untold_leaves_what_all_functions_of_the_name_agree_on() {
        assert_eq!(types("repeat", &[Type::Untold, Type::Constant]), [None, Some("int4")]);
        assert_eq!(types("mod", &[Type::Untold, Type::Constant]), [None, None]);
    }
}
