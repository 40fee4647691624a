//! The words of CREATE and ALTER DOMAIN. What stands behind the name is read as what it is alike: the definition of a
//! column, or a change of a table.
//!
//! ```text
//! CREATE DOMAIN name [AS] type [COLLATE name] [DEFAULT value]
//!                 [[CONSTRAINT name] NOT NULL | NULL | CHECK (condition)]...
//! ALTER DOMAIN name SET DEFAULT value | DROP DEFAULT | SET NOT NULL | DROP NOT NULL | SET SCHEMA name | RENAME TO name
//!                 | ADD [CONSTRAINT name] CHECK (condition) [NOT VALID] | VALIDATE CONSTRAINT name
//!                 | DROP CONSTRAINT [IF EXISTS] name [RESTRICT | CASCADE] | RENAME CONSTRAINT name TO name
//! ```

use onrush_types::DOMAIN_VALUE;
use sqlparser::ast::{self, AlterTableOperation, ColumnDef, Ident, ObjectName};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError, state};
use crate::sql::dialect::OnrushDialect;

/// A statement as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// The value is written as a column.
    Create {
        name: ObjectName,
        value: Box<ColumnDef>,
    },
    Alter {
        name: ObjectName,
        action: Action,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// As of a table whose only column is the value.
    OfTable(Box<AlterTableOperation>),
    SetSchema(Ident),
}

/// Reads a statement of these words. None if it is about something else.
pub(in crate::sql) fn read(words: &[TokenWithSpan]) -> Option<Result<Statement>> {
    let words = words.iter().filter(|word| !matches!(word.token, Token::Whitespace(_)));
    let words: Vec<TokenWithSpan> = words.cloned().collect();
    let [verb, domain, rest @ ..] = words.as_slice() else { return None };
    if !is_word(domain, "domain") {
        return None;
    }
    match () {
        () if is_word(verb, "create") => Some(create(rest)),
        () if is_word(verb, "alter") => Some(alter(rest)),
        () => None,
    }
}

fn is_word(token: &TokenWithSpan, wanted: &str) -> bool {
    matches!(&token.token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn create(words: &[TokenWithSpan]) -> Result<Statement> {
    let (name, mut rest) = named(words)?;
    if let [word, behind @ ..] = rest
        && is_word(word, "as")
    {
        rest = behind;
    }
    let value = parsed(vec![value()], rest, |parser| parser.parse_column_def())?;
    Ok(Statement::Create { name, value: Box::new(value) })
}

fn alter(words: &[TokenWithSpan]) -> Result<Statement> {
    let (name, rest) = named(words)?;
    if let [set, schema, to] = rest
        && is_word(set, "set")
        && is_word(schema, "schema")
    {
        let to = parsed(Vec::new(), std::slice::from_ref(to), |parser| parser.parse_identifier())?;
        return Ok(Statement::Alter { name, action: Action::SetSchema(to) });
    }
    let mut before = vec![Token::make_keyword("ALTER"), Token::make_keyword("TABLE")];
    before.push(value());
    let is_of_column = match rest {
        [verb, what, ..] if is_word(verb, "set") || is_word(verb, "drop") => {
            is_word(what, "default") || is_word(what, "not")
        }
        _ => false,
    };
    if is_of_column {
        before.extend([Token::make_keyword("ALTER"), Token::make_keyword("COLUMN"), value()]);
    }
    let statement = parsed(before, rest, |parser| parser.parse_statement())?;
    let ast::Statement::AlterTable(mut alter) = statement else { return Err(syntax_error()) };
    match (alter.operations.pop(), alter.operations.is_empty()) {
        (Some(ast::AlterTableOperation::AlterColumn { .. }), true) if !is_of_column => {
            Err(syntax_error())
        }
        (Some(operation), true) => {
            Ok(Statement::Alter { name, action: Action::OfTable(Box::new(operation)) })
        }
        _ => Err(syntax_error()),
    }
}

fn value() -> Token {
    Token::make_word(DOMAIN_VALUE, Some('"'))
}

fn syntax_error() -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, "syntax error")
}

