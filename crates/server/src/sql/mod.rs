//! From SQL text to plans: what is to be done, with tables, columns and types resolved, so that a
//! prepared statement does none of this again.
//!
//! sqlparser reads the text. A statement with any clause that is not known here is refused, never
//! run without it: [`parse`] and then [`plan::plan`].

mod alter;
mod assigned_parts;
mod assigned_types;
mod beside;
mod calls;
mod changed;
mod check;
mod clauses;
mod column_options;
mod comment;
mod composite_type;
mod computed;
mod condition;
mod conflict_words;
mod constraints;
mod copy;
mod create;
mod create_as;
mod cursor;
mod cursor_words;
mod default;
mod dialect;
mod domain;
mod drop_missing;
mod enum_type;
mod exclusion_words;
mod explain;
mod extension;
mod fetch;
mod foreign_key;
mod form;
mod frame_words;
mod functions;
mod generated;
mod grant_words;
mod identity_words;
mod index;
mod insert;
mod like;
mod limit_words;
mod lock;
mod locking;
mod locking_words;
mod member_words;
mod merge;
mod merge_words;
mod names;
mod of_session;
mod only_words;
mod operand;
mod operator_words;
mod order_words;
mod overriding_words;
mod own_types;
mod owner;
mod parentheses;
mod path;
pub(crate) mod plan;
mod prepare;
mod query;
mod range;
mod record_words;
mod recursive_view_words;
mod relations;
mod rewrite;
mod role;
mod schema;
mod schema_elements;
mod select;
mod select_words;
mod sequence;
mod setting;
pub(crate) mod shape;
mod similar_words;
mod steps;
mod storage;
mod subscript_words;
mod transaction_words;
mod unique_words;
mod user;
mod variadic_words;
mod view;
mod with;
mod write;

pub(crate) use alter::{AlterPlan, Change, ColumnChange, KeyChange, PlannedChange};
pub(crate) use changed::Through;
pub(crate) use check::{
    NewCheck, expression_as_shown, shown as check_as_shown, written as check_as_written,
};
pub(crate) use comment::{CommentPlan, Part as CommentedPart};
pub(crate) use composite_type::CompositePlan;
pub(crate) use computed::{Computed, Returning};
pub(crate) use constraints::ConstraintsPlan;
pub(crate) use copy::{CopyFormat, CopyPlan, LineFormat};
pub(crate) use create::{NewKey, NewTable};
pub(crate) use create_as::CreateAsPlan;
pub(crate) use cursor::{DeclarePlan, Scroll};
pub(crate) use default::as_written as default_as_written;
pub(crate) use domain::{DomainChange, DomainPlan};
pub(crate) use enum_type::{EnumChange, EnumPlan, bad_label};
pub(crate) use fetch::{FetchPlan, Movement};
pub(crate) use foreign_key::ForeignKeyPlan;
pub(crate) use functions::Function;
pub(crate) use generated::NewGenerated;
pub(crate) use index::IndexPlan;
pub(crate) use insert::{Arbiter, Conflict, ConflictUpdate, InsertPlan, InsertRows};
pub(crate) use lock::{LockPlan, TableLock};
pub(crate) use locking::{KeyedRows, LockedRows, LockedTable, LockingPlan, WhenTaken};
pub(crate) use member_words::MemberChange;
pub(crate) use merge::{Action, MergePlan, MergeRows};
pub(crate) use names::{SYSTEM_SCHEMA, is_plain};
pub(crate) use operand::{Bound, Operand, Parameters, key_of};
pub(crate) use own_types::names_number as names_type;
pub(crate) use owner::OwnerPlan;
pub(crate) use path::{DEFAULT_PATH, Lookup, no_schema, schemas_of, written_name};
pub(crate) use plan::SavepointPlan;
pub(crate) use prepare::{ExecutePlan, PreparePlan};
pub(crate) use query::QueryPlan;
pub(crate) use range::{Form, Next, RangePlan, SortKey, Total, compare};
pub(crate) use role::{FirstMembers, RoleName, RoleStatement};
pub(crate) use schema::{SchemaPlan, is_builtin};
pub(crate) use select::{GetPlan, OutputColumn, Scalar, count_of};
pub(crate) use sequence::{Owner, SequenceChange, SequenceOptions, SequencePlan};
pub(crate) use setting::{Isolation, SettingChange, TransactionModes};
pub(crate) use storage::{Rebuilt, StoragePlan};
pub(crate) use user::{ROLE, SESSION_USER};
pub(crate) use view::materialized::RefreshPlan;
pub(crate) use view::{
    NewView, Updatable, ViewPlan, is_no_view, kind as view_kind, shown as view_as_shown,
};
pub(crate) use write::{Assignment, DeletePlan, NewValue, RowsToChange, UpdatePlan, WantedKey};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dialect::OnrushDialect;
use onrush::Database;
use onrush_query::QueryEngine;
use sqlparser::ast::Statement;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};
use view::materialized::RefreshStatement;

