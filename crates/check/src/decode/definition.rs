//! Table definitions as the catalogue keeps them.

use onrush_types::expression::TypedExpression;
use onrush_types::{Clock, CompositeType, DataType, EnumType, IntervalFields, KeyStrategy};

use super::field::Rule;
use super::indexes::{self, EntriesOf, Index};
use super::input::Input;
use super::{domains, labels, links, views};

const NAME_BYTES_MAX: usize = 128;
const COLUMNS_MAX: u16 = 1024;
const CHECK_BYTES_MAX: usize = 8000;
/// Most fields of a composite type.
const FIELDS_MAX: usize = 1024;
/// How deep composite types are inside of each other, at most.
const COMPOSITE_DEPTH_MAX: u32 = 16;

/// A table as declared.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) version: u16,
    pub(crate) columns: Vec<Column>,
    /// Positions of the key columns, in key order.
    pub(crate) key: Vec<usize>,
    /// Of a table that was altered.
    pub(crate) history: Option<History>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) entries_of: Option<EntriesOf>,
    /// The number of the table of long values.
    pub(crate) long_values: Option<u32>,
}

impl Definition {
    /// Of a table of pieces: whose long values they are of.
    pub(crate) fn pieces_of(&self) -> Option<u32> {
        let of = self.entries_of.as_ref().filter(|of| of.orders.is_empty());
        of.map(|of| of.table)
    }
}

/// How an altered table came to its columns.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct History {
    pub(crate) first_version: u16,
    /// For each column its number, and the first version whose rows have it.
    pub(crate) columns: Vec<(u16, u16)>,
    /// Number, and the first versions whose rows have it and do not have it any more.
    pub(crate) dropped: Vec<(u16, u16, u16, Column)>,
}

/// One column.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
    pub(crate) default: Default,
}

/// Where a column's value comes from when none is given.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Default {
    None,
    /// Also the constant NULL.
    Constant,
    Now,
    /// Computed for each row.
    Expression,
    Key(KeyStrategy),
}

impl Column {
    /// Whether the log leaves the column out where it is at its default.
    pub(crate) fn is_elided(&self) -> bool {
        match self.default {
            Default::Constant => true,
            Default::None => self.nullable,
            Default::Now | Default::Key(_) | Default::Expression => false,
        }
    }

    /// The key strategy of a generated column.
    pub(crate) fn strategy(&self) -> Option<KeyStrategy> {
        match self.default {
            Default::Key(strategy) => Some(strategy),
            _ => None,
        }
    }
}

pub(super) type Read<T> = Result<T, &'static str>;
pub(super) const SHORT: &str = "the definition ends too early";

