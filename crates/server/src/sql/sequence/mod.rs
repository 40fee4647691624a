//! CREATE, ALTER and DROP SEQUENCE. sqlparser reads the first in one order of its clauses only, and the second not at
//! all, so both are read here ([`mod@read`]).

mod default;
mod identity;
mod name_words;
mod options;
mod read;
mod words;

use sqlparser::ast::ObjectName;

pub(super) use default::{bound, default_of, next_of};
pub(super) use identity::{IdentitySource, of_identity};
pub(super) use name_words::take_own_name;
pub(crate) use options::{Owner, SequenceOptions};
pub(crate) use read::Statement;
pub(super) use read::read;
pub(super) use words::put_in_order;

use super::create::{self, Kind};
use super::{Planner, names, plan, schema};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::{schemas, views};
use read::Action;

/// What is done with sequences, by their names in the engine.
#[derive(Clone, Debug)]
pub(crate) enum SequencePlan {
    Create {
        name: String,
        /// For this client alone.
        is_temporary: bool,
        if_not_exists: bool,
        options: SequenceOptions,
    },
    Alter {
        name: String,
        if_exists: bool,
        change: SequenceChange,
    },
    Drop {
        names: Vec<String>,
        if_exists: bool,
        /// Defaults that use them go, too.
        cascade: bool,
    },
}

/// What becomes of a sequence that is there.
#[derive(Clone, Debug)]
pub(crate) enum SequenceChange {
    Options(SequenceOptions),
    /// The engine's name of it is to be this one.
    Rename(String),
}

impl SequenceChange {
    /// Where the sequence is to begin anew, if it is; `Some(None)` at its start.
    pub(crate) fn restart(&self) -> Option<Option<i64>> {
        match self {
            SequenceChange::Options(options) => options.restart,
            SequenceChange::Rename(_) => None,
        }
    }
}

impl SequencePlan {
    /// As it stands in the answer.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            SequencePlan::Create { .. } => "CREATE SEQUENCE",
            SequencePlan::Alter { .. } => "ALTER SEQUENCE",
            SequencePlan::Drop { .. } => "DROP SEQUENCE",
        }
    }
}

/// Plans what was read.
pub(super) fn plan(planner: &Planner<'_>, statement: &Statement) -> Result<DefinitionPlan> {
    let planned = match statement {
        Statement::Create { name, is_temporary, if_not_exists, options } => {
            let kind = if *is_temporary { Kind::Temporary } else { Kind::Logged };
            let (name, kind) = create::place(planner, name, kind)?;
            let options = options.planned(planner)?;
            // What is wrong with them is told even where the name is taken.
            options.of_new()?;
            let is_temporary = kind == Kind::Temporary;
            SequencePlan::Create { name, is_temporary, if_not_exists: *if_not_exists, options }
        }
        Statement::Alter { name, if_exists, action } => {
            let name = planner.lookup().table_that_may_be(name, *if_exists)?;
            let change = change(planner, &name, action)?;
            SequencePlan::Alter { name, if_exists: *if_exists, change }
        }
    };
    Ok(DefinitionPlan::Sequence(planned))
}

fn change(planner: &Planner<'_>, name: &str, action: &Action) -> Result<SequenceChange> {
    match action {
        Action::Options(options) => Ok(SequenceChange::Options(options.planned(planner)?)),
        Action::Rename(to) => {
            let to = schemas::joined(schemas::parts(name).0, &names::identifier(to));
            names::check_reserved(&to)?;
            Ok(SequenceChange::Rename(to))
        }
        Action::SetSchema(to) => {
            if schemas::has_temporary(name) {
                return Err(schema::moves_temporary());
            }
            let to = schema::target(planner, &ObjectName::from(vec![to.clone()]))?;
            Ok(SequenceChange::Rename(schemas::joined(&to, schemas::own_name(name))))
        }
    }
}

/// Plans a DROP SEQUENCE.
pub(super) fn drop(
    planner: &Planner<'_>,
    if_exists: bool,
    given: &[ObjectName],
    cascade: bool,
) -> Result<DefinitionPlan> {
    let name = |name| planner.lookup().table_that_may_be(name, if_exists);
    let names = given.iter().map(name).collect::<Result<_>>()?;
    Ok(DefinitionPlan::Sequence(SequencePlan::Drop { names, if_exists, cascade }))
}

/// The column that a name means which stands behind that of its table.
fn owner(planner: &Planner<'_>, name: &ObjectName) -> Result<Owner> {
    let mut table = name.clone();
    let column = names::column(&ObjectName(table.0.split_off(table.0.len() - 1)))?;
    if table.0.is_empty() {
        return Err(SqlError::new(state::SYNTAX_ERROR, "invalid OWNED BY option")
            .with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
    }
    let table = plan::relation_named(planner, &table)?.name().to_owned();
    Ok(Owner { table, column })
}

/// Refuses a sequence or a view of either kind in the place of a table, with what `told` makes of its name.
pub(super) fn check_is_table(
    planner: &Planner<'_>,
    name: &str,
    told: impl Fn(&str) -> String,
) -> Result<()> {
    let Ok(known) = planner.seen.table(name) else { return Ok(()) };
    if views::is_plain_table(known.definition()) {
        return Ok(());
    }
    let error = SqlError::new(state::WRONG_OBJECT_TYPE, told(schemas::own_name(name)));
    let kind = views::kind(known.definition());
    Err(error.with_detail(format!("This operation is not supported for {kind}s.")))
}
