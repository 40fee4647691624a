//! `SET column[subscript] = value`: sqlparser reads no subscript there. It becomes `SET column = function(column,
//! value, subscript)`, and so does each other one of the same column, around the one before.

use std::ops::Range;

use onrush_query::OPEN_BOUND;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::rewrite::keyword;

/// The function that puts a value in its place in jsonb. Of arrays it is [another one](onrush_query::SET_ELEMENT).
pub(super) const SET_PART: &str = "jsonb_set_element";

/// What stands for the same of a slice, which jsonb has none of: the last two subscripts are its bounds.
pub(super) const SET_PARTS: &str = "array_set_slice";

/// So many parts of columns one statement sets at most.
const PARTS_MAX: usize = 1000;

/// Writes the assignments of the statement anew that have subscripts.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let own = &tokens[statement.clone()];
    let is_word = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let first = own.iter().find(is_word).and_then(keyword);
    let has_rows = matches!(first, Some(Keyword::UPDATE | Keyword::INSERT | Keyword::WITH));
    if !has_rows || !own.iter().any(|token| token.token == Token::LBracket) {
        return;
    }
    let Some(set) = at_top(own, 0, |token| keyword(token) == Some(Keyword::SET)) else { return };
    let Some((list, end)) = assignments(own, set + 1) else { return };
    let parts = list.iter().filter(|assignment| !assignment.subscripts.is_empty()).count();
    if parts == 0 || parts > PARTS_MAX {
        return;
    }
    let Some(relation) = relation(&own[..set]) else { return };
    let range = statement.start + set + 1..statement.start + end;
    let span = tokens[statement.start + set].span;
    let words = written(list, &relation);
    tokens.splice(range, words.into_iter().map(|token| TokenWithSpan { token, span }));
}

/// What the columns of the table that is changed are called by: its alias, or its name.
fn relation(before: &[TokenWithSpan]) -> Option<Token> {
    let is_word = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    // One in parentheses is of a WITH.
    let into = at_top(before, 0, |token| keyword(token) == Some(Keyword::INTO));
    let Some(into) = into else {
        // UPDATE table [AS alias]
        let last = before.iter().rev().find(is_word)?;
        return matches!(last.token, Token::Word(_)).then(|| last.token.clone());
    };
    // INSERT INTO schema.table [AS alias]
    let mut words = before[into + 1..].iter().filter(is_word).peekable();
    let mut name = words.next()?.token.clone();
    while words.next_if(|word| word.token == Token::Period).is_some() {
        name = words.next()?.token.clone();
    }
    if words.next_if(|word| keyword(word) == Some(Keyword::AS)).is_some() {
        name = words.next()?.token.clone();
    }
    matches!(name, Token::Word(_)).then_some(name)
}

struct Assignment {
    column: Token,
    subscripts: Vec<Vec<Token>>,
    value: Vec<Token>,
}

/// The first token from a place on that is in no parentheses and is wanted.
fn at_top(
    tokens: &[TokenWithSpan],
    from: usize,
    is_wanted: impl Fn(&TokenWithSpan) -> bool,
) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        if depth == 0 && is_wanted(token) {
            return Some(at);
        }
        match token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// The assignments of a list, and where it ends; none of what is written otherwise.
fn assignments(tokens: &[TokenWithSpan], from: usize) -> Option<(Vec<Assignment>, usize)> {
    let text = |range: Range<usize>| -> Vec<Token> {
        tokens[range].iter().map(|token| token.token.clone()).collect()
    };
    let next = |from: usize| {
        (from..tokens.len()).find(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
    };
    let mut list = Vec::new();
    let mut at = from;
    loop {
        let name = next(at)?;
        let column = match &tokens[name].token {
            word @ Token::Word(_) => word.clone(),
            _ => return None,
        };
        let mut subscripts = Vec::new();
        let mut behind = next(name + 1)?;
        while tokens[behind].token == Token::LBracket {
            let close = at_top(tokens, behind + 1, |token| token.token == Token::RBracket)?;
            subscripts.push(text(behind + 1..close));
            behind = next(close + 1)?;
        }
        if tokens[behind].token != Token::Eq {
            return None;
        }
        let end = end_of_value(tokens, behind + 1);
        list.push(Assignment { column, subscripts, value: text(behind + 1..end) });
        match tokens.get(end).map(|token| &token.token) {
            Some(Token::Comma) => at = end + 1,
            _ => return Some((list, end)),
        }
    }
}

/// Where a value ends that begins at a place.
fn end_of_value(tokens: &[TokenWithSpan], from: usize) -> usize {
    let is_end = |token: &TokenWithSpan| {
        let clauses = [Keyword::WHERE, Keyword::FROM, Keyword::RETURNING];
        token.token == Token::Comma || keyword(token).is_some_and(|word| clauses.contains(&word))
    };
    let mut start = from;
    while let Some(end) = at_top(tokens, start, is_end) {
        // The FROM of IS DISTINCT FROM is none of a clause.
        let before = tokens[from..end].iter().rev();
        let last = before.clone().find(|token| !matches!(token.token, Token::Whitespace(_)));
        if last.and_then(keyword) != Some(Keyword::DISTINCT) {
            return end;
        }
        start = end + 1;
    }
    tokens.len()
}

/// The list with a call for all assignments to parts of a column.
fn written(list: Vec<Assignment>, relation: &Token) -> Vec<Token> {
    let mut made: Vec<(Token, Vec<Token>, bool)> = Vec::new();
    for Assignment { column, subscripts, value } in list {
        if subscripts.is_empty() {
            made.push((column, value, false));
            continue;
        }
        let is_it = |other: &Token| is_same_name(other, &column);
        let earlier = made.iter_mut().find(|(other, _, is_part)| *is_part && is_it(other));
        let target = match &earlier {
            Some((_, value, _)) => value.clone(),
            None => vec![relation.clone(), Token::Period, column.clone()],
        };
        let is_slice = |subscript: &Vec<Token>| colon_of(subscript).is_some();
        let (function, subscripts) = match subscripts.iter().any(is_slice) {
            // More bounds than those of one slice are refused where the call is read.
            true => (SET_PARTS, subscripts.iter().flat_map(|it| bounds(it)).collect()),
            false => (SET_PART, subscripts),
        };
        let mut call = vec![Token::make_word(function, None), Token::LParen];
        call.extend(target);
        call.extend([Token::Comma, Token::LParen]);
        call.extend(value);
        call.push(Token::RParen);
        for subscript in subscripts {
            call.push(Token::Comma);
            call.extend(subscript);
        }
        call.push(Token::RParen);
        match earlier {
            Some((_, value, _)) => *value = call,
            None => made.push((column, call, true)),
        }
    }
    let mut words = Vec::new();
    for (column, value, _) in made {
        if !words.is_empty() {
            words.push(Token::Comma);
        }
        words.extend([Token::Whitespace(Whitespace::Space), column, Token::Eq]);
        words.push(Token::Whitespace(Whitespace::Space));
        words.extend(value);
    }
    words.push(Token::Whitespace(Whitespace::Space));
    words
}

/// Whether two words name one column.
fn is_same_name(one: &Token, other: &Token) -> bool {
    let folded = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_some() => word.value.clone(),
        other => other.to_string().to_lowercase(),
    };
    folded(one) == folded(other)
}

