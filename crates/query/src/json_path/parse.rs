//! The words of a path.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::Value as Json;

use super::{Comparison, JsonPath, Predicate, Step, Steps};
use crate::error::{QueryError, Result};

/// How deep parentheses may be in each other.
const DEPTH_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A word without quotes.
    Word(String),
    Text(String),
    Variable(String),
    Number(String),
    Sign(&'static str),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Token::Word(word) | Token::Number(word) => word.clone(),
            Token::Text(_) => "\"".to_owned(),
            Token::Variable(name) => format!("${name}"),
            Token::Sign(sign) => (*sign).to_owned(),
        }
    }

    /// Whether it is a word of the language; some are so in lower case alone.
    fn is_word(&self, wanted: &str) -> bool {
        let Token::Word(word) = self else { return false };
        match wanted {
            "null" | "true" | "false" => word == wanted,
            _ => word.eq_ignore_ascii_case(wanted),
        }
    }
}

fn wrong(token: Option<&Token>) -> QueryError {
    let place = match token {
        Some(token) => format!("at or near \"{}\"", token.shown()),
        None => "at end".to_owned(),
    };
    QueryError::refused("42601", format!("syntax error {place} of jsonpath input"))
}

fn unsupported(what: &str) -> QueryError {
    QueryError::refused("0A000", format!("{what} in a jsonpath is not supported"))
}

const SIGNS: [&str; 29] = [
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "!", "<", ">", "$", "@", "?", ".", "[", "]",
    "{", "}", "(", ")", ",", "*", "+", "-", "/", "%", "|", "&",
];

fn tokens(path: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        if matches!(first, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
            rest = &rest[1..];
            continue;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            let Some((_, behind)) = comment.split_once("*/") else {
                let message = "unexpected end of comment at end of jsonpath input";
                return Err(QueryError::refused("42601", message));
            };
            rest = behind;
            continue;
        }
        let is_variable =
            first == '$' && rest[1..].starts_with(|next| is_other(next) || next == '"');
        if is_variable || first == '"' || is_other(first) || first == '\\' {
            let (token, behind) = match first {
                '$' => {
                    let (name, behind) = word(&rest[1..])?;
                    (Token::Variable(name), behind)
                }
                '0'..='9' => number(rest)?,
                '"' => {
                    let (text, behind) = word(rest)?;
                    (Token::Text(text), behind)
                }
                _ => {
                    let (word, behind) = word(rest)?;
                    (Token::Word(word), behind)
                }
            };
            tokens.push(token);
            rest = behind;
            continue;
        }
        let is_fraction = first == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit());
        if is_fraction && !matches!(tokens.last(), Some(Token::Word(_) | Token::Text(_))) {
            let (token, behind) = number(rest)?;
            tokens.push(token);
            rest = behind;
            continue;
        }
        let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) else {
            return Err(wrong(Some(&Token::Word(first.to_string()))));
        };
        tokens.push(Token::Sign(sign));
        rest = &rest[sign.len()..];
    }
    Ok(tokens)
}

/// What a word without quotes may have.
fn is_other(character: char) -> bool {
    !"?%$.[]{}()|&!=<>@#,*:-+/\\\" \t\n\r\u{c}".contains(character)
}

/// Digits with a point and an exponent, in a form that JSON has.
fn number(rest: &str) -> Result<(Token, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(rest);
    let mut end = whole;
    let mut written = if whole == 0 { "0".to_owned() } else { rest[..whole].to_owned() };
    if rest[end..].starts_with('.') {
        let fraction = digits(&rest[end + 1..]);
        if fraction > 0 {
            written.push_str(&rest[end..=end + fraction]);
        }
        end += 1 + fraction;
    }
    if rest[end..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[end + 1..].starts_with(['-', '+']));
        let exponent = digits(&rest[end + 1 + sign..]);
        if exponent == 0 {
            let message = "trailing junk after numeric literal in a jsonpath";
            return Err(QueryError::refused("42601", message));
        }
        written.push_str(&rest[end..end + 1 + sign + exponent]);
        end += 1 + sign + exponent;
    }
    let is_padded = whole > 1 && rest.starts_with('0');
    if is_padded || rest[end..].starts_with(is_other) {
        let near = rest[..end].to_owned() + rest[end..].get(..1).unwrap_or_default();
        let message =
            format!("trailing junk after numeric literal at or near \"{near}\" of jsonpath input");
        return Err(QueryError::refused("42601", message));
    }
    Ok((Token::Number(written), &rest[end..]))
}

