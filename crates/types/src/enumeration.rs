//! Types whose values are labels in an order of their own, as `CREATE TYPE ... AS ENUM` makes them.
//!
//! A value is stored as the code of its label, four bytes. Codes ascend as the labels are ordered, with space between
//! them, so that a label can come between two others while the rows stay as they are.
//!
//! A [`DataType`](crate::DataType) is copied everywhere and has to know its labels, so each list of labels is kept
//! once for the whole process and never given back: there are as many as definitions that were ever made.
//!
//! Invariants
//! 1. Codes ascend, and a label keeps its code whatever labels come later.
//! 2. Labels differ, and are not longer than a name.
//! 3. Two types are equal exactly if their numbers, names and labels are.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, RwLock};

use crate::TypeError;
use crate::data_type::NAME_BYTES_MAX;

/// Most labels of a type.
pub const LABELS_MAX: usize = 1000;
/// Begins a note of a type.
const NOTE: &str = "onrush_labels_";
/// What lies between the codes of labels that were made together.
const CODE_STEP: u32 = 1 << 16;

/// A list of labels, as definitions keep it: with their codes, which ascend.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct EnumLabels(Vec<(u32, Box<str>)>);

/// A type whose values are labels.
#[derive(Clone, Copy)]
pub struct EnumType(&'static Kept);

/// Where a new label comes among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewLabel<'l> {
    /// Behind all others.
    Last,
    /// In front of this one.
    Before(&'l str),
    /// Behind this one.
    After(&'l str),
}

/// Why a type cannot have a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LabelFault {
    /// It has it already.
    #[error("it is there already")]
    Exists,
    /// The label that another one is told by is not there.
    #[error("there is no such label")]
    Missing,
    /// It has more than 63 bytes.
    #[error("a label has at most 63 bytes")]
    TooLong,
    /// There are [`LABELS_MAX`] already.
    #[error("a type has at most 1000 labels")]
    TooMany,
    /// So often labels came between the same two others that no code is left there.
    #[error("there is no space left between its neighbours; add it at the end")]
    NoSpace,
}

struct Kept {
    number: u32,
    of: Identity,
    codes: HashMap<Box<str>, u32>,
}

/// What tells two types apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    id: u32,
    name: Box<str>,
    labels: EnumLabels,
}

#[derive(Default)]
struct AllKept {
    by_number: Vec<&'static Kept>,
    numbers: HashMap<Identity, u32>,
}

static KEPT: LazyLock<RwLock<AllKept>> = LazyLock::new(RwLock::default);

impl EnumLabels {
    /// These labels in this order.
    ///
    /// # Errors
    /// [`TypeError::BadLabel`]; too many.
    pub fn new<I>(labels: I) -> Result<EnumLabels, TypeError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        labels.into_iter().try_fold(EnumLabels::default(), |labels, label| {
            labels.with(label.as_ref(), NewLabel::Last)
        })
    }

    /// The same labels and one more.
    ///
    /// # Errors
    /// [`TypeError::BadLabel`]: it is there already, or the other one is not; there is no space between two codes;
    /// too many.
    pub fn with(mut self, label: &str, place: NewLabel<'_>) -> Result<EnumLabels, TypeError> {
        let bad = |fault| TypeError::BadLabel { label: label.into(), fault };
        check_label(label).map_err(bad)?;
        if self.position(label).is_some() {
            return Err(bad(LabelFault::Exists));
        }
        if self.0.len() == LABELS_MAX {
            return Err(bad(LabelFault::TooMany));
        }
        let position = |other: &str| self.position(other).ok_or_else(|| no_label(other));
        let at = match place {
            NewLabel::Last => self.0.len(),
            NewLabel::Before(other) => position(other)?,
            NewLabel::After(other) => position(other)? + 1,
        };
        let below = at.checked_sub(1).map_or(0, |below| self.0[below].0);
        let code = match self.0.get(at) {
            Some((above, _)) => below + (above - below) / 2,
            None => below.saturating_add(CODE_STEP),
        };
        if code == below || self.0.get(at).is_some_and(|(above, _)| *above == code) {
            return Err(bad(LabelFault::NoSpace));
        }
        self.0.insert(at, (code, label.into()));
        Ok(self)
    }

    /// The same labels, one of which has another name.
    ///
    /// # Errors
    /// [`TypeError::BadLabel`]: it is not there, or the other one is.
    pub fn renamed(mut self, from: &str, to: &str) -> Result<EnumLabels, TypeError> {
        let bad = |fault| TypeError::BadLabel { label: to.into(), fault };
        check_label(to).map_err(bad)?;
        let at = self.position(from).ok_or_else(|| no_label(from))?;
        if self.position(to).is_some() {
            return Err(bad(LabelFault::Exists));
        }
        self.0[at].1 = to.into();
        Ok(self)
    }

    /// The labels with their codes, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &str)> + DoubleEndedIterator {
        self.0.iter().map(|(code, label)| (*code, &**label))
    }

    /// Labels with their codes, as a definition has them.
    ///
    /// # Errors
    /// Codes that do not ascend, labels that are there twice; too many.
    pub fn from_codes(labels: Vec<(u32, Box<str>)>) -> Result<EnumLabels, &'static str> {
        let ascend = labels.is_sorted_by(|one, next| one.0 < next.0);
        let mut seen = std::collections::HashSet::new();
        let differ = labels.iter().all(|(_, label)| seen.insert(label));
        let fit = labels.iter().all(|(_, label)| check_label(label).is_ok());
        match ascend && differ && fit && labels.len() <= LABELS_MAX {
            true => Ok(EnumLabels(labels)),
            false => {
                Err("the labels of a type are not in order, not different, too long or too many")
            }
        }
    }

    fn position(&self, label: &str) -> Option<usize> {
        self.0.iter().position(|(_, own)| **own == *label)
    }
}

