//! What a path finds in JSON.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::{Comparison, JsonPath, Predicate, Step};
use crate::error::QueryError;
use crate::functions::json_type_name;
use crate::numeric::of_text;

/// Why nothing more is found.
#[derive(Debug)]
pub(crate) enum Fault {
    /// What a statement may ask not to be told; a predicate is unknown then.
    Soft(QueryError),
    Hard(QueryError),
}

impl Fault {
    pub(crate) fn told(self) -> QueryError {
        match self {
            Fault::Soft(error) | Fault::Hard(error) => error,
        }
    }
}

type Result<T> = std::result::Result<T, Fault>;

/// Whether to look on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Enough,
}

/// Takes what is found.
type Found<'f> = dyn FnMut(&Json) -> Flow + 'f;

/// A path in one JSON, with the values of its variables.
#[derive(Clone, Copy)]
pub(crate) struct Run<'r> {
    pub(crate) path: &'r JsonPath,
    pub(crate) root: &'r Json,
    pub(crate) variables: Option<&'r Json>,
}

/// What depends on where in the path it is.
#[derive(Clone, Copy)]
struct At<'a> {
    /// `@`.
    current: &'a Json,
    /// How many elements the array has one of whose elements is asked for.
    size: usize,
    /// Whether it is no error that something is not there.
    is_lenient: bool,
}

fn soft<T>(state: &'static str, message: impl Into<String>) -> Result<T> {
    Err(Fault::Soft(QueryError::refused(state, message.into())))
}

