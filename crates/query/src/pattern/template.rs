//! A pattern of moments, taken apart.

use super::not_supported;
use crate::error::Result;

/// One part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// Characters that stand for themselves.
    Literal(String),
    Field(Field),
}

/// A word that stands for a part of a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// In upper case.
    pub(super) word: &'static str,
    pub(super) case: Case,
    /// No blanks and zeros that only fill.
    pub(super) is_tight: bool,
    /// With `th`, `st`, `nd` or `rd` behind the number.
    pub(super) ordinal: Option<Case>,
}

/// How a word is written, which is how names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Capitalized,
    Lower,
}

/// Longer ones before those that they begin with.
const WORDS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I",
    "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS",
    "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
];
/// Those that may have a capital and small letters.
const NAMES: &[&str] = &["DAY", "DY", "MONTH", "MON"];

/// Takes a pattern apart.
pub(super) fn parts(pattern: &str) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut literal = String::new();
    let mut rest = pattern;
    let mut is_tight = false;
    while let Some(first) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            is_tight = true;
            rest = behind;
            continue;
        }
        if rest.starts_with("FX") || rest.starts_with("TM") || rest.starts_with("SP") {
            return Err(not_supported(&rest[..2]));
        }
        if let Some((word, case)) = word_of(rest) {
            rest = &rest[word.len()..];
            let ordinal = match rest.get(..2) {
                Some("TH") => Some(Case::Upper),
                Some("th") => Some(Case::Lower),
                _ => None,
            };
            rest = &rest[if ordinal.is_some() { 2 } else { 0 }..];
            if !literal.is_empty() {
                nodes.push(Node::Literal(std::mem::take(&mut literal)));
            }
            nodes.push(Node::Field(Field { word, case, is_tight, ordinal }));
            is_tight = false;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        match first {
            '"' => {
                let mut characters = rest.char_indices();
                let mut end = rest.len();
                while let Some((at, character)) = characters.next() {
                    match character {
                        '"' => {
                            end = at + 1;
                            break;
                        }
                        '\\' => literal.extend(characters.next().map(|(_, next)| next)),
                        other => literal.push(other),
                    }
                }
                rest = &rest[end..];
            }
            '\\' if rest.starts_with('"') => {
                literal.push('"');
                rest = &rest[1..];
            }
            other => literal.push(other),
        }
    }
    if !literal.is_empty() {
        nodes.push(Node::Literal(literal));
    }
    Ok(nodes)
}

/// The word that a pattern begins with.
fn word_of(pattern: &str) -> Option<(&'static str, Case)> {
    WORDS.iter().find_map(|word| {
        let written = pattern.get(..word.len())?;
        if written == *word {
            return Some((*word, Case::Upper));
        }
        if written == word.to_lowercase() {
            return Some((*word, Case::Lower));
        }
        let is_capitalized = NAMES.contains(word) && written == capitalized(word);
        is_capitalized.then_some((*word, Case::Capitalized))
    })
}

fn capitalized(word: &str) -> String {
    format!("{}{}", &word[..1], word[1..].to_lowercase())
}

impl Field {
    /// The word as the pattern has it.
    pub(super) fn written(&self) -> String {
        match self.case {
            Case::Upper => self.word.to_owned(),
            Case::Capitalized => capitalized(self.word),
            Case::Lower => self.word.to_lowercase(),
        }
    }
}

impl Case {
    /// A name, given with a capital.
    pub(super) fn of(self, name: &str) -> String {
        match self {
            Case::Upper => name.to_uppercase(),
            Case::Capitalized => name.to_owned(),
            Case::Lower => name.to_lowercase(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_what_stands_between_them_are_told_apart() {
        let parts = parts("FMDDth, Month \"MM\" YYYY").expect("a pattern");
        let words: Vec<String> = parts
            .iter()
            .map(|node| match node {
                Node::Literal(text) => format!("<{text}>"),
                Node::Field(field) => field.word.to_owned(),
            })
            .collect();
        assert_eq!(words, ["DD", "<, >", "MONTH", "< MM >", "YYYY"]);
        let Node::Field(day) = &parts[0] else { panic!("a day is first") };
        assert!(day.is_tight && day.ordinal == Some(Case::Lower));
        let Node::Field(month) = &parts[2] else { panic!("a month is third") };
        assert!(month.case == Case::Capitalized && !month.is_tight);
    }
}