/// Reads a definition and sees whether it is sound; the error says what is wrong with it.
pub(crate) fn read_definition(bytes: &[u8]) -> Read<Definition> {
    let mut input = Input::new(bytes);
    if input.take(4).ok_or(SHORT)? != b"ORTD" {
        return Err("the definition does not start as one");
    }
    let format = input.u8().ok_or(SHORT)?;
    if !(1..=18).contains(&format) {
        return Err("the definition is of a format that is not known");
    }
    let version = input.u16().ok_or(SHORT)?;
    let name = read_name(&mut input)?;
    let count = input.u16().ok_or(SHORT)?;
    if !(1..=COLUMNS_MAX).contains(&count) {
        return Err("a table has 1 to 1,024 columns");
    }
    let mut columns: Vec<Column> = Vec::new();
    for _ in 0..count {
        let column = read_column(&mut input)?;
        if columns.iter().any(|other| other.name == column.name) {
            return Err("two columns have one name");
        }
        columns.push(column);
    }
    let mut key = Vec::new();
    for _ in 0..input.u16().ok_or(SHORT)? {
        let position = usize::from(input.u16().ok_or(SHORT)?);
        match columns.get(position) {
            None => return Err("a key column does not exist"),
            Some(_) if key.contains(&position) => return Err("a key column stands twice"),
            Some(_) => key.push(position),
        }
    }
    if key.is_empty() {
        return Err("the table has no key");
    }
    if format > 1 && !matches!((format, input.u8().ok_or(SHORT)?), (_, 1) | (3..=18, 0)) {
        return Err("how the rows are logged is not known");
    }
    let was_altered = match format {
        4.. => read_flag(&mut input)?,
        _ => format == 3,
    };
    let history = match was_altered {
        true => Some(read_history(&mut input, version, &columns, &key)?),
        false => None,
    };
    let live = |number: u16| match &history {
        Some(past) => past.columns.iter().any(|(own, _)| *own == number),
        None => usize::from(number) < columns.len(),
    };
    let checks = match format {
        4.. => read_checks(&mut input, format, live)?,
        _ => 0,
    };
    if format == 4 && checks == 0 {
        return Err("a table without checks is of a format with them");
    }
    let (indexes, entries_of) = match format {
        6.. => indexes::read(&mut input, format, live)?,
        _ => (Vec::new(), None),
    };
    if format > 6 && !links::read(&mut input, live)? && format == 7 {
        return Err("a table without foreign keys is of a format with them");
    }
    let is_view = format == 8 || format > 8 && read_flag(&mut input)?;
    if is_view {
        views::read(&mut input, live)?;
    }
    if format >= 11 {
        let length = usize::from(input.u16().ok_or(SHORT)?);
        if length > 0 {
            check_name(input.take(length).ok_or(SHORT)?)?;
        }
        if read_flag(&mut input)? {
            labels::read(&mut input)?;
        }
    }
    let keeps_rows = format == 12 || format >= 13 && is_view;
    if keeps_rows && !(is_view && matches!(input.u8().ok_or(SHORT)?, 1 | 2)) {
        return Err("which rows a view keeps is not known");
    }
    let long_values = match format {
        13 => Some(input.u32().ok_or(SHORT)?),
        14.. => Some(input.u32().ok_or(SHORT)?).filter(|table| *table != 0),
        _ => None,
    };
    if format >= 15 {
        domains::read(&mut input, format, &columns, live)?;
    }
    if format >= 16 && !read_flag(&mut input)? && format == 16 {
        return Err("a table that is no composite type is of a format with them");
    }
    if format >= 17 {
        for _ in 0..input.u16().ok_or(SHORT)? {
            if !live(input.u16().ok_or(SHORT)?) {
                return Err("the key includes a column that does not exist");
            }
        }
        for _ in 0..input.u16().ok_or(SHORT)? {
            if usize::from(input.u16().ok_or(SHORT)?) >= checks {
                return Err("a check that is not validated does not exist");
            }
        }
    }
    if format >= 18 && !read_flag(&mut input)? {
        return Err("a table whose rows may be changed is of a format for others");
    }
    let ordered = entries_of.as_ref().map_or(0, |of| of.orders.len());
    if ordered > key.len() || key.iter().skip(ordered).any(|position| columns[*position].nullable) {
        return Err("a key column may be NULL");
    }
    if !input.is_empty() {
        return Err("bytes are left over after the definition");
    }
    Ok(Definition { name, version, columns, key, history, indexes, entries_of, long_values })
}

fn read_history(
    input: &mut Input<'_>,
    version: u16,
    columns: &[Column],
    key: &[usize],
) -> Read<History> {
    let first_version = input.u16().ok_or(SHORT)?;
    if first_version >= version {
        return Err("a table that was altered has its first version still");
    }
    let mut since = Vec::new();
    for (position, column) in columns.iter().enumerate() {
        let (number, from) = (input.u16().ok_or(SHORT)?, input.u16().ok_or(SHORT)?);
        if from < first_version || from > version || key.contains(&position) && from > first_version
        {
            return Err("a column is of a version that it cannot be of");
        }
        match input.u8().ok_or(SHORT)? {
            0 => {}
            1 => {
                let length = usize::from(input.u16().ok_or(SHORT)?);
                let bytes = input.take(length).ok_or(SHORT)?;
                Rule::of(column.data_type).check_any(bytes)?;
            }
            _ => return Err("a flag is neither 0 nor 1"),
        }
        since.push((number, from));
    }
    let mut dropped = Vec::new();
    for _ in 0..input.u16().ok_or(SHORT)? {
        let number = input.u16().ok_or(SHORT)?;
        let (from, until) = (input.u16().ok_or(SHORT)?, input.u16().ok_or(SHORT)?);
        if from < first_version || from >= until || until > version {
            return Err("a dropped column is of versions that it cannot be of");
        }
        dropped.push((number, from, until, read_column(input)?));
    }
    let history = History { first_version, columns: since, dropped };
    if !history.has_each_number_once() {
        return Err("the numbers of the columns are not each there once");
    }
    Ok(history)
}

