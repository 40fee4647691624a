//! LIKE in CREATE TABLE: columns as another table has them, and more of it as the clause says.
//!
//! sqlparser knows LIKE alone between the parentheses and with few options, so each such clause is written as a column
//! before it is read ([`rewrite`]): its name and type are [`LIKE`], and what the clause says stands behind the type.

use std::ops::Range;

use onrush::{ColumnDefinition, DataType, DefaultValue, Table};
use sqlparser::ast::{self, ColumnDef};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::check::NewCheck;
use super::create::NewKey;
use super::dialect::OnrushDialect;
use super::generated::NewGenerated;
use super::index::IndexPlan;
use super::sequence::SequenceOptions;
use super::{Planner, names, plan};
use crate::catalog::is_identity;
use crate::error::{Result, SqlError, state};
use crate::{comments, schemas};

/// Name and type of the column that stands for a clause.
const LIKE: &str = "onrush.like";

/// What a clause takes from a table beside names, types and NOT NULL.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    comments: bool,
    constraints: bool,
    defaults: bool,
    generated: bool,
    identity: bool,
    indexes: bool,
}

/// What a new table has from another one.
#[derive(Default)]
pub(super) struct Copied {
    pub(super) columns: Vec<ColumnDefinition>,
    pub(super) checks: Vec<NewCheck>,
    pub(super) key: Option<NewKey>,
    pub(super) indexes: Vec<IndexPlan>,
    pub(super) sequences: Vec<(String, SequenceOptions)>,
    /// What is said of columns, by their names.
    pub(super) comments: Vec<(String, String)>,
    pub(super) generated: Vec<NewGenerated>,
}

