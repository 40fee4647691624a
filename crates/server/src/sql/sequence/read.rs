//! The words of CREATE and ALTER SEQUENCE.
//!
//! ```text
//! CREATE [TEMPORARY | TEMP | UNLOGGED] SEQUENCE [IF NOT EXISTS] name [option ...]
//! ALTER SEQUENCE [IF EXISTS] name option ... | RENAME TO name | SET SCHEMA name
//! option: AS type | INCREMENT [BY] n | MINVALUE n | NO MINVALUE | MAXVALUE n | NO MAXVALUE | START [WITH] n
//!       | CACHE n | [NO] CYCLE | OWNED BY table.column | OWNED BY NONE | RESTART [[WITH] n], in ALTER SEQUENCE
//! ```

use sqlparser::ast::{DataType, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::options::{self, SequenceOptions};
use crate::error::{Result, SqlError, state};
use crate::sql::Planner;
use crate::sql::dialect::OnrushDialect;

/// A statement as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Create { name: ObjectName, is_temporary: bool, if_not_exists: bool, options: Written },
    Alter { name: ObjectName, if_exists: bool, action: Action },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Options(Written),
    Rename(Ident),
    SetSchema(Ident),
}

/// Options as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    data_type: Option<DataType>,
    increment: Option<i64>,
    least: Option<Option<i64>>,
    greatest: Option<Option<i64>>,
    start: Option<i64>,
    restart: Option<Option<i64>>,
    cache: Option<i64>,
    cycles: Option<bool>,
    owner: Option<Option<ObjectName>>,
}

impl Written {
    pub(super) fn planned(&self, planner: &Planner<'_>) -> Result<SequenceOptions> {
        let owner = |owner: &Option<ObjectName>| {
            owner.as_ref().map(|name| super::owner(planner, name)).transpose()
        };
        Ok(SequenceOptions {
            data_type: self.data_type.as_ref().map(options::data_type).transpose()?,
            increment: self.increment,
            least: self.least,
            greatest: self.greatest,
            start: self.start,
            restart: self.restart,
            cache: self.cache,
            cycles: self.cycles,
            owner: self.owner.as_ref().map(owner).transpose()?,
        })
    }
}

/// Reads a statement of these words. None if it is about something else.
pub(in crate::sql) fn read(words: &[TokenWithSpan]) -> Option<Result<Statement>> {
    let dialect = OnrushDialect::new(words.len());
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(words.to_vec());
    let verb = parser.parse_one_of_keywords(&[Keyword::CREATE, Keyword::ALTER])?;
    let is_create = verb == Keyword::CREATE;
    let temporary = [Keyword::TEMPORARY, Keyword::TEMP];
    let is_temporary = is_create && parser.parse_one_of_keywords(&temporary).is_some();
    // It lasts all the same, as does that of a column of an unlogged table.
    let _ = is_create && !is_temporary && parser.parse_keyword(Keyword::UNLOGGED);
    parser
        .parse_keyword(Keyword::SEQUENCE)
        .then(|| if is_create { create(&mut parser, is_temporary) } else { alter(&mut parser) })
}

fn create(parser: &mut Parser<'_>, is_temporary: bool) -> Result<Statement> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let options = options(parser, false)?;
    Ok(Statement::Create { name, is_temporary, if_not_exists, options })
}

fn alter(parser: &mut Parser<'_>) -> Result<Statement> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let action = if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        Action::Rename(parser.parse_identifier()?)
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        Action::SetSchema(parser.parse_identifier()?)
    } else {
        let options = options(parser, true)?;
        if options == Written::default() {
            return Err(parser
                .expected_ref("an option", parser.peek_token_ref())
                .map_or_else(SqlError::from, |()| {
                    SqlError::new(state::SYNTAX_ERROR, "syntax error")
                }));
        }
        return Ok(Statement::Alter { name, if_exists, action: Action::Options(options) });
    };
    end(parser)?;
    Ok(Statement::Alter { name, if_exists, action })
}

fn end(parser: &Parser<'_>) -> Result<()> {
    match parser.peek_token_ref().token {
        Token::EOF => Ok(()),
        _ => Ok(parser.expected_ref("end of statement", parser.peek_token_ref())?),
    }
}