/// Where the colon of a slice stands.
fn colon_of(subscript: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    subscript.iter().position(|token| {
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *token == Token::Colon
    })
}

/// The bounds of a slice, `1:3`. One that is left out is where the array begins or ends: a text tells so.
fn bounds(subscript: &[Token]) -> Vec<Vec<Token>> {
    let Some(colon) = colon_of(subscript) else { return vec![subscript.to_vec()] };
    let is_empty = |part: &[Token]| part.iter().all(|it| matches!(it, Token::Whitespace(_)));
    let bound = |part: &[Token]| match is_empty(part) {
        true => vec![Token::SingleQuotedString(OPEN_BOUND.to_owned())],
        false => part.to_vec(),
    };
    vec![bound(&subscript[..colon]), bound(&subscript[colon + 1..])]
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn spelled(text: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
        let mut tokens = tokens.expect("tokens");
        let all = 0..tokens.len();
        super::spell(&mut tokens, all);
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn bounds_that_are_left_out_and_slices_of_several_dimensions_are_told() {
        assert_eq!(
            spelled("UPDATE t SET a[1:] = x, \"a\"[:f(b[1:2])] = y"),
            "UPDATE t SET a= array_set_slice(array_set_slice(t.a,( x),1,'open'),( y),'open',f(b[1:2])) "
        );
        assert_eq!(
            spelled("UPDATE t SET a[1:2][1] = x"),
            "UPDATE t SET a= array_set_slice(t.a,( x),1,2,1) "
        );
    }

    #[test]
    fn the_table_is_the_one_that_is_changed() {
        let text = "WITH i AS (INSERT INTO o VALUES (1) RETURNING id) UPDATE t SET a[1] = 5";
        let spelled = spelled(text);
        assert!(spelled.ends_with("SET a= jsonb_set_element(t.a,( 5),1) "), "{spelled}");
    }

    #[test]
    fn an_assignment_to_a_part_becomes_one_of_the_column() {
        assert_eq!(
            spelled("UPDATE t SET j['a'][0] = '1' WHERE x[1] = 2"),
            "UPDATE t SET j= jsonb_set_element(t.j,( '1' ),'a',0) WHERE x[1] = 2"
        );
        assert_eq!(
            spelled("UPDATE t SET j['a'] = f(1, 2), b = 3, j['c'] = NULL"),
            "UPDATE t SET j= jsonb_set_element(jsonb_set_element(t.j,( f(1, 2)),'a'),( NULL),'c'), b=  3 "
        );
        assert_eq!(
            spelled("UPDATE s.t u SET j[k] = a IS DISTINCT FROM b RETURNING 1"),
            "UPDATE s.t u SET j= jsonb_set_element(u.j,( a IS DISTINCT FROM b ),k) RETURNING 1"
        );
    }

    #[test]
    fn the_row_that_is_there_is_meant() {
        assert_eq!(
            spelled("INSERT INTO s.t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET j[1] = '2'"),
            "INSERT INTO s.t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET j= jsonb_set_element(t.j,( '2'),1) "
        );
        assert_eq!(
            spelled("INSERT INTO t AS u VALUES (1) ON CONFLICT (a) DO UPDATE SET j[1] = '2'"),
            "INSERT INTO t AS u VALUES (1) ON CONFLICT (a) DO UPDATE SET j= jsonb_set_element(u.j,( '2'),1) "
        );
    }

    #[test]
    fn other_words_stay() {
        for text in
            ["UPDATE t SET a = x[1], b = 2", "SELECT x[1]", "UPDATE t SET (a, b) = (x[1], 2)"]
        {
            assert_eq!(spelled(text), text);
        }
    }
}
