//! FETCH and MOVE, which sqlparser reads a part of.
//!
//! ```text
//! FETCH | MOVE [direction] [FROM | IN] cursor
//! direction: NEXT | PRIOR | FIRST | LAST | ABSOLUTE n | RELATIVE n | n | ALL | FORWARD [n | ALL] | BACKWARD [n | ALL]
//! ```

use sqlparser::tokenizer::Token;

/// Where a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Movement {
    /// So many rows on, each of which is sent; none: all that are left. Zero: the row where it is.
    Forward(Option<u64>),
    /// The same back.
    Backward(Option<u64>),
    /// To a row by its number from 1 on, or from the last one, -1; 0 is before the first.
    Absolute(i64),
    /// To a row that is so many behind the one where it is, or before it.
    Relative(i64),
}

/// A FETCH or a MOVE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchPlan {
    pub(crate) name: String,
    pub(crate) movement: Movement,
    /// The rows are not sent.
    pub(crate) is_move: bool,
}

/// Reads a statement whose words these are. None if it is none of this form.
pub(super) fn read(words: &[&Token]) -> Option<FetchPlan> {
    let (verb, rest) = words.split_first()?;
    let is_move = match lower(verb).as_str() {
        "fetch" => false,
        "move" => true,
        _ => return None,
    };
    let (name, before) = rest.split_last()?;
    let name = match name {
        Token::Word(name) if name.quote_style.is_some() => name.value.clone(),
        Token::Word(name) => name.value.to_lowercase(),
        _ => return None,
    };
    let direction = match before.split_last() {
        Some((last, direction)) if matches!(lower(last).as_str(), "from" | "in") => direction,
        _ => before,
    };
    Some(FetchPlan { name, movement: movement(direction)?, is_move })
}

fn movement(words: &[&Token]) -> Option<Movement> {
    let Some((first, rest)) = words.split_first() else { return Some(Movement::Forward(Some(1))) };
    match (lower(first).as_str(), rest) {
        ("next", []) => Some(Movement::Forward(Some(1))),
        ("prior", []) => Some(Movement::Backward(Some(1))),
        ("first", []) => Some(Movement::Absolute(1)),
        ("last", []) => Some(Movement::Absolute(-1)),
        ("absolute", rest) => number(rest).map(Movement::Absolute),
        ("relative", rest) => number(rest).map(Movement::Relative),
        ("forward", rest) => many(rest, false),
        ("backward", rest) => many(rest, true),
        _ => many(words, false),
    }
}

fn many(words: &[&Token], is_back: bool) -> Option<Movement> {
    let count = match words {
        [] => Some(1),
        [all] if lower(all) == "all" => None,
        words => Some(number(words)?),
    };
    // A negative count goes the other way.
    let is_back = is_back != count.is_some_and(|count| count < 0);
    let count = count.map(i64::unsigned_abs);
    Some(if is_back { Movement::Backward(count) } else { Movement::Forward(count) })
}

fn number(words: &[&Token]) -> Option<i64> {
    let (sign, digits) = match words {
        [Token::Minus, digits] => ("-", digits),
        [Token::Plus, digits] | [digits] => ("", digits),
        _ => return None,
    };
    match digits {
        Token::Number(digits, _) => format!("{sign}{digits}").parse().ok(),
        _ => None,
    }
}

/// In lower case; a name in quotes is none of the words that are looked for.
fn lower(token: &Token) -> String {
    token.to_string().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<FetchPlan> {
        let tokens = super::super::tokens(text).expect("words");
        let words = tokens.iter().map(|token| &token.token);
        let words: Vec<&Token> =
            words.filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        read(&words)
    }

    #[test]
    fn each_direction_is_read() {
        use Movement::{Absolute, Backward, Forward, Relative};
        for (text, movement) in [
            ("FETCH c", Forward(Some(1))),
            ("fetch next from c", Forward(Some(1))),
            ("FETCH PRIOR IN c", Backward(Some(1))),
            ("FETCH FIRST c", Absolute(1)),
            ("FETCH LAST FROM c", Absolute(-1)),
            ("FETCH ABSOLUTE -3 c", Absolute(-3)),
            ("FETCH RELATIVE +2 FROM c", Relative(2)),
            ("FETCH 5 c", Forward(Some(5))),
            ("FETCH -5 FROM c", Backward(Some(5))),
            ("FETCH ALL FROM c", Forward(None)),
            ("FETCH FORWARD c", Forward(Some(1))),
            ("FETCH FORWARD 0 FROM c", Forward(Some(0))),
            ("FETCH FORWARD ALL IN c", Forward(None)),
            ("FETCH BACKWARD 2 FROM c", Backward(Some(2))),
            ("FETCH BACKWARD -2 FROM c", Forward(Some(2))),
            ("FETCH BACKWARD ALL c", Backward(None)),
        ] {
            let expected = FetchPlan { name: "c".into(), movement, is_move: false };
            assert_eq!(read_text(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_move_is_a_fetch_without_rows_and_names_are_names() {
        let plan = read_text("MOVE FORWARD 3 FROM \"C 1\"").expect("it is read");
        assert_eq!((plan.name.as_str(), plan.is_move), ("C 1", true));
        assert_eq!(read_text("FETCH From").expect("it is read").name, "from");
        for text in ["FETCH", "FETCH 1 2 c", "FETCH SIDEWAYS c", "FETCH 1.5 c", "SELECT c"] {
            assert_eq!(read_text(text), None, "{text}");
        }
    }
}