fn options(parser: &mut Parser<'_>, may_restart: bool) -> Result<Written> {
    let mut written = Written::default();
    loop {
        let is_new = if parser.parse_keyword(Keyword::AS) {
            put(&mut written.data_type, parser.parse_data_type()?)
        } else if parser.parse_keyword(Keyword::INCREMENT) {
            let _says_nothing = parser.parse_keyword(Keyword::BY);
            put(&mut written.increment, number(parser)?)
        } else if parser.parse_keyword(Keyword::MINVALUE) {
            put(&mut written.least, Some(number(parser)?))
        } else if parser.parse_keyword(Keyword::MAXVALUE) {
            put(&mut written.greatest, Some(number(parser)?))
        } else if parser.parse_keywords(&[Keyword::NO, Keyword::MINVALUE]) {
            put(&mut written.least, None)
        } else if parser.parse_keywords(&[Keyword::NO, Keyword::MAXVALUE]) {
            put(&mut written.greatest, None)
        } else if parser.parse_keywords(&[Keyword::NO, Keyword::CYCLE]) {
            put(&mut written.cycles, false)
        } else if parser.parse_keyword(Keyword::CYCLE) {
            put(&mut written.cycles, true)
        } else if parser.parse_keyword(Keyword::START) {
            let _says_nothing = parser.parse_keyword(Keyword::WITH);
            put(&mut written.start, number(parser)?)
        } else if may_restart && parser.parse_keyword(Keyword::RESTART) {
            let is_said = parser.parse_keyword(Keyword::WITH);
            let follows = matches!(
                parser.peek_token_ref().token,
                Token::Number(..) | Token::Minus | Token::Plus
            );
            let value = (is_said || follows).then(|| number(parser)).transpose()?;
            put(&mut written.restart, value)
        } else if parser.parse_keyword(Keyword::CACHE) {
            put(&mut written.cache, number(parser)?)
        } else if parser.parse_keywords(&[Keyword::OWNED, Keyword::BY]) {
            let owner = match parser.parse_keyword(Keyword::NONE) {
                true => None,
                false => Some(parser.parse_object_name(false)?),
            };
            put(&mut written.owner, owner)
        } else {
            end(parser)?;
            return Ok(written);
        };
        if !is_new {
            return Err(SqlError::new(state::SYNTAX_ERROR, "conflicting or redundant options"));
        }
    }
}

/// False if there was one before.
fn put<T>(option: &mut Option<T>, value: T) -> bool {
    option.replace(value).is_none()
}

fn number(parser: &mut Parser<'_>) -> Result<i64> {
    let sign = match parser.peek_token_ref().token {
        Token::Minus => "-",
        _ => "",
    };
    if matches!(parser.peek_token_ref().token, Token::Minus | Token::Plus) {
        parser.next_token();
    }
    let read = parser.parse_number_value();
    let digits = read.map_err(|error: ParserError| SqlError::from(error))?.to_string();
    format!("{sign}{digits}").parse().map_err(|_| {
        let message = format!("value \"{sign}{digits}\" is out of range for type bigint");
        SqlError::new(state::NUMERIC_OUT_OF_RANGE, message)
    })
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn written(text: &str) -> Option<Result<Statement>> {
        let dialect = OnrushDialect::new(text.len());
        read(&Tokenizer::new(&dialect, text).tokenize_with_location().expect("words"))
    }

    #[test]
    fn options_come_in_any_order() {
        let text =
            "CREATE TEMP SEQUENCE IF NOT EXISTS a.s CYCLE START -3 NO MAXVALUE AS int OWNED BY t.c";
        let Some(Ok(Statement::Create { is_temporary, if_not_exists, options, .. })) =
            written(text)
        else {
            panic!("it is one");
        };
        assert!(is_temporary && if_not_exists);
        assert_eq!((options.start, options.cycles), (Some(-3), Some(true)));
        assert_eq!((options.greatest, options.least), (Some(None), None));
        let Some(Ok(Statement::Alter { action: Action::Options(options), .. })) =
            written("ALTER SEQUENCE s RESTART INCREMENT BY 2 RESTART").map(|read| {
                read.or_else(|_| written("ALTER SEQUENCE s RESTART CACHE 2").expect("one"))
            })
        else {
            panic!("it is one");
        };
        assert_eq!((options.restart, options.cache), (Some(None), Some(2)));
    }

    #[test]
    fn other_statements_are_left() {
        for text in ["CREATE TABLE t (a int)", "ALTER TABLE t RENAME TO u", "SELECT 1"] {
            assert!(written(text).is_none(), "{text}");
        }
        for text in ["CREATE SEQUENCE s RESTART", "CREATE SEQUENCE s CACHE", "ALTER SEQUENCE s"] {
            assert!(written(text).is_some_and(|read| read.is_err()), "{text}");
        }
    }
}