/// A word, or what stands in quotes, with its escapes.
fn word(text: &str) -> Result<(String, &str)> {
    let is_quoted = text.starts_with('"');
    let mut characters = text[usize::from(is_quoted)..].chars();
    let mut word = String::new();
    loop {
        let behind = characters.as_str();
        let Some(character) = characters.next() else {
            if is_quoted {
                let message = "unexpected end of quoted string at end of jsonpath input";
                return Err(QueryError::refused("42601", message));
            }
            return Ok((word, ""));
        };
        match character {
            '"' if is_quoted => return Ok((word, characters.as_str())),
            '\\' => word.push(escaped(&mut characters)?),
            other if is_quoted || is_other(other) => word.push(other),
            _ => return Ok((word, behind)),
        }
    }
}

fn escaped(characters: &mut Chars<'_>) -> Result<char> {
    let bad = |message: &str| QueryError::refused("42601", format!("{message} of jsonpath input"));
    Ok(match characters.next() {
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\u{b}',
        Some('u' | 'x') => return Err(unsupported("a character by its number")),
        Some(other) => other,
        None => return Err(bad("unexpected end after backslash at end")),
    })
}

/// What an operand is.
enum Part {
    Steps(Steps),
    Predicate(Predicate),
}

struct Reader {
    tokens: Peekable<std::vec::IntoIter<Token>>,
    /// Whether `@` has a meaning, and whether `last` has.
    in_filter: bool,
    in_subscript: bool,
    depth: usize,
}

impl JsonPath {
    /// # Errors
    /// What is no path, and what is not understood.
    pub(crate) fn new(path: &str) -> Result<JsonPath> {
        let tokens = tokens(path)?;
        if tokens.is_empty() {
            let message = format!("invalid input syntax for type jsonpath: \"{path}\"");
            return Err(QueryError::refused("22P02", message));
        }
        let tokens = tokens.into_iter().peekable();
        let mut reader = Reader { tokens, in_filter: false, in_subscript: false, depth: 0 };
        let is_strict = reader.takes_word("strict");
        if !is_strict {
            reader.takes_word("lax");
        }
        let steps = match reader.either()? {
            Part::Steps(steps) => steps,
            Part::Predicate(predicate) => vec![Step::Truth(Box::new(predicate))],
        };
        match reader.tokens.next() {
            None => Ok(JsonPath { is_lax: !is_strict, steps }),
            Some(token) => Err(wrong(Some(&token))),
        }
    }
}

impl Reader {
    fn takes_word(&mut self, word: &str) -> bool {
        self.tokens.next_if(|token| token.is_word(word)).is_some()
    }

    fn takes(&mut self, sign: &'static str) -> bool {
        self.tokens.next_if_eq(&Token::Sign(sign)).is_some()
    }