/// The name in front, and what follows it.
fn named(words: &[TokenWithSpan]) -> Result<(ObjectName, &[TokenWithSpan])> {
    let mut end = words.len().min(1);
    while words.get(end).is_some_and(|word| word.token == Token::Period) {
        end = words.len().min(end + 2);
    }
    let (name, rest) = words.split_at(end);
    Ok((parsed(Vec::new(), name, |parser| parser.parse_object_name(false))?, rest))
}

/// Reads all of these words, with others in front.
fn parsed<T>(
    before: Vec<Token>,
    words: &[TokenWithSpan],
    read: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, sqlparser::parser::ParserError>,
) -> Result<T> {
    let dialect = OnrushDialect::new(before.len() + words.len());
    let before = before.into_iter().map(TokenWithSpan::wrap);
    let tokens = before.chain(words.iter().cloned()).collect();
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let found = read(&mut parser)?;
    match parser.peek_token_ref().token {
        Token::EOF => Ok(found),
        _ => {
            parser.expected_ref::<()>("end of statement", parser.peek_token_ref())?;
            Err(syntax_error())
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::{AlterColumnOperation, ColumnOption};
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn written(text: &str) -> Option<Result<Statement>> {
        let dialect = OnrushDialect::new(text.len());
        read(&Tokenizer::new(&dialect, text).tokenize_with_location().expect("words"))
    }

    #[test]
    fn a_domain_is_read_as_a_column() {
        let text = "CREATE DOMAIN s.d AS varchar(3) CONSTRAINT short CHECK (VALUE <> '') NOT NULL DEFAULT 'x'";
        let Some(Ok(Statement::Create { name, value })) = written(text) else {
            panic!("it is one");
        };
        assert_eq!(name.to_string(), "s.d");
        assert_eq!(value.options[0].name.as_ref().map(|name| name.value.as_str()), Some("short"));
        assert!(matches!(value.options[0].option, ColumnOption::Check(_)));
        assert_eq!(value.options[1].option, ColumnOption::NotNull);
        assert!(written("CREATE DOMAIN d int CHECK (VALUE > 0)").is_some_and(|read| read.is_ok()));
    }

    #[test]
    fn changes_of_the_value_are_those_of_a_column() {
        let Some(Ok(Statement::Alter { action, .. })) = written("ALTER DOMAIN d DROP NOT NULL")
        else {
            panic!("it is one");
        };
        let Action::OfTable(operation) = action else { panic!("it is of a column") };
        let AlterTableOperation::AlterColumn { op, .. } = *operation else {
            panic!("it is of a column")
        };
        assert_eq!(op, AlterColumnOperation::DropNotNull);
        for text in [
            "ALTER DOMAIN d SET DEFAULT 3 + 4",
            "ALTER DOMAIN d ADD CONSTRAINT c CHECK (VALUE > 0) NOT VALID",
            "ALTER DOMAIN d DROP CONSTRAINT IF EXISTS c CASCADE",
            "ALTER DOMAIN d RENAME CONSTRAINT c TO e",
            "ALTER DOMAIN d VALIDATE CONSTRAINT c",
            "ALTER DOMAIN d RENAME TO e",
            "ALTER DOMAIN d SET SCHEMA s",
        ] {
            assert!(matches!(written(text), Some(Ok(Statement::Alter { .. }))), "{text}");
        }
    }

    #[test]
    fn other_statements_are_left() {
        for text in ["CREATE TABLE domain (a int)", "ALTER TABLE t RENAME TO u", "SELECT 1"] {
            assert!(written(text).is_none(), "{text}");
        }
        for text in ["CREATE DOMAIN d", "ALTER DOMAIN d", "ALTER DOMAIN d DROP CONSTRAINT c d"] {
            assert!(written(text).is_some_and(|read| read.is_err()), "{text}");
        }
    }
}