fn check_label(label: &str) -> Result<(), LabelFault> {
    match label.len() > usize::from(NAME_BYTES_MAX) {
        true => Err(LabelFault::TooLong),
        false => Ok(()),
    }
}

fn no_label(label: &str) -> TypeError {
    TypeError::BadLabel { label: label.into(), fault: LabelFault::Missing }
}

impl EnumType {
    /// The type of a number and name in its database, with these labels.
    #[must_use]
    pub fn new(id: u32, name: &str, labels: &EnumLabels) -> EnumType {
        let of = Identity { id, name: name.into(), labels: labels.clone() };
        let mut kept = KEPT.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(number) = kept.numbers.get(&of) {
            return EnumType(kept.by_number[*number as usize]);
        }
        let number = kept.by_number.len() as u32;
        let codes = of.labels.0.iter().map(|(code, label)| (label.clone(), *code)).collect();
        kept.numbers.insert(of.clone(), number);
        let made: &'static Kept = Box::leak(Box::new(Kept { number, of, codes }));
        kept.by_number.push(made);
        EnumType(made)
    }

    /// The type of a [number](Self::number) in this process.
    #[must_use]
    pub fn with_number(number: u32) -> Option<EnumType> {
        let kept = KEPT.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.by_number.get(number as usize).copied().map(EnumType)
    }

    /// Its number in this process, which no file has.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0.number
    }

    /// By which name [`DataType`](crate::DataType) is read as this type in this process.
    #[must_use]
    pub fn note(self) -> String {
        format!("{NOTE}{}", self.number())
    }

    /// The type with this note.
    pub(crate) fn noted(note: &str) -> Option<EnumType> {
        EnumType::with_number(note.strip_prefix(NOTE)?.parse().ok()?)
    }

    /// Its number in its database.
    #[must_use]
    pub fn id(self) -> u32 {
        self.0.of.id
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.0.of.name
    }

    /// Its labels.
    #[must_use]
    pub fn labels(self) -> &'static EnumLabels {
        &self.0.of.labels
    }

    /// The code of a label.
    #[must_use]
    pub fn code(self, label: &str) -> Option<u32> {
        self.0.codes.get(label).copied()
    }

    /// The label of a code.
    #[must_use]
    pub fn label(self, code: u32) -> Option<&'static str> {
        let labels = &self.0.of.labels.0;
        let at = labels.binary_search_by_key(&code, |(own, _)| *own).ok()?;
        Some(&labels[at].1)
    }
}

impl PartialEq for EnumType {
    fn eq(&self, other: &EnumType) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for EnumType {}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}

impl fmt::Debug for EnumType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.of.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(labels: &EnumLabels) -> Vec<&str> {
        labels.iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn a_label_comes_where_it_is_told() {
        let labels = EnumLabels::new(["b", "d"]).unwrap();
        let labels = labels.with("a", NewLabel::Before("b")).unwrap();
        let labels = labels.with("c", NewLabel::After("b")).unwrap();
        let labels = labels.with("e", NewLabel::Last).unwrap();
        assert_eq!(words(&labels), ["a", "b", "c", "d", "e"]);
        assert!(labels.0.is_sorted_by(|one, next| one.0 < next.0));
    }

    #[test]
    fn labels_keep_their_codes() {
        let labels = EnumLabels::new(["b", "d"]).unwrap();
        let before = EnumType::new(1, "t", &labels);
        let after = EnumType::new(1, "t", &labels.with("c", NewLabel::After("b")).unwrap());
        assert_ne!(before, after);
        assert_eq!(before.code("d"), after.code("d"));
        assert_eq!(after.code("c").and_then(|code| after.label(code)), Some("c"));
        assert_eq!(before.code("c"), None);
    }

    #[test]
    fn space_between_two_labels_ends() {
        let mut labels = EnumLabels::new(["a", "z"]).unwrap();
        let refused = (0..100).find_map(|number| {
            match labels.clone().with(&number.to_string(), NewLabel::After("a")) {
                Ok(more) => {
                    labels = more;
                    None
                }
                Err(error) => Some(error),
            }
        });
        assert!(matches!(refused, Some(TypeError::BadLabel { .. })));
        assert_eq!(words(&labels).first(), Some(&"a"));
        assert!(labels.with("end", NewLabel::Last).is_ok());
    }

    #[test]
    fn what_is_no_list_of_labels_is_refused() {
        assert!(EnumLabels::new(["a", "a"]).is_err());
        assert!(EnumLabels::new(["ä".repeat(32)]).is_err());
        assert!(EnumLabels::new(["a"]).unwrap().with("b", NewLabel::After("c")).is_err());
        assert!(EnumLabels::from_codes(vec![(2, "a".into()), (1, "b".into())]).is_err());
    }

    #[test]
    fn equal_types_are_one() {
        let labels = EnumLabels::new(["x"]).unwrap();
        let (one, other) = (EnumType::new(7, "same", &labels), EnumType::new(7, "same", &labels));
        assert_eq!(one, other);
        assert_eq!(EnumType::with_number(one.number()), Some(other));
        assert_ne!(one, EnumType::new(8, "same", &labels));
    }
}