    fn expect(&mut self, sign: &'static str) -> Result<()> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(wrong(self.tokens.peek())),
        }
    }

    fn is_next(&mut self, signs: &[&str]) -> bool {
        matches!(self.tokens.peek(), Some(Token::Sign(sign)) if signs.contains(sign))
    }

    fn either(&mut self) -> Result<Part> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(unsupported("such depth"));
        }
        let mut part = self.all_of()?;
        while let Part::Predicate(left) = part {
            if !self.takes("||") {
                part = Part::Predicate(left);
                break;
            }
            let Part::Predicate(right) = self.all_of()? else {
                return Err(wrong(self.tokens.peek()));
            };
            part = Part::Predicate(Predicate::Or(Box::new(left), Box::new(right)));
        }
        self.depth -= 1;
        Ok(part)
    }

    fn all_of(&mut self) -> Result<Part> {
        let mut part = self.compared()?;
        while let Part::Predicate(left) = part {
            if !self.takes("&&") {
                return Ok(Part::Predicate(left));
            }
            let Part::Predicate(right) = self.compared()? else {
                return Err(wrong(self.tokens.peek()));
            };
            part = Part::Predicate(Predicate::And(Box::new(left), Box::new(right)));
        }
        Ok(part)
    }

    fn compared(&mut self) -> Result<Part> {
        let left = match self.operand()? {
            Part::Steps(steps) => steps,
            predicate => return Ok(predicate),
        };
        if self.is_next(&["+", "-", "*", "/", "%"]) {
            return Err(unsupported("arithmetic"));
        }
        if self.tokens.peek().is_some_and(|token| token.is_word("like_regex")) {
            return Err(unsupported("like_regex"));
        }
        if self.takes_word("starts") {
            if !self.takes_word("with") {
                return Err(wrong(self.tokens.peek()));
            }
            let start = match self.tokens.next() {
                Some(Token::Text(text)) => Step::Value(Json::String(text)),
                Some(Token::Variable(name)) => Step::Variable(name),
                other => return Err(wrong(other.as_ref())),
            };
            return Ok(Part::Predicate(Predicate::StartsWith(left, vec![start])));
        }
        let comparison = match self.tokens.peek() {
            Some(Token::Sign("==")) => Comparison::Equal,
            Some(Token::Sign("!=" | "<>")) => Comparison::NotEqual,
            Some(Token::Sign("<")) => Comparison::Less,
            Some(Token::Sign("<=")) => Comparison::LessOrEqual,
            Some(Token::Sign(">")) => Comparison::Greater,
            Some(Token::Sign(">=")) => Comparison::GreaterOrEqual,
            _ => return Ok(Part::Steps(left)),
        };
        self.tokens.next();
        let right = self.steps()?;
        Ok(Part::Predicate(Predicate::Compare(comparison, left, right)))
    }

    /// An expression that is no predicate.
    fn steps(&mut self) -> Result<Steps> {
        match self.operand()? {
            Part::Steps(_) if self.is_next(&["+", "-", "*", "/", "%"]) => {
                Err(unsupported("arithmetic"))
            }
            Part::Steps(steps) => Ok(steps),
            Part::Predicate(_) => Err(wrong(self.tokens.peek())),
        }
    }

    /// A predicate in parentheses.
    fn in_parentheses(&mut self) -> Result<Predicate> {
        self.expect("(")?;
        let Part::Predicate(predicate) = self.either()? else {
            return Err(wrong(self.tokens.peek()));
        };
        self.expect(")")?;
        Ok(predicate)
    }

    fn operand(&mut self) -> Result<Part> {
        if self.takes("!") {
            let inner = match self.takes_word("exists") {
                true => self.exists()?,
                false => self.in_parentheses()?,
            };
            return Ok(Part::Predicate(Predicate::Not(Box::new(inner))));
        }
        if self.takes_word("exists") {
            return Ok(Part::Predicate(self.exists()?));
        }
        if self.takes("(") {
            let inner = self.either()?;
            self.expect(")")?;
            let mut steps = match inner {
                Part::Predicate(predicate) if self.takes_word("is") => {
                    return match self.takes_word("unknown") {
                        true => Ok(Part::Predicate(Predicate::IsUnknown(Box::new(predicate)))),
                        false => Err(wrong(self.tokens.peek())),
                    };
                }
                Part::Predicate(predicate) if self.is_next(&[".", "[", "?"]) => {
                    vec![Step::Truth(Box::new(predicate))]
                }
                Part::Predicate(predicate) => return Ok(Part::Predicate(predicate)),
                Part::Steps(steps) => steps,
            };
            self.accessors(&mut steps)?;
            return Ok(Part::Steps(steps));
        }
        if self.is_next(&["+", "-"]) {
            let is_negative = self.takes("-");
            self.tokens.next_if_eq(&Token::Sign("+"));
            let Some(Token::Number(digits)) = self.tokens.next() else {
                return Err(unsupported("arithmetic"));
            };
            if self.is_next(&[".", "[", "?"]) {
                return Err(unsupported("arithmetic"));
            }
            let sign = if is_negative { "-" } else { "" };
            return Ok(Part::Steps(vec![Step::Value(json(&format!("{sign}{digits}"))?)]));
        }
        let mut steps = vec![self.primary()?];
        self.accessors(&mut steps)?;
        Ok(Part::Steps(steps))
    }

    fn exists(&mut self) -> Result<Predicate> {
        self.expect("(")?;
        let steps = self.steps()?;
        self.expect(")")?;
        Ok(Predicate::Exists(steps))
    }

    fn primary(&mut self) -> Result<Step> {
        let told = |message: &str| QueryError::refused("42601", message);
        let Some(token) = self.tokens.next() else { return Err(wrong(None)) };
        Ok(match token {
            Token::Text(text) => Step::Value(Json::String(text)),
            Token::Number(digits) => Step::Value(json(&digits)?),
            Token::Variable(name) => Step::Variable(name),
            Token::Sign("$") => Step::Root,
            Token::Sign("@") if self.in_filter => Step::Current,
            Token::Sign("@") => return Err(told("@ is not allowed in root expressions")),
            word if word.is_word("last") && self.in_subscript => Step::Last,
            word if word.is_word("last") => {
                return Err(told("LAST is allowed only in array subscripts"));
            }
            word if word.is_word("null") => Step::Value(Json::Null),
            word if word.is_word("true") => Step::Value(Json::Bool(true)),
            word if word.is_word("false") => Step::Value(Json::Bool(false)),
            other => return Err(wrong(Some(&other))),
        })
    }

    fn accessors(&mut self, steps: &mut Steps) -> Result<()> {
        loop {
            if self.takes("[") {
                steps.push(self.elements()?);
            } else if self.takes("?") {
                let around = std::mem::replace(&mut self.in_filter, true);
                let filter = self.in_parentheses()?;
                self.in_filter = around;
                steps.push(Step::Filter(Box::new(filter)));
            } else if self.takes(".") {
                steps.push(self.member()?);
            } else {
                return Ok(());
            }
        }
    }

    fn elements(&mut self) -> Result<Step> {
        if self.takes("*") {
            self.expect("]")?;
            return Ok(Step::AnyElement);
        }
        let around = std::mem::replace(&mut self.in_subscript, true);
        let mut places = Vec::new();
        loop {
            let from = self.steps()?;
            let to = if self.takes_word("to") { Some(self.steps()?) } else { None };
            places.push((from, to));
            if !self.takes(",") {
                break;
            }
        }
        self.in_subscript = around;
        self.expect("]")?;
        Ok(Step::Elements(places))
    }

    fn member(&mut self) -> Result<Step> {
        if self.takes("*") {
            return Ok(Step::AnyKey);
        }
        if self.takes("**") {
            if !self.takes("{") {
                return Ok(Step::Inside(0, u32::MAX));
            }
            let first = self.level()?;
            let last = if self.takes_word("to") { self.level()? } else { first };
            self.expect("}")?;
            return Ok(Step::Inside(first, last));
        }
        let name = match self.tokens.next() {
            Some(Token::Text(name)) => return Ok(Step::Key(name)),
            Some(Token::Word(name)) => name,
            other => return Err(wrong(other.as_ref())),
        };
        if !self.takes("(") {
            return Ok(Step::Key(name));
        }
        match name.to_lowercase().as_str() {
            "type" => {
                self.expect(")")?;
                Ok(Step::Type)
            }
            "size" => {
                self.expect(")")?;
                Ok(Step::Size)
            }
            "abs" | "floor" | "ceiling" | "double" | "datetime" | "keyvalue" => {
                Err(unsupported(&format!(".{}()", name.to_lowercase())))
            }
            _ => Err(wrong(Some(&Token::Sign("(")))),
        }
    }

    fn level(&mut self) -> Result<u32> {
        match self.tokens.next() {
            Some(Token::Number(digits)) => {
                digits.parse().map_err(|_| wrong(Some(&Token::Number(digits))))
            }
            Some(word) if word.is_word("last") => Ok(u32::MAX),
            other => Err(wrong(other.as_ref())),
        }
    }
}

fn json(number: &str) -> Result<Json> {
    let bad = |_| QueryError::refused("42601", format!("{number} is no number of a jsonpath"));
    serde_json::from_str(number).map_err(bad)
}