impl Run<'_> {
    /// All that is found, or, where errors are passed over, what is found before the first.
    pub(crate) fn all_until_fault(&self, is_silent: bool) -> Result<Vec<Json>> {
        let mut all = Vec::new();
        let steps = &self.path.steps;
        let run = self.steps(steps, self.root, self.begin(), &mut |item| {
            all.push(item.clone());
            Flow::On
        });
        match run {
            Err(Fault::Soft(_)) if is_silent => Ok(all),
            other => other.map(|_| all),
        }
    }

    /// Whether something is found; in strict mode it is looked for errors behind it, too.
    pub(crate) fn finds(&self) -> Result<bool> {
        self.exists(&self.path.steps, self.root, self.begin())
    }

    fn begin(&self) -> At<'_> {
        At { current: self.root, size: 0, is_lenient: self.path.is_lax }
    }

    fn exists(&self, steps: &[Step], item: &Json, at: At<'_>) -> Result<bool> {
        let mut found = false;
        let first = if self.path.is_lax { Flow::Enough } else { Flow::On };
        self.steps(steps, item, at, &mut |_| {
            found = true;
            first
        })?;
        Ok(found)
    }

    fn steps(
        &self,
        steps: &[Step],
        item: &Json,
        at: At<'_>,
        found: &mut Found<'_>,
    ) -> Result<Flow> {
        self.run(steps, item, at, self.path.is_lax, found)
    }

    /// The steps from here on. `unwraps` says whether the elements of an array stand for it.
    fn run(
        &self,
        steps: &[Step],
        item: &Json,
        at: At<'_>,
        unwraps: bool,
        found: &mut Found<'_>,
    ) -> Result<Flow> {
        let Some((step, rest)) = steps.split_first() else { return Ok(found(item)) };
        let is_lax = self.path.is_lax;
        if let (Step::Key(_) | Step::AnyKey | Step::Filter(_), Json::Array(items), true) =
            (step, item, unwraps)
        {
            return self.each(items.iter(), steps, at, false, found);
        }
        match (step, item) {
            (Step::Key(key), Json::Object(object)) => match object.get(key) {
                Some(value) => self.steps(rest, value, at, found),
                None if at.is_lenient => Ok(Flow::On),
                None => soft("2203A", format!("JSON object does not contain key \"{key}\"")),
            },
            (Step::AnyKey, Json::Object(object)) => {
                let mut fields: Vec<(&String, &Json)> = object.iter().collect();
                fields.sort_by_key(|(key, _)| (key.len(), *key));
                self.each(fields.into_iter().map(|(_, value)| value), rest, at, is_lax, found)
            }
            (Step::AnyElement, Json::Array(items)) => {
                self.each(items.iter(), rest, at, is_lax, found)
            }
            (Step::AnyElement, _) if is_lax => self.steps(rest, item, at, found),
            (Step::Key(_) | Step::AnyKey | Step::AnyElement, _) if at.is_lenient => Ok(Flow::On),
            (Step::Key(_), _) => {
                soft("2203A", "jsonpath member accessor can only be applied to an object")
            }
            (Step::AnyKey, _) => {
                soft("2203C", "jsonpath wildcard member accessor can only be applied to an object")
            }
            (Step::AnyElement, _) => {
                soft("22039", "jsonpath wildcard array accessor can only be applied to an array")
            }
            (Step::Elements(places), _) => self.elements(places, rest, item, at, found),
            (Step::Inside(first, last), _) => {
                let lenient = At { is_lenient: true, ..at };
                if *first == 0 && self.steps(rest, item, lenient, found)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
                self.inside(item, 1, (*first, *last), rest, lenient, found)
            }
            (Step::Filter(predicate), _) => {
                match self.truth(predicate, item, At { current: item, ..at })? {
                    Some(true) => self.steps(rest, item, at, found),
                    _ => Ok(Flow::On),
                }
            }
            (Step::Truth(predicate), _) => {
                let truth = self.truth(predicate, item, at)?.map_or(Json::Null, Json::Bool);
                self.steps(rest, &truth, at, found)
            }
            (Step::Root, _) => self.steps(rest, self.root, at, found),
            (Step::Current, _) => self.steps(rest, at.current, at, found),
            (Step::Last, _) => {
                let last = i64::try_from(at.size).unwrap_or(i64::MAX) - 1;
                self.steps(rest, &Json::from(last), at, found)
            }
            (Step::Value(value), _) => self.steps(rest, value, at, found),
            (Step::Variable(name), _) => {
                match self.variables.and_then(|variables| variables.get(name)) {
                    Some(value) => self.steps(rest, value, at, found),
                    None => {
                        let message = format!("could not find jsonpath variable \"{name}\"");
                        Err(Fault::Hard(QueryError::refused("42704", message)))
                    }
                }
            }
            (Step::Type, _) => self.steps(rest, &Json::from(json_type_name(item)), at, found),
            (Step::Size, Json::Array(items)) => {
                self.steps(rest, &Json::from(items.len()), at, found)
            }
            (Step::Size, _) if is_lax => self.steps(rest, &Json::from(1), at, found),
            (Step::Size, _) if at.is_lenient => Ok(Flow::On),
            (Step::Size, _) => {
                soft("22039", "jsonpath item method .size() can only be applied to an array")
            }
        }
    }

    /// The steps of each of several.
    fn each<'i>(
        &self,
        items: impl Iterator<Item = &'i Json>,
        steps: &[Step],
        at: At<'_>,
        unwraps: bool,
        found: &mut Found<'_>,
    ) -> Result<Flow> {
        for item in items {
            if self.run(steps, item, at, unwraps, found)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    fn elements(
        &self,
        places: &[(Vec<Step>, Option<Vec<Step>>)],
        rest: &[Step],
        item: &Json,
        at: At<'_>,
        found: &mut Found<'_>,
    ) -> Result<Flow> {
        let one = std::slice::from_ref(item);
        let items = match item {
            Json::Array(items) => items.as_slice(),
            _ if self.path.is_lax => one,
            _ if at.is_lenient => return Ok(Flow::On),
            _ => return soft("22039", "jsonpath array accessor can only be applied to an array"),
        };
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let inside = At { size: items.len(), ..at };
        for (from, to) in places {
            let first = self.place(from, item, inside)?;
            let last = match to {
                Some(to) => self.place(to, item, inside)?,
                None => first,
            };
            if !at.is_lenient && (first < 0 || first > last || last >= count) {
                return soft("22033", "jsonpath array subscript is out of bounds");
            }
            for place in first.max(0)..=last.min(count - 1) {
                let Some(element) = usize::try_from(place).ok().and_then(|at| items.get(at)) else {
                    continue;
                };
                if self.steps(rest, element, inside, found)? == Flow::Enough {
                    return Ok(Flow::Enough);
                }
            }
        }
        Ok(Flow::On)
    }

    /// The place of an element.
    fn place(&self, steps: &[Step], item: &Json, at: At<'_>) -> Result<i64> {
        let mut places = Vec::new();
        self.steps(steps, item, at, &mut |place| {
            places.push(place.clone());
            Flow::On
        })?;
        let [Json::Number(place)] = places.as_slice() else {
            return soft("22033", "jsonpath array subscript is not a single numeric value");
        };
        let place = of_text(&place.to_string()).map_err(Fault::Hard)?.to_f64().trunc();
        match place {
            place if place.abs() <= f64::from(i32::MAX) => Ok(place as i64),
            _ => soft("22033", "jsonpath array subscript is out of integer range"),
        }
    }

    /// What is so many levels inside.
    fn inside(
        &self,
        item: &Json,
        level: u32,
        (first, last): (u32, u32),
        rest: &[Step],
        at: At<'_>,
        found: &mut Found<'_>,
    ) -> Result<Flow> {
        if level > last {
            return Ok(Flow::On);
        }
        let inner: Vec<&Json> = match item {
            Json::Array(items) => items.iter().collect(),
            Json::Object(object) => {
                let mut fields: Vec<(&String, &Json)> = object.iter().collect();
                fields.sort_by_key(|(key, _)| (key.len(), *key));
                fields.into_iter().map(|(_, value)| value).collect()
            }
            _ => return Ok(Flow::On),
        };
        let is_leaf = |item: &Json| !item.is_array() && !item.is_object();
        let leaves = first == u32::MAX && last == u32::MAX;
        for item in inner {
            let is_wanted = level >= first || leaves && is_leaf(item);
            if is_wanted && self.run(rest, item, at, self.path.is_lax, found)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
            if level < last
                && self.inside(item, level + 1, (first, last), rest, at, found)? == Flow::Enough
            {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::On)
    }

    /// True, false, or unknown.
    fn truth(&self, predicate: &Predicate, item: &Json, at: At<'_>) -> Result<Option<bool>> {
        Ok(match predicate {
            Predicate::And(left, right) => match self.truth(left, item, at)? {
                Some(false) => Some(false),
                left => match self.truth(right, item, at)? {
                    Some(true) => left,
                    right => right,
                },
            },
            Predicate::Or(left, right) => match self.truth(left, item, at)? {
                Some(true) => Some(true),
                left => match self.truth(right, item, at)? {
                    Some(false) => left,
                    right => right,
                },
            },
            Predicate::Not(inner) => self.truth(inner, item, at)?.map(|truth| !truth),
            Predicate::IsUnknown(inner) => Some(self.truth(inner, item, at)?.is_none()),
            Predicate::Exists(steps) => known(self.exists(steps, item, at))?,
            Predicate::Compare(comparison, left, right) => {
                let values = (
                    known(self.values(left, item, at, true))?,
                    known(self.values(right, item, at, true))?,
                );
                let (Some(left), Some(right)) = values else { return Ok(None) };
                self.any(&left, &right, |left, right| compare(*comparison, left, right))?
            }
            Predicate::StartsWith(whole, start) => {
                let Some(whole) = known(self.values(whole, item, at, true))? else {
                    return Ok(None);
                };
                let Some(start) = known(self.values(start, item, at, false))? else {
                    return Ok(None);
                };
                self.any(&whole, &start, |whole, start| {
                    Ok(whole
                        .as_str()
                        .zip(start.as_str())
                        .map(|(whole, start)| whole.starts_with(start)))
                })?
            }
        })
    }

    /// Whether a predicate is true of a pair. In strict mode one of which it is unknown makes all unknown.
    fn any(
        &self,
        left: &[Json],
        right: &[Json],
        is_true: impl Fn(&Json, &Json) -> Result<Option<bool>>,
    ) -> Result<Option<bool>> {
        let (mut has_true, mut has_unknown) = (false, false);
        for left in left {
            for right in right {
                match (is_true(left, right)?, self.path.is_lax) {
                    (None, false) => return Ok(None),
                    (None, true) => has_unknown = true,
                    (Some(true), true) => return Ok(Some(true)),
                    (Some(truth), _) => has_true |= truth,
                }
            }
        }
        Ok(if has_true || !has_unknown { Some(has_true) } else { None })
    }

    /// What an operand comes to, in lax mode with the elements of arrays for these.
    fn values(&self, steps: &[Step], item: &Json, at: At<'_>, unwraps: bool) -> Result<Vec<Json>> {
        let mut values = Vec::new();
        let unwraps = unwraps && self.path.is_lax;
        self.steps(steps, item, at, &mut |value| {
            match value {
                Json::Array(items) if unwraps => values.extend(items.iter().cloned()),
                value => values.push(value.clone()),
            }
            Flow::On
        })?;
        Ok(values)
    }
}

/// Nothing where there was an error that may be passed over.
fn known<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Fault::Soft(_)) => Ok(None),
        Err(hard) => Err(hard),
    }
}

fn compare(comparison: Comparison, left: &Json, right: &Json) -> Result<Option<bool>> {
    let order = match (left, right) {
        (Json::Null, Json::Null) => Ordering::Equal,
        (Json::Null, _) | (_, Json::Null) => return Ok(Some(comparison == Comparison::NotEqual)),
        (Json::Bool(left), Json::Bool(right)) => left.cmp(right),
        (Json::String(left), Json::String(right)) => left.cmp(right),
        (Json::Number(left), Json::Number(right)) => {
            let number =
                |number: &serde_json::Number| of_text(&number.to_string()).map_err(Fault::Hard);
            number(left)?.compare(&number(right)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }))
}
