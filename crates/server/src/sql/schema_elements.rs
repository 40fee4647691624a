//! CREATE SCHEMA with what is to be in it: tables, views, indexes, sequences and grants, each a statement of its own
//! behind the schema's name.

use std::ops::Range;

use sqlparser::ast::{ObjectName, ObjectNamePart, Statement};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{Parsed, names, schema, sequence};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::{DefinitionPlan, SchemaElements};
use crate::sql::SchemaPlan;

/// Takes the elements out of a statement that makes a schema; none if it has none.
pub(super) fn take(
    tokens: &mut Vec<TokenWithSpan>,
    statement: Range<usize>,
) -> Option<Vec<Vec<TokenWithSpan>>> {
    let places: Vec<usize> =
        statement.clone().filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let words: Vec<String> =
        places.iter().map(|at| tokens[*at].token.to_string().to_lowercase()).collect();
    if words.len() < 3 || words[0] != "create" || words[1] != "schema" {
        return None;
    }
    let mut depth = 0;
    let mut starts = Vec::new();
    for (at, word) in words.iter().enumerate().skip(3) {
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            // A right of this name stands behind these.
            "create" if depth == 0 && !matches!(words[at - 1].as_str(), "grant" | ",") => {
                starts.push(places[at]);
            }
            "grant" if depth == 0 => starts.push(places[at]),
            _ => {}
        }
    }
    let first = *starts.first()?;
    let ends = starts.iter().copied().skip(1).chain([statement.end]);
    let elements = starts.iter().copied().zip(ends);
    let elements = elements.map(|(start, end)| tokens[start..end].to_vec()).collect();
    tokens.drain(first..statement.end);
    Some(elements)
}

/// Plans it; the elements once the schema is there.
pub(super) fn plan(statement: &Statement, elements: &[Parsed]) -> Result<DefinitionPlan> {
    let DefinitionPlan::Schema(schema) = schema::create(statement)? else {
        return Err(SqlError::new(state::INTERNAL, "CREATE SCHEMA makes no schema"));
    };
    let SchemaPlan::Create { name, if_not_exists, .. } = &schema else {
        return Err(SqlError::new(state::INTERNAL, "CREATE SCHEMA makes no schema"));
    };
    if *if_not_exists {
        let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let mut elements = elements.to_vec();
    for element in &elements {
        check_schema(name, element)?;
    }
    // As PostgreSQL: what others need comes first.
    elements.sort_by_key(place);
    let elements = elements.into();
    Ok(DefinitionPlan::SchemaWith(SchemaElements { schema, elements }))
}

fn place(element: &Parsed) -> usize {
    match element {
        Parsed::Sequence(_) => 0,
        Parsed::Grant(_) => 4,
        Parsed::Sql(statement) => match **statement {
            Statement::CreateTable(_) => 1,
            Statement::CreateView(_) => 2,
            Statement::CreateIndex(_) => 3,
            _ => 4,
        },
        _ => 1,
    }
}

/// Refuses what is no element, or is of another schema.
fn check_schema(name: &str, element: &Parsed) -> Result<()> {
    let object = match element {
        Parsed::Sequence(statement) => match &**statement {
            sequence::Statement::Create { name, .. } => Some(name),
            sequence::Statement::Alter { .. } => None,
        },
        Parsed::Create(statement, _) | Parsed::Sql(statement) => match &**statement {
            Statement::CreateTable(table) if table.query.is_none() => Some(&table.name),
            Statement::CreateView(view) => Some(&view.name),
            Statement::CreateIndex(index) => Some(&index.table_name),
            Statement::Grant(_) => return Ok(()),
            _ => None,
        },
        Parsed::Grant(statement) if statement.is_grant_on_types() => return Ok(()),
        _ => None,
    };
    let Some(object) = object else {
        return Err(SqlError::not_supported(
            "this element of a schema",
            "There are CREATE TABLE, VIEW, INDEX and SEQUENCE, and GRANT.",
        ));
    };
    match schema_of(object) {
        Some(given) if given != name => {
            let message = format!(
                "CREATE specifies a schema ({given}) different from the one being created ({name})"
            );
            Err(SqlError::new(state::INVALID_SCHEMA_DEFINITION, message))
        }
        _ => Ok(()),
    }
}

fn schema_of(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(schema), _] => Some(names::identifier(schema)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> (String, Vec<String>) {
        let mut tokens = super::super::tokens(text).expect("words");
        let all = 0..tokens.len();
        let written = |tokens: &[TokenWithSpan]| {
            let words = tokens.iter().map(|token| token.token.to_string());
            words.collect::<String>().trim().to_owned()
        };
        let elements = take(&mut tokens, all).unwrap_or_default();
        (written(&tokens), elements.iter().map(|element| written(element)).collect())
    }

    #[test]
    fn elements_are_taken_apart() {
        let table = "CREATE TABLE t (a int)";
        let grant = "GRANT CREATE, USAGE ON SCHEMA s TO r";
        let (schema, elements) = taken(&format!("CREATE SCHEMA s AUTHORIZATION r {table} {grant}"));
        assert_eq!(schema, "CREATE SCHEMA s AUTHORIZATION r");
        assert_eq!(elements, [table, grant]);
        for text in ["CREATE SCHEMA s", table, "CREATE SCHEMA \"create\" AUTHORIZATION r"] {
            assert_eq!(taken(text), (text.to_owned(), Vec::new()), "{text}");
        }
    }
}
