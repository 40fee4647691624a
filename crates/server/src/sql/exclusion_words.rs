//! `EXCLUDE TIES` in the frame of a window, which sqlparser does not read. The window is partitioned by a call of a
//! function, too, that stands for it: `(PARTITION BY onrush_exclude_ties(), a ORDER BY b GROUPS 1 PRECEDING)`.

use std::ops::Range;

use onrush_query::EXCLUSIONS;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::rewrite::{keyword, word};

/// Writes the clauses of the statement as calls.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let mut end = statement.end;
    // From behind: what stands before keeps its places.
    for at in statement.clone().rev() {
        if word(&tokens[at]) == "exclude"
            && let Some(clause) = clause(&tokens[..end], at)
            && let Some((place, is_first)) = partitions(&tokens[statement.start..at])
        {
            let before = tokens.len();
            tokens.drain(at..=clause.last);
            if let Some(function) = clause.function {
                insert(tokens, statement.start + place, function, is_first);
            }
            end = end + tokens.len() - before;
        }
    }
}

/// What a clause says.
struct Clause {
    /// The place of its last word.
    last: usize,
    /// None where no row is left out.
    function: Option<&'static str>,
}

/// The clause whose first word stands at a place, in front of the bracket that ends the window.
fn clause(tokens: &[TokenWithSpan], at: usize) -> Option<Clause> {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let behind: Vec<usize> = (at + 1..tokens.len()).filter(is_word).take(3).collect();
    let bracket = behind.iter().position(|at| tokens[*at].token == Token::RParen)?;
    let words: Vec<String> = behind[..bracket].iter().map(|at| word(&tokens[*at])).collect();
    let words = words.join(" ").to_uppercase();
    let last = *behind[..bracket].last()?;
    if words == "NO OTHERS" {
        return Some(Clause { last, function: None });
    }
    let (_, function) = EXCLUSIONS.iter().find(|(known, _)| *known == words)?;
    Some(Clause { last, function: Some(function) })
}

/// Where the window that is open at the end of these tokens says what it is partitioned by, and whether that is the
/// first there. None where no frame is told, and where the window begins with the name of another one.
fn partitions(before: &[TokenWithSpan]) -> Option<(usize, bool)> {
    let mut depth = 0;
    let open = before.iter().rposition(|token| {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        depth < 0
    })?;
    let is_frame = |token: &TokenWithSpan| {
        matches!(keyword(token), Some(Keyword::ROWS | Keyword::RANGE | Keyword::GROUPS))
    };
    if !before[open..].iter().any(is_frame) {
        return None;
    }
    let is_word = |at: &usize| !matches!(before[*at].token, Token::Whitespace(_));
    let mut words = (open + 1..before.len()).filter(is_word);
    let (first, second) = (words.next()?, words.next()?);
    match keyword(&before[first])? {
        Keyword::PARTITION => Some((second + 1, false)),
        Keyword::ORDER | Keyword::ROWS | Keyword::RANGE | Keyword::GROUPS => Some((open + 1, true)),
        _ => None,
    }
}

/// Puts a call among what a window is partitioned by.
fn insert(tokens: &mut Vec<TokenWithSpan>, place: usize, function: &str, is_first: bool) {
    let span = tokens[place - 1].span;
    let blank = || Token::Whitespace(Whitespace::Space);
    let mut words = vec![blank(), Token::make_word(function, None), Token::LParen, Token::RParen];
    match is_first {
        true => {
            let partition = ["PARTITION", "BY"].map(Token::make_keyword);
            words.splice(0..0, partition.into_iter().flat_map(|word| [blank(), word]));
            words.push(blank());
        }
        false => words.push(Token::Comma),
    }
    let words = words.into_iter().map(|token| TokenWithSpan { token, span });
    tokens.splice(place..place, words);
}

/// A query with the calls shown as the clauses that they stand for.
pub(super) fn shown(mut text: String) -> String {
    const PARTITION: &str = "PARTITION BY ";
    for (clause, function) in EXCLUSIONS {
        let (call, mut from) = (format!("{function}()"), 0);
        while let Some(found) = text[from..].find(&call) {
            let (at, behind) = (from + found, from + found + call.len());
            from = behind;
            let is_first = text[..at].ends_with(PARTITION);
            let rest = &text[behind..];
            let cut = match (rest.strip_prefix(", "), rest.strip_prefix(' ')) {
                (Some(_), _) if is_first => at..behind + 2,
                (None, Some(_)) if is_first => at - PARTITION.len()..behind + 1,
                _ => continue,
            };
            let Some(end) = end_of_window(rest) else { continue };
            text.insert_str(behind + end, &format!(" EXCLUDE {clause}"));
            from = cut.start;
            text.replace_range(cut, "");
        }
    }
    text
}

/// Where the bracket stands that ends what these letters are inside of.
fn end_of_window(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    text.char_indices().find_map(|(at, letter)| {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => {}
            ('(', None) => depth += 1,
            (')', None) if depth == 0 => return Some(at),
            (')', None) => depth -= 1,
            _ => {}
        }
        None
    })
}

#[cfg(test)]
mod tests {
    fn spelled(text: &str) -> String {
        let spelled = crate::sql::rewrite::spelled(text, super::spell);
        spelled.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_clause_is_a_call_among_what_a_window_is_partitioned_by() {
        for (text, wanted) in [
            (
                "sum(a) over (order by b rows 1 preceding exclude ties)",
                "sum(a) over ( PARTITION BY onrush_exclude_ties() order by b rows 1 preceding )",
            ),
            (
                "over (partition by c, d order by (b) groups 1 preceding exclude current row)",
                "over (partition by onrush_exclude_current_row(), c, d order by (b) groups 1 preceding )",
            ),
            (
                "over (rows unbounded preceding exclude no others), over (rows 2 preceding EXCLUDE Group)",
                "over (rows unbounded preceding ), over ( PARTITION BY onrush_exclude_group() rows 2 preceding )",
            ),
        ] {
            assert_eq!(spelled(text), wanted);
        }
    }

    #[test]
    fn a_call_is_shown_as_the_clause() {
        for (text, wanted) in [
            (
                "sum(a) OVER (PARTITION BY onrush_exclude_ties() ORDER BY f(b) ROWS 1 PRECEDING), 1",
                "sum(a) OVER (ORDER BY f(b) ROWS 1 PRECEDING EXCLUDE TIES), 1",
            ),
            (
                "OVER (PARTITION BY onrush_exclude_group(), ')', \"a)b\" ROWS 1 PRECEDING)",
                "OVER (PARTITION BY ')', \"a)b\" ROWS 1 PRECEDING EXCLUDE GROUP)",
            ),
            (
                "SELECT 'onrush_exclude_ties()' AS a, (onrush_exclude_ties()) AS b",
                "SELECT 'onrush_exclude_ties()' AS a, (onrush_exclude_ties()) AS b",
            ),
        ] {
            assert_eq!(super::shown(text.to_owned()), wanted);
        }
    }

    #[test]
    fn the_word_elsewhere_is_left_alone() {
        for text in [
            "select exclude from t where (exclude > 1)",
            "create table t (a int, exclude using gist (a with =))",
            "over (w rows 1 preceding exclude ties)",
        ] {
            assert_eq!(spelled(text), text);
        }
    }
}