/// Writes the LIKE clauses of a CREATE TABLE as columns.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let clauses = clauses(tokens, statement);
    for (range, words) in clauses.into_iter().rev() {
        let span = tokens[range.start].span;
        let mut written = vec![
            Token::make_word(LIKE, Some('"')),
            Token::Whitespace(Whitespace::Space),
            Token::make_word(LIKE, Some('"')),
            Token::LParen,
        ];
        for (at, word) in words.into_iter().enumerate() {
            if at > 0 {
                written.push(Token::Comma);
            }
            written.push(Token::SingleQuotedString(word));
        }
        written.push(Token::RParen);
        tokens.splice(range, written.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// Where the clauses are, and what each says: the name of its table, and its options.
fn clauses(tokens: &[TokenWithSpan], statement: Range<usize>) -> Vec<(Range<usize>, Vec<String>)> {
    let mut found = Vec::new();
    let (mut depth, mut begins) = (0, None);
    for at in statement {
        match &tokens[at].token {
            Token::LParen => {
                depth += 1;
                if depth == 1 {
                    begins = Some(at + 1);
                }
            }
            token @ (Token::RParen | Token::Comma) => {
                if let (1, Some(start)) = (depth, begins.take()) {
                    found.extend(clause(tokens, start..at));
                }
                match token {
                    Token::RParen => depth -= 1,
                    _ if depth == 1 => begins = Some(at + 1),
                    _ => {}
                }
                // Only the first parentheses have columns.
                if depth == 0 {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

/// One element of the list, if it is such a clause.
fn clause(tokens: &[TokenWithSpan], element: Range<usize>) -> Option<(Range<usize>, Vec<String>)> {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let places: Vec<usize> = element.clone().filter(is_word).collect();
    let word = |at: &usize| tokens[*at].token.to_string().to_lowercase();
    let (first, rest) = places.split_first()?;
    if word(first) != "like" {
        return None;
    }
    let is_option = |at: &usize| matches!(word(at).as_str(), "including" | "excluding");
    let named = rest.iter().position(is_option).unwrap_or(rest.len());
    let name: String = rest[..named].iter().map(|at| tokens[*at].token.to_string()).collect();
    let options =
        rest[named..].chunks(2).map(|pair| pair.iter().map(word).collect::<Vec<_>>().join(" "));
    Some((*first..element.end, std::iter::once(name).chain(options).collect()))
}

/// What a column stands for that is a clause; none if it is a column.
pub(super) fn of(planner: &Planner<'_>, column: &ColumnDef) -> Result<Option<Copied>> {
    let ast::DataType::Custom(kind, words) = &column.data_type else { return Ok(None) };
    if names::parts(kind)?.as_slice() != [LIKE] {
        return Ok(None);
    }
    let (name, options) = words.split_first().ok_or_else(|| syntax_error("LIKE"))?;
    let mut taken = Taken::default();
    for option in options {
        taken.set(option)?;
    }
    let dialect = OnrushDialect::new(name.len());
    let parser = Parser::new(&dialect).try_with_sql(name);
    let name = parser.and_then(|mut parser| parser.parse_object_name(false));
    let table = plan::relation_named(planner, &name.map_err(|_| syntax_error("LIKE"))?)?;
    if table.definition().sequence().is_some() {
        let name = schemas::own_name(table.name());
        let message = format!("relation \"{name}\" is invalid in LIKE clause");
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message)
            .with_detail("This operation is not supported for sequences."));
    }
    taken.from(planner, &table).map(Some)
}

fn syntax_error(near: &str) -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, format!("syntax error at or near \"{near}\""))
}

impl Taken {
    fn set(&mut self, option: &str) -> Result<()> {
        let (word, what) = option.split_once(' ').ok_or_else(|| syntax_error(option))?;
        let is = word == "including";
        let all = Taken {
            comments: is,
            constraints: is,
            defaults: is,
            generated: is,
            identity: is,
            indexes: is,
        };
        match what {
            "all" => *self = all,
            "comments" => self.comments = is,
            "constraints" => self.constraints = is,
            "defaults" => self.defaults = is,
            "generated" => self.generated = is,
            "identity" => self.identity = is,
            "indexes" => self.indexes = is,
            // No table has any of that.
            "compression" | "statistics" | "storage" => {}
            other => return Err(syntax_error(other)),
        }
        Ok(())
    }

    fn from(self, planner: &Planner<'_>, table: &Table) -> Result<Copied> {
        let definition = table.definition();
        let mut copied = Copied::default();
        for at in definition.shown_columns() {
            if let Some(data_type) = crate::views::column_type(definition, at).in_table() {
                self.column(planner, table, (at, data_type), &mut copied)?;
                continue;
            }
            let name = &definition.columns()[at].name;
            return Err(SqlError::not_supported(
                format!("the type of column {name} of {}", table.name()),
                "Write the columns out.",
            ));
        }
        if self.generated {
            copied.generated = NewGenerated::again(definition)?;
        }
        if self.constraints {
            for check in definition.checks() {
                copied.checks.push(NewCheck::again(definition, check)?);
            }
        }
        if self.indexes && definition.is_table() {
            if definition.row_id().is_none() {
                let name = |at: usize| definition.columns()[at].name.clone();
                let columns = definition.primary_key().iter().map(|at| name(*at)).collect();
                let included = definition.key_included().iter();
                let included = included.filter_map(|it| definition.column_with_number(*it));
                let included = included.map(name).collect();
                copied.key = Some(NewKey { name: None, columns, included });
            }
            for index in definition.indexes() {
                copied.indexes.push(IndexPlan::like(index, definition)?);
            }
        }
        Ok(copied)
    }

    fn column(
        self,
        planner: &Planner<'_>,
        table: &Table,
        (at, data_type): (usize, DataType),
        copied: &mut Copied,
    ) -> Result<()> {
        let definition = table.definition();
        let own = &definition.columns()[at];
        let mut column = ColumnDefinition::new(&own.name, data_type);
        if !own.nullable {
            column = column.not_null();
        }
        column.domain.clone_from(&own.domain);
        let is_identity = is_identity(own);
        let sequence = sequence_of(planner, table, at);
        // What INCLUDING DEFAULTS does not copy.
        let is_generated = matches!(own.default, DefaultValue::Generated(_))
            || (sequence.is_some() && own.is_always_generated);
        match sequence {
            // An identity that is more than a counter.
            Some(options) if own.is_always_generated && self.identity => {
                column.is_always_generated = true;
                copied.sequences.push((own.name.clone(), options));
            }
            _ if own.domain.as_ref().is_some_and(|domain| domain.gives_default) => {}
            _ if !is_generated && (if is_identity { self.identity } else { self.defaults }) => {
                column.default = own.default.clone();
                column.is_always_generated = own.is_always_generated;
            }
            _ => column.domain.iter_mut().for_each(|domain| domain.gives_default = true),
        }
        if self.comments
            && let Some(text) = planner.seen.comment(comments::place(table, Some(at)))?
        {
            copied.comments.push((own.name.clone(), text));
        }
        copied.columns.push(column);
        Ok(())
    }
}

/// How the sequence counts that a column owns.
fn sequence_of(planner: &Planner<'_>, table: &Table, column: usize) -> Option<SequenceOptions> {
    let number = table.definition().column_number(column);
    planner.seen.sequences().iter().find_map(|sequence| {
        let sequence = sequence.definition().sequence()?;
        let owner = sequence.owner?;
        let is_it = owner.table == table.id() && usize::from(owner.column) == number;
        is_it.then(|| SequenceOptions {
            data_type: Some(sequence.data_type),
            increment: Some(sequence.increment),
            least: Some(Some(sequence.least)),
            greatest: Some(Some(sequence.greatest)),
            start: Some(sequence.start),
            cache: Some(sequence.cache),
            cycles: Some(sequence.cycles),
            ..SequenceOptions::default()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> String {
        let mut tokens = super::super::tokens(text).expect("words");
        let all = 0..tokens.len();
        rewrite(&mut tokens, all);
        let words = tokens.iter().map(|token| token.token.to_string());
        words.filter(|word| !word.trim().is_empty()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn clauses_become_columns() {
        assert_eq!(
            rewritten("CREATE TABLE t (LIKE s.u INCLUDING ALL EXCLUDING defaults, a int)"),
            "CREATE TABLE t ( \"onrush.like\" \"onrush.like\" ( 's.u' , 'including all' , \
             'excluding defaults' ) , a int )"
        );
        for text in ["CREATE TABLE t ( a text CHECK ( a LIKE 'b' ) )", "CREATE TABLE u ( b int )"] {
            assert_eq!(rewritten(text), text);
        }
    }
}