use crate::access::Access;
use crate::archive::Archives;
use crate::clients::Clients;
use crate::error::{Result, SqlError, state};
use crate::execute::plan::{CursorPlan, DefinitionPlan, Plan, SessionPlan};
use crate::lake::Lake;
use crate::seen::Seen;
use rewrite::Mark;

/// Most tokens in a row without a comma, inside one pair of parentheses. A chain of operators is a
/// tree as deep as the chain is long, and whoever walks it needs stack for it.
const CHAIN_TOKENS_MAX: usize = 4000;

/// Most operators of numbers and texts, and casts, in such a chain: types are looked for at each of them anew.
const CHAIN_OPERATORS_MAX: usize = 200;

/// What plans are made with.
#[derive(Clone, Copy)]
pub(crate) struct Planner<'b> {
    pub(crate) database: &'b Database,
    pub(crate) queries: &'b QueryEngine,
    pub(crate) clients: &'b Arc<Clients>,
    pub(crate) access: &'b Arc<Access>,
    /// The schemas of names that have none in front.
    pub(crate) path: &'b [String],
    /// The tables that the client sees.
    pub(crate) seen: &'b Seen,
    /// Which of many nodes the database is.
    pub(crate) node: Option<u32>,
    pub(crate) lake: &'b Arc<Lake>,
    pub(crate) archives: &'b Arc<Archives>,
    /// Of a statement of several steps, those that are planned already.
    pub(crate) steps: Option<&'b [steps::Named]>,
}

impl<'b> Planner<'b> {
    pub(crate) fn lookup(&self) -> Lookup<'b> {
        Lookup { seen: self.seen, path: self.path }
    }
}

/// How often a statement is planned while others define something.
const PLANNING_TRIES: usize = 10;

/// One statement, read but not planned.
#[derive(Clone, Debug)]
pub(crate) enum Parsed {
    Sql(Box<Statement>),
    /// CREATE of a table or a view, without the words of its form, which sqlparser does not know.
    Create(Box<Statement>, plan::CreateForm),
    /// ALTER TABLE ... SET SCHEMA, as if the table were to be called as the schema.
    SetSchema(Box<Statement>),
    /// COMMENT ON CONSTRAINT of this name, as if it were on its table.
    ConstraintComment(String, Box<Statement>),
    /// ALTER VIEW, as if it were a table.
    AlterView(Box<Statement>, view::AlterView),
    /// REFRESH MATERIALIZED VIEW.
    Refresh(RefreshStatement),
    /// CREATE or ALTER SEQUENCE.
    Sequence(Box<sequence::Statement>),
    /// CREATE or ALTER DOMAIN.
    Domain(Box<domain::Statement>),
    /// ALTER DATABASE of this name, with what is SET or RESET.
    AlterDatabase(String, Box<Statement>),
    /// A statement of this name, which has nothing to do here.
    Nothing(&'static str),
    /// FETCH and MOVE.
    Fetch(FetchPlan),
    /// SET CONSTRAINTS.
    Constraints(ConstraintsPlan),
    /// CHECKPOINT, which sqlparser does not know.
    Checkpoint,
    /// CREATE SCHEMA with what is to be in it.
    SchemaWith(Box<Statement>, Vec<Parsed>),
    /// SET ROLE and the like.
    Setting(SettingChange),
    /// OWNER TO and the like.
    Owner(owner::OwnerStatement),
    /// Rights on types, and on what is going to be made.
    Grant(grant_words::GrantStatement),
    /// Roles in roles.
    Members(member_words::MemberStatement),
    /// DROP of what there is none of.
    DropMissing(drop_missing::DropMissing),
    /// How things are stored.
    Storage(storage::StorageStatement),
}

impl Parsed {
    /// Whether the statement reads and writes rows or defines something, which one transaction can do with others.
    pub(crate) fn is_of_transactions(&self) -> bool {
        let statement = match self {
            Parsed::Sql(statement) => statement,
            Parsed::Create(..)
            | Parsed::Refresh(_)
            | Parsed::SetSchema(_)
            | Parsed::AlterView(..)
            | Parsed::ConstraintComment(..)
            | Parsed::SchemaWith(..)
            | Parsed::Owner(_)
            | Parsed::Grant(_)
            | Parsed::Members(_)
            | Parsed::DropMissing(_)
            | Parsed::Storage(_)
            | Parsed::Sequence(_)
            | Parsed::Domain(_) => return true,
            _ => return false,
        };
        let is_definition = matches!(
            **statement,
            Statement::CreateTable(_)
                | Statement::CreateView(_)
                | Statement::AlterTable(_)
                | Statement::Drop { .. }
                | Statement::Truncate(_)
                | Statement::Comment { .. }
                | Statement::CreateSchema { .. }
                | Statement::AlterSchema(_)
                | Statement::CreateRole(_)
                | Statement::AlterRole { .. }
                | Statement::Grant(_)
                | Statement::Revoke(_)
        );
        is_definition || self.is_of_rows()
    }