impl History {
    /// Whether the columns of every version have each a number of their own, and none is left out.
    fn has_each_number_once(&self) -> bool {
        // Each column as it was, and from which version on and up to which, those of one number behind each other.
        let live = self.columns.iter().map(|(number, from)| (*number, *from, u16::MAX));
        let gone = self.dropped.iter().map(|(number, from, until, _)| (*number, *from, *until));
        let mut forms: Vec<(u16, u16, u16)> = gone.clone().chain(live.clone()).collect();
        forms.sort_unstable();
        let follows = |pair: &[(u16, u16, u16)]| match pair[1].0.checked_sub(pair[0].0) {
            Some(0) => pair[0].2 <= pair[1].1,
            Some(1) => true,
            _ => false,
        };
        let begins = forms.first().is_some_and(|(number, ..)| *number == 0);
        let is_one_row = begins && forms.windows(2).all(follows);
        let live_ascends = live.clone().zip(live.skip(1)).all(|(one, next)| one.0 < next.0);
        let gone_ascends = gone.clone().zip(gone.skip(1)).all(|(one, next)| one < next);
        is_one_row && live_ascends && gone_ascends && forms.len() <= usize::from(COLUMNS_MAX)
    }
}

/// Reads the checks of a table whose columns have the numbers that `live` tells; how many there are.
fn read_checks(input: &mut Input<'_>, format: u8, live: impl Fn(u16) -> bool) -> Read<usize> {
    let mut names: Vec<String> = Vec::new();
    for _ in 0..input.u16().ok_or(SHORT)? {
        let name = read_name(input)?;
        if names.contains(&name) {
            return Err("two checks have one name");
        }
        names.push(name);
        for _ in 0..input.u16().ok_or(SHORT)? {
            if !live(input.u16().ok_or(SHORT)?) {
                return Err("a check looks at a column that does not exist");
            }
        }
        read_expression(input)?;
        if format > 4 {
            read_form(input)?;
        }
    }
    Ok(names.len())
}

/// Reads an expression as it was written.
pub(super) fn read_expression(input: &mut Input<'_>) -> Read<()> {
    let length = usize::from(input.u16().ok_or(SHORT)?);
    let expression = input.take(length).ok_or(SHORT)?;
    if length > CHECK_BYTES_MAX || std::str::from_utf8(expression).is_err() {
        return Err("an expression is too long, or not UTF-8");
    }
    Ok(())
}

/// Reads the form in which an expression is evaluated, if it has one.
pub(super) fn read_form(input: &mut Input<'_>) -> Read<()> {
    let length = usize::from(input.u16().ok_or(SHORT)?);
    match input.take(length).ok_or(SHORT)? {
        [] => Ok(()),
        form => TypedExpression::from_bytes(form).map(drop),
    }
}

/// Reads what is computed of the columns of a row, whose numbers `live` tells.
pub(super) fn read_row_expression(input: &mut Input<'_>, live: impl Fn(u16) -> bool) -> Read<()> {
    for _ in 0..input.u16().ok_or(SHORT)? {
        if !live(input.u16().ok_or(SHORT)?) {
            return Err("an expression looks at a column that does not exist");
        }
    }
    read_expression(input)?;
    read_form(input)
}

pub(super) fn read_flag(input: &mut Input<'_>) -> Read<bool> {
    match input.u8().ok_or(SHORT)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err("a flag is neither 0 nor 1"),
    }
}

impl Definition {
    /// The number of a column, which it keeps whatever is added or dropped.
    pub(crate) fn column_number(&self, column: usize) -> usize {
        let known = self.history.as_ref().and_then(|history| history.columns.get(column));
        known.map_or(column, |(number, _)| usize::from(*number))
    }

    /// The columns outside the key in rows of `version`, with their numbers and, if they are still
    /// there, their positions.
    pub(crate) fn stored_at(&self, version: u16) -> Vec<(usize, Option<usize>, &Column)> {
        let since = |position: usize| match &self.history {
            Some(history) => history.columns[position].1,
            None => 0,
        };
        let outside = |position: &usize| !self.key.contains(position);
        let live = (0..self.columns.len()).filter(outside).filter(|at| since(*at) <= version);
        let mut stored: Vec<_> =
            live.map(|at| (self.column_number(at), Some(at), &self.columns[at])).collect();
        for (number, from, until, column) in self.history.iter().flat_map(|past| &past.dropped) {
            if (*from..*until).contains(&version) {
                stored.push((usize::from(*number), None, column));
            }
        }
        stored.sort_by_key(|(number, ..)| *number);
        stored
    }

