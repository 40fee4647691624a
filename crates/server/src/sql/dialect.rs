//! SQL as it is read here: PostgreSQL's, in a time that is bounded by the length of the text.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{
    CastKind, CharacterLength, DataType, Expr, Ident, ObjectName, Reset, ResetStatement, Statement,
    Value,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::rewrite::keyword;

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

/// PostgreSQL's dialect without arguments that have an expression as their name, as in
/// `json_object('a' : 1)`: for their sake the parser reads each argument twice, so that the innermost of
/// n calls inside each other is read 2^n times.
///
/// What begins with a word such as CASE or CAST the parser reads once more, as something else, when it
/// is no such expression. Nested, that is 2^n times again, but only of text that is no SQL anyway: so
/// the attempts are counted.
#[derive(Debug)]
pub(crate) struct OnrushDialect {
    attempts_left: Cell<usize>,
    /// Whether joins may stand inside of each other without brackets.
    nests_joins: bool,
}

impl OnrushDialect {
    /// For a text of so many tokens, or bytes.
    pub(crate) fn new(tokens: usize) -> OnrushDialect {
        let attempts_left = Cell::new(ATTEMPTS_MIN + ATTEMPTS_PER_TOKEN * tokens);
        OnrushDialect { attempts_left, nests_joins: false }
    }

    /// For these tokens, which may have joins inside of joins, `a JOIN b JOIN c ON ... ON ...`: behind NATURAL, which
    /// needs no ON, the parser would take the next join for such a one.
    pub(crate) fn of(tokens: &[TokenWithSpan]) -> OnrushDialect {
        let is_natural = |token: &TokenWithSpan| keyword(token) == Some(Keyword::NATURAL);
        OnrushDialect {
            nests_joins: !tokens.iter().any(is_natural),
            ..OnrushDialect::new(tokens.len())
        }
    }
}

/// `a IS [NOT] DISTINCT FROM b`, where b ends before AND.
fn is_distinct(parser: &mut Parser<'_>, left: &Expr) -> Option<Result<Expr, ParserError>> {
    use Keyword::{DISTINCT, FROM, IS, NOT};
    let negated = match parser.parse_keywords(&[IS, DISTINCT, FROM]) {
        true => false,
        false if parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]) => true,
        false => return None,
    };
    let right = parser.parse_subexpr(POSTGRES.prec_value(Precedence::Is));
    Some(right.map(|right| {
        let (left, right) = (Box::new(left.clone()), Box::new(right));
        match negated {
            false => Expr::IsDistinctFrom(left, right),
            true => Expr::IsNotDistinctFrom(left, right),
        }
    }))
}

/// `'text'::bpchar`, as PostgreSQL shows a constant that is compared with, or given to, a char(n): of as many
/// characters as it has.
fn padded(parser: &mut Parser<'_>, left: &Expr) -> Option<Expr> {
    let Expr::Value(value) = left else { return None };
    let Value::SingleQuotedString(text) = &value.value else { return None };
    let [cast, named, behind] = parser.peek_tokens();
    let is_named = matches!(&named, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("bpchar"));
    let has_more = matches!(behind, Token::LParen | Token::LBracket);
    if cast != Token::DoubleColon || !is_named || has_more {
        return None;
    }
    parser.advance_token();
    parser.advance_token();
    let length = u64::try_from(text.chars().count().max(1)).ok()?;
    let length = CharacterLength::IntegerLength { length, unit: None };
    Some(Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(left.clone()),
        data_type: DataType::Char(Some(length)),
        array: false,
        format: None,
    })
}

/// How often an expression may be begun. SQL that is right begins about one for each token.
const ATTEMPTS_PER_TOKEN: usize = 8;
const ATTEMPTS_MIN: usize = 1000;

/// What is as in PostgreSQL's dialect: each method that has a body of its own there.
macro_rules! as_in_postgres {
    ($($supports:ident),* $(,)?) => {
        $(
            fn $supports(&self) -> bool {
                POSTGRES.$supports()
            }
        )*
    };
}