    /// Whether it is one that reads or writes rows, and may stand in a transaction.
    pub(crate) fn is_of_rows(&self) -> bool {
        let Parsed::Sql(statement) = self else { return false };
        matches!(
            **statement,
            Statement::Insert(_)
                | Statement::Query(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Merge(_)
                | Statement::Execute { .. }
        )
    }

    /// What is to be done, on the tables that there are now. Where it fails, and somebody has defined something
    /// meanwhile, a table may have been looked at before and after: then it is planned again.
    pub(crate) fn plan(&self, planner: Planner<'_>, parameters: &mut Parameters) -> Result<Plan> {
        let mut tries = 0;
        loop {
            tries += 1;
            let version = planner.database.definitions_version();
            let mut noted = parameters.clone();
            let planned = self.planned_once(planner, &mut noted);
            let is_old = planner.database.definitions_version() != version;
            if planned.is_err() && is_old && tries < PLANNING_TRIES {
                continue;
            }
            *parameters = noted;
            return planned;
        }
    }

    /// A fault of a planner fails the statement, not the client's connection.
    fn planned_once(&self, planner: Planner<'_>, parameters: &mut Parameters) -> Result<Plan> {
        let planned = AssertUnwindSafe(|| self.planned(planner, parameters));
        catch_unwind(planned).unwrap_or_else(|panic| {
            let told = panic.downcast_ref::<String>().map(String::as_str);
            let told = told.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            let message = format!("the statement could not be planned: {told}");
            Err(SqlError::new(state::INTERNAL, message))
        })
    }

    fn planned(&self, planner: Planner<'_>, parameters: &mut Parameters) -> Result<Plan> {
        match self {
            Parsed::Sql(statement) => plan::plan(&planner, statement, parameters),
            Parsed::Create(statement, form) => {
                plan::create_in_form(&planner, statement, *form, parameters)
            }
            Parsed::SetSchema(statement) => {
                alter::plan_set_schema(&planner, statement).map(Plan::Definition)
            }
            Parsed::AlterView(statement, form) => {
                view::alter(&planner, statement, *form).map(Plan::Definition)
            }
            Parsed::Refresh(statement) => {
                view::materialized::refresh(&planner, statement).map(Plan::Definition)
            }
            Parsed::ConstraintComment(name, statement) => {
                comment::of_constraint(&planner, name, statement).map(Plan::Definition)
            }
            Parsed::Sequence(statement) => {
                sequence::plan(&planner, statement).map(Plan::Definition)
            }
            Parsed::Domain(statement) => domain::plan(&planner, statement).map(Plan::Definition),
            Parsed::AlterDatabase(name, statement) => {
                setting::of_database(name, statement).map(Plan::Definition)
            }
            Parsed::Fetch(fetch) => Ok(Plan::Cursor(CursorPlan::Fetch(fetch.clone()))),
            Parsed::Constraints(plan) => Ok(SessionPlan::Constraints(plan.clone()).into()),
            Parsed::Checkpoint => Ok(SessionPlan::Checkpoint.into()),
            Parsed::Nothing(verb) => Ok(SessionPlan::Nothing(verb).into()),
            Parsed::Setting(change) => Ok(SessionPlan::Set(change.clone()).into()),
            Parsed::SchemaWith(statement, elements) => {
                schema_elements::plan(statement, elements).map(Plan::Definition)
            }
            Parsed::Owner(statement) => owner::plan(&planner, statement).map(Plan::Definition),
            Parsed::Grant(statement) => {
                let planned = grant_words::plan(&planner, statement)?;
                Ok(Plan::Definition(DefinitionPlan::Roles(planned)))
            }
            Parsed::Members(statement) => {
                Ok(Plan::Definition(DefinitionPlan::Roles(member_words::plan(statement)?)))
            }
            Parsed::Storage(statement) => storage::plan(&planner, statement).map(Plan::Definition),
            Parsed::DropMissing(drop) => drop_missing::plan(&planner, drop).map(Plan::Definition),
        }
    }
}

/// The statements of a text, as a client sends it.
pub(crate) fn read(text: &str) -> Result<Vec<Parsed>> {
    read_statements(text).map_err(|error| error.placed_in(text))
}

fn read_statements(text: &str) -> Result<Vec<Parsed>> {
    let only = text.trim().trim_end_matches(';').trim_end();
    if only.eq_ignore_ascii_case("checkpoint") {
        return Ok(vec![Parsed::Checkpoint]);
    }
    read_tokens(tokens(text)?)
}

fn read_tokens(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<Parsed>> {
    let mut marks = rewrite::rewrite(&mut tokens)?.into_iter().peekable();
    let statements = statements(tokens)?.into_iter().enumerate();
    let parsed = |(number, statement)| {
        let statement = Box::new(statement);
        Ok(match marks.next_if(|(marked, _)| *marked == number) {
            None => Parsed::Sql(statement),
            Some((_, Mark::Create(form))) => Parsed::Create(statement, form),
            Some((_, Mark::Refresh(refresh))) => Parsed::Refresh(refresh),
            Some((_, Mark::SetSchema)) => Parsed::SetSchema(statement),
            Some((_, Mark::AlterView(form))) => Parsed::AlterView(statement, form),
            Some((_, Mark::ConstraintComment(name))) => Parsed::ConstraintComment(name, statement),
            Some((_, Mark::Nothing(verb))) => Parsed::Nothing(verb),
            Some((_, Mark::Sequence(statement))) => Parsed::Sequence(Box::new(statement)),
            Some((_, Mark::Domain(statement))) => Parsed::Domain(Box::new(statement)),
            Some((_, Mark::Fetch(fetch))) => Parsed::Fetch(fetch),
            Some((_, Mark::Constraints(plan))) => Parsed::Constraints(plan),
            Some((_, Mark::Setting(change))) => Parsed::Setting(change),
            Some((_, Mark::Grant(statement))) => Parsed::Grant(statement),
            Some((_, Mark::Members(statement))) => Parsed::Members(statement),
            Some((_, Mark::Owner(statement))) => Parsed::Owner(statement),
            Some((_, Mark::DropMissing(drop))) => Parsed::DropMissing(drop),
            Some((_, Mark::Storage(statement))) => Parsed::Storage(statement),
            Some((_, Mark::Database(name))) => Parsed::AlterDatabase(name, statement),
            Some((_, Mark::Elements(elements))) => {
                let elements = elements.into_iter().map(read_tokens);
                Parsed::SchemaWith(statement, elements.collect::<Result<Vec<_>>>()?.concat())
            }
        })
    };
    statements.map(parsed).collect()
}

fn parse(text: &str) -> Result<Vec<Statement>> {
    statements(tokens(text)?)
}

fn statements(tokens: Vec<TokenWithSpan>) -> Result<Vec<Statement>> {
    let dialect = OnrushDialect::of(&tokens);
    Ok(Parser::new(&dialect).with_tokens_with_locations(tokens).parse_statements()?)
}

fn tokens(text: &str) -> Result<Vec<TokenWithSpan>> {
    let mut tokens = Tokenizer::new(&OnrushDialect::new(text.len()), text)
        .tokenize_with_location()
        .map_err(|error| {
            let start = error.location;
            SqlError::new(state::SYNTAX_ERROR, format!("syntax error: {}", error.message))
                .at(Span { start, end: start })
        })?;
    check_chains(&tokens)?;
    check_numbers(&tokens)?;
    role::users_to_roles(&mut tokens);
    Ok(tokens)
}

/// Refuses a word right behind a number, as in `123abc`: it would be read as a name for it; and a number in parts,
/// as in `1_000`.
fn check_numbers(tokens: &[TokenWithSpan]) -> Result<()> {
    let junk = |near: &str, span| {
        let message = format!("trailing junk after numeric literal at or near \"{near}\"");
        Err(SqlError::new(state::SYNTAX_ERROR, message).at(span))
    };
    for token in tokens {
        if let TokenWithSpan { token: Token::Number(number, _), span } = token
            && let Some(end) = number.find('_')
        {
            return junk(&number[..=end], *span);
        }
    }
    for two in tokens.windows(2) {
        if let [TokenWithSpan { token: Token::Number(number, _), span }, behind] = two
            && let Token::Word(word) = &behind.token
            && word.quote_style.is_none()
        {
            return junk(&format!("{number}{word}"), *span);
        }
    }
    Ok(())
}

/// Whether what is computed ends at a word.
fn parts_operands(word: Keyword) -> bool {
    use Keyword::{AND, ELSE, ON, OR, SELECT, THEN, WHEN, WHERE};
    matches!(word, AND | ELSE | ON | OR | SELECT | THEN | WHEN | WHERE)
}

/// What stands in a row inside one pair of parentheses without a comma.
#[derive(Default)]
struct Chain {
    tokens: usize,
    operators: usize,
}

fn check_chains(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut outer = Vec::new();
    let mut chain = Chain::default();
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => outer.push(std::mem::take(&mut chain)),
            Token::RParen => chain = outer.pop().unwrap_or_default(),
            Token::Comma | Token::SemiColon => chain = Chain::default(),
            Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::Mod
            | Token::StringConcat
            | Token::DoubleColon => chain.operators += 1,
            Token::Word(word) if parts_operands(word.keyword) => chain.operators = 0,
            _ => {}
        }
        chain.tokens += 1;
        if chain.tokens > CHAIN_TOKENS_MAX || chain.operators > CHAIN_OPERATORS_MAX {
            let message = "the statement has an expression that is too long";
            return Err(SqlError::new(state::STATEMENT_TOO_COMPLEX, message)
                .with_hint("Split it into several statements, or send values as parameters."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_and_long_expressions_are_refused_and_wide_ones_are_not() {
        let deep = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(parse(&deep).unwrap_err().state, state::STATEMENT_TOO_COMPLEX);
        let long = format!("SELECT 1{}", "+1".repeat(1_000_000));
        assert_eq!(parse(&long).unwrap_err().state, state::STATEMENT_TOO_COMPLEX);
        let casts = format!("SELECT 1{}", "::int".repeat(300));
        assert_eq!(parse(&casts).unwrap_err().state, state::STATEMENT_TOO_COMPLEX);
        let signed = format!("SELECT 1 WHERE 1 = -1{}", " OR 1 = -1".repeat(300));
        assert_eq!(parse(&signed).expect("each has one operator").len(), 1);
        let negated = format!("SELECT {} true", "NOT ".repeat(100_000));
        assert_eq!(parse(&negated).unwrap_err().state, state::STATEMENT_TOO_COMPLEX);
        let wide = format!("INSERT INTO t VALUES (1){}", ", (1)".repeat(10_000));
        assert_eq!(parse(&wide).expect("wide is fine").len(), 1);
    }

    /// With a way of writing whose inside is read twice at each level this would not end.
    #[test]
    fn what_is_nested_is_read_in_a_bounded_time() {
        let thread = std::thread::Builder::new().stack_size(crate::threads::STACK_BYTES);
        let read = thread.spawn(read_what_is_nested).expect("a thread");
        read.join().expect("no panic");
    }

    fn read_what_is_nested() {
        for (before, inside, after) in [
            ("SELECT ", "f(", ")"),
            ("SELECT ", "f(1, ", ")"),
            ("SELECT ", "(", ")"),
            ("SELECT ", "(SELECT ", ")"),
            ("SELECT ", "CASE WHEN true THEN ", " END"),
            ("SELECT ", "CAST(", " AS int)"),
            ("SELECT ", "ARRAY[", "]"),
            ("SELECT ", "NOT (", ")"),
            ("SELECT ", "1 IN (", ")"),
            ("SELECT ", "1 IN (SELECT ", ")"),
            ("SELECT ", "EXISTS (SELECT ", ")"),
            ("SELECT ", "1 = ANY (ARRAY[", "])"),
            ("SELECT ", "extract(day FROM ", ")"),
            ("SELECT ", "substring(", " FROM 1)"),
            ("SELECT ", "trim(", ")"),
            ("SELECT ", "position('a' IN ", ")"),
            ("SELECT ", "(1, ", ")"),
            ("SELECT ", "interval ", ""),
            ("SELECT * FROM ", "(SELECT * FROM ", ") a"),
            ("SELECT * FROM ", "(t JOIN ", " ON true)"),
            ("SELECT * FROM ", "(", ")"),
            ("", "(SELECT 1 UNION ", ")"),
            ("", "WITH a AS (", ") SELECT 1"),
        ] {
            let (inside, after) = (inside.repeat(40), after.repeat(40));
            for innermost in ["1", "t", "SELECT 1", "1 +"] {
                let _ = parse(&format!("{before}{inside}{innermost}{after}"));
            }
        }
    }
}