    /// The versions with the same columns, oldest first, the newest last: from the first on, and up to
    /// the second.
    pub(crate) fn versions(&self) -> Vec<(u16, u16)> {
        let Some(history) = &self.history else { return vec![(self.version, self.version)] };
        let added = history.columns.iter().map(|(_, from)| *from);
        let dropped = history.dropped.iter().flat_map(|(_, from, until, _)| [*from, *until]);
        let mut starts: Vec<u16> = added.chain(dropped).chain([history.first_version]).collect();
        starts.retain(|start| *start < self.version);
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).map(|next| next - 1).chain([self.version - 1]);
        let mut versions: Vec<(u16, u16)> = starts.iter().copied().zip(ends).collect();
        versions.push((self.version, self.version));
        versions
    }
}

pub(super) fn read_name(input: &mut Input<'_>) -> Read<String> {
    let length = usize::from(input.u16().ok_or(SHORT)?);
    check_name(input.take(length).ok_or(SHORT)?).map(str::to_owned)
}

fn check_name(bytes: &[u8]) -> Read<&str> {
    let name = std::str::from_utf8(bytes).map_err(|_| "a name is not UTF-8")?;
    let is_sound =
        (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if is_sound { Ok(name) } else { Err("a name is empty, too long or not printable") }
}

fn read_column(input: &mut Input<'_>) -> Read<Column> {
    let name = read_name(input)?;
    let data_type = read_type(input)?;
    let nullable = read_flag(input)?;
    let default = match input.u8().ok_or(SHORT)? {
        0 => Default::None,
        1 => {
            let length = usize::from(input.u16().ok_or(SHORT)?);
            Rule::of(data_type).check_any(input.take(length).ok_or(SHORT)?)?;
            Default::Constant
        }
        2 if is_timestamp(data_type) => Default::Now,
        3 | 7 => Default::Key(read_strategy(input, data_type)?),
        4 if nullable => Default::Constant,
        5 | 8 => {
            read_expression(input)?;
            Default::Expression
        }
        6 => {
            read_expression(input)?;
            read_form(input)?;
            Default::Expression
        }
        9 => {
            // Those that it looks at may stand behind it.
            read_row_expression(input, |_| true)?;
            Default::Expression
        }
        _ => return Err("a default is not known, or not one for its column"),
    };
    Ok(Column { name, data_type, nullable, default })
}

fn is_timestamp(data_type: DataType) -> bool {
    use DataType::{Date, Time, Timestamp, TimestampTz};
    matches!(data_type.unrounded(), Date | Time | Timestamp | TimestampTz)
}

pub(super) fn read_type(input: &mut Input<'_>) -> Read<DataType> {
    read_nested_type(input, 0)
}

fn read_nested_type(input: &mut Input<'_>, depth: u32) -> Read<DataType> {
    match input.u8().ok_or(SHORT)? {
        27 => {
            let tag = input.u8().ok_or(SHORT)?;
            read_element(tag, input)?.array().ok_or("an array is of elements that it cannot have")
        }
        32 if depth == COMPOSITE_DEPTH_MAX => {
            Err("composite types are too deep inside of each other")
        }
        32 => {
            let (id, name) = (input.u32().ok_or(SHORT)?, read_name(input)?);
            let count = usize::from(input.u16().ok_or(SHORT)?);
            if count > FIELDS_MAX {
                return Err("a composite type has too many fields");
            }
            let mut fields = Vec::new();
            for _ in 0..count {
                let name = read_name(input)?;
                fields.push((name.into(), read_nested_type(input, depth + 1)?));
            }
            Ok(DataType::Composite(CompositeType::new(id, &name, fields)))
        }
        tag => read_element(tag, input),
    }
}

/// A type that is neither an array nor composite, behind its tag.
fn read_element(tag: u8, input: &mut Input<'_>) -> Read<DataType> {
    let length = |input: &mut Input<'_>| match input.u16() {
        Some(length @ 1..=8000) => Ok(length),
        _ => Err("a text has a length of 1 to 8,000 bytes"),
    };
    Ok(match tag {
        1 => DataType::Boolean,
        2 => DataType::Int16,
        3 => DataType::Int32,
        4 => DataType::Int64,
        5 => DataType::Float32,
        6 => DataType::Float64,
        7 => {
            let (precision, scale) = (input.u8().ok_or(SHORT)?, input.u8().ok_or(SHORT)?);
            if !(1..=28).contains(&precision) || scale > precision {
                return Err("a decimal has 1 to 28 digits, and no more of them after the point");
            }
            DataType::Decimal { precision, scale }
        }
        8 => DataType::Char(length(input)?),
        9 => DataType::Varchar(match input.u16() {
            Some(length @ 1..) => length.into(),
            _ => return Err("a text has a length of at least one byte"),
        }),
        28 => match input.u32() {
            Some(length @ 65_536..=10_485_760) => DataType::Varchar(length),
            _ => return Err("a long text has a length of 65,536 to 10,485,760 bytes"),
        },
        10 => DataType::Text,
        11 => DataType::Bytes,
        12 => DataType::Uuid,
        13 => DataType::Date,
        14 => DataType::Time,
        15 => DataType::Timestamp,
        16 => DataType::TimestampTz,
        17 => DataType::Json,
        18 => DataType::Jsonb,
        19 => DataType::Interval,
        21 => DataType::Name,
        22 => DataType::Oid,
        23 => DataType::TimeTz,
        29 => DataType::Inet,
        30 => DataType::Cidr,
        31 => DataType::MacAddress,
        20 => {
            let (what, digits) = (input.u8().ok_or(SHORT)?, input.u8().ok_or(SHORT)?);
            let fields = if what == 4 { input.u8().ok_or(SHORT)? } else { 0 };
            rounded(what, digits, fields)?
        }
        24 => DataType::Numeric(None),
        25 => {
            let (precision, scale) = (input.u16().ok_or(SHORT)?, input.u16().ok_or(SHORT)?);
            let scale = scale.cast_signed();
            if !(1..=1000).contains(&precision) || !(-1000..=1000).contains(&scale) {
                return Err("a numeric has 1 to 1000 digits, and its point is no further away");
            }
            if precision <= 28 && (0..=i32::from(precision)).contains(&i32::from(scale)) {
                return Err("a numeric is one that has space in a decimal");
            }
            DataType::Numeric(Some((precision, scale)))
        }
        26 => {
            let (id, name) = (input.u32().ok_or(SHORT)?, read_name(input)?);
            DataType::Enum(EnumType::new(id, &name, &labels::read(input)?))
        }
        _ => return Err("a type is not known"),
    })
}