impl Dialect for OnrushDialect {
    fn dialect(&self) -> TypeId {
        POSTGRES.dialect()
    }

    /// Is asked wherever an expression begins.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        match self.attempts_left.get().checked_sub(1) {
            Some(left) => {
                self.attempts_left.set(left);
                rounded_interval(parser).or_else(|| typed_constant(parser))
            }
            None => Some(Err(ParserError::RecursionLimitExceeded)),
        }
    }

    /// COLLATE behind what is no plain operand, a cast for one; and IS DISTINCT FROM, which the parser lets take all
    /// that comes behind it.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        _: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if let Some(compared) = is_distinct(parser, expr) {
            return Some(compared);
        }
        if let Some(padded) = padded(parser, expr) {
            return Some(Ok(padded));
        }
        if !parser.parse_keyword(Keyword::COLLATE) {
            return None;
        }
        let collation = parser.parse_object_name(false);
        Some(collation.map(|collation| Expr::Collate { expr: Box::new(expr.clone()), collation }))
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        reset_of_zone(parser)
    }

    /// FOR begins a clause: `SELECT 1 FOR UPDATE`.
    fn is_column_alias(&self, word: &Keyword, parser: &mut Parser<'_>) -> bool {
        *word != Keyword::FOR && POSTGRES.is_column_alias(word, parser)
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        !self.nests_joins
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    as_in_postgres!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_comment_optimizer_hint,
    );

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        POSTGRES.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        POSTGRES.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        POSTGRES.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        POSTGRES.is_identifier_part(character)
    }

    fn is_reserved_for_identifier(&self, word: Keyword) -> bool {
        POSTGRES.is_reserved_for_identifier(word)
    }

    fn is_custom_operator_part(&self, character: char) -> bool {
        POSTGRES.is_custom_operator_part(character)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        POSTGRES.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        POSTGRES.prec_value(precedence)
    }
}

/// `interval(2) '1.234 seconds'`, of which the library forgets the digits.
fn rounded_interval(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let words = parser.peek_tokens_ref::<5>();
    let [interval, open, digits, close, constant] = words.map(|word| &word.token);
    let Token::Word(word) = interval else { return None };
    let (Token::Number(digits, _), Token::SingleQuotedString(text)) = (digits, constant) else {
        return None;
    };
    if word.keyword != Keyword::INTERVAL || *open != Token::LParen || *close != Token::RParen {
        return None;
    }
    let (precision, text) = (digits.parse().ok(), text.clone());
    for _ in 0..5 {
        parser.advance_token();
    }
    Some(Ok(Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
        data_type: DataType::Interval { fields: None, precision },
        array: false,
        format: None,
    }))
}

/// `inet '10.0.0.1'`: a constant of a type that the library does not know.
fn typed_constant(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let words = parser.peek_tokens_ref::<2>();
    let [name, constant] = words.map(|word| &word.token);
    let (Token::Word(word), Token::SingleQuotedString(text)) = (name, constant) else {
        return None;
    };
    let is_name = matches!(word.keyword, Keyword::NoKeyword | Keyword::NAME);
    if !is_name {
        return None;
    }
    let (name, text) = (word.clone().into_ident(words[0].span), text.clone());
    parser.advance_token();
    parser.advance_token();
    Some(Ok(Expr::Cast {
        kind: CastKind::DoubleColon,
        expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
        data_type: DataType::Custom(ObjectName::from(vec![name]), Vec::new()),
        array: false,
        format: None,
    }))
}

/// `RESET TIME ZONE`, whose name is of two words.
fn reset_of_zone(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let words = parser.peek_tokens_ref::<3>().map(|word| match &word.token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    });
    if words != [Keyword::RESET, Keyword::TIME, Keyword::ZONE] {
        return None;
    }
    for _ in 0..3 {
        parser.advance_token();
    }
    let name = ObjectName::from(vec![Ident::new("timezone")]);
    let reset = Reset::ConfigurationParameter(name);
    Some(Ok(Statement::Reset(ResetStatement { reset })))
}