/// A type of fewer digits of seconds than six, 255 for all; an interval of these fields.
fn rounded(what: u8, digits: u8, fields: u8) -> Read<DataType> {
    let clock = match what {
        1 => Clock::Time,
        2 => Clock::Timestamp,
        3 => Clock::TimestampTz,
        4 => match IntervalFields::EACH.get(usize::from(fields)) {
            Some(fields) => Clock::Interval(*fields),
            None => return Err("the fields of an interval are not known"),
        },
        5 => Clock::TimeTz,
        _ => return Err("what is rounded is not known"),
    };
    match digits {
        0..=6 => Ok(DataType::Rounded(clock, Some(digits))),
        255 => Ok(DataType::Rounded(clock, None)),
        _ => Err("seconds have up to six digits"),
    }
}

fn read_strategy(input: &mut Input<'_>, data_type: DataType) -> Read<KeyStrategy> {
    let strategy = match input.u8().ok_or(SHORT)? {
        1 => {
            let start = i64::from_le_bytes(input.array().ok_or(SHORT)?);
            match input.u8().ok_or(SHORT)? {
                strict @ 0..=1 => KeyStrategy::Identity { start, strict: strict == 1 },
                _ => return Err("a flag is neither 0 nor 1"),
            }
        }
        2 => KeyStrategy::UuidV4,
        3 => KeyStrategy::UuidV7,
        4 => KeyStrategy::SequentialGuid,
        5 => KeyStrategy::SessionOffset,
        6 => KeyStrategy::NodeOffset { node: input.u32().ok_or(SHORT)? },
        7 => KeyStrategy::BitReversed,
        8 => KeyStrategy::HashPrefix,
        _ => return Err("a key strategy is not known"),
    };
    let fits = match (strategy, data_type) {
        (KeyStrategy::Identity { .. }, DataType::Int16 | DataType::Int32 | DataType::Int64) => true,
        (
            KeyStrategy::UuidV4 | KeyStrategy::UuidV7 | KeyStrategy::SequentialGuid,
            DataType::Uuid,
        ) => true,
        (KeyStrategy::NodeOffset { node }, DataType::Int64) => node <= 92_232,
        (
            KeyStrategy::SessionOffset | KeyStrategy::BitReversed | KeyStrategy::HashPrefix,
            DataType::Int64,
        ) => true,
        _ => false,
    };
    if fits { Ok(strategy) } else { Err("a key strategy does not fit its column") }
}
