//! CREATE and ALTER DOMAIN, and casts to domains. sqlparser reads the first in one form only, and the second not at
//! all, so both are read here ([`mod@read`]).

mod read;

use std::sync::Arc;

use onrush::{
    ColumnDefinition, ColumnDomain, DataType, DefaultValue, DomainDefinition, KeyStrategy, Table,
    TableBuilder, TableDefinition,
};
use onrush_query::TO_DOMAIN;
use onrush_types::DOMAIN_VALUE;
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnDef, ColumnOption, Expr, ObjectName,
    RenameTableNameKind, TableConstraint, Value,
};

pub(crate) use read::Statement;
pub(super) use read::read;

use super::check::{self, NewCheck};
use super::create::{self, built};
use super::{Planner, calls, default, enum_type, names, own_types, schema};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::schemas;
use read::Action;

/// What becomes of domains.
#[derive(Clone, Debug)]
pub(crate) enum DomainPlan {
    Create(Arc<TableDefinition>),
    Alter {
        name: String,
        change: DomainChange,
        /// As it stands in the answer.
        tag: &'static str,
    },
}

/// What becomes of a domain that is there.
#[derive(Clone, Debug)]
pub(crate) enum DomainChange {
    Default(DefaultValue),
    NotNull(bool),
    AddCheck {
        check: NewCheck,
        /// Values that are there need not meet it.
        is_not_valid: bool,
    },
    DropCheck {
        name: String,
        if_exists: bool,
    },
    RenameCheck {
        from: String,
        to: String,
    },
    Validate(String),
    /// It is called so by the engine from now on.
    Rename(String),
}

impl DomainPlan {
    /// As it stands in the answer.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            DomainPlan::Create(_) => "CREATE DOMAIN",
            DomainPlan::Alter { tag, .. } => tag,
        }
    }
}

/// Plans what was read.
pub(super) fn plan(planner: &Planner<'_>, statement: &Statement) -> Result<DefinitionPlan> {
    let planned = match statement {
        Statement::Create { name, value } => create(planner, name, value)?,
        Statement::Alter { name, action } => {
            let domain = named(planner, name)?;
            let name = domain.name().to_owned();
            let (change, tag) = (change(planner, &domain, action)?, "ALTER DOMAIN");
            DomainPlan::Alter { name, change, tag }
        }
    };
    Ok(DefinitionPlan::Domain(planned))
}

/// The domain of a name.
///
/// # Errors
/// There is no such type, or it is another one.
pub(super) fn named(planner: &Planner<'_>, name: &ObjectName) -> Result<Table> {
    let parts = names::parts(name)?;
    match planner.lookup().own_type_named(&parts) {
        Some(found) if found.definition().domain().is_some() => Ok(found),
        Some(_) => {
            let message = format!("{} is not a domain", parts.join("."));
            Err(SqlError::new(state::WRONG_OBJECT_TYPE, message))
        }
        None => Err(enum_type::missing(&parts.join("."))),
    }
}

pub(super) fn is_no_domain(name: &str) -> SqlError {
    SqlError::new(state::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a domain"))
}

fn create(planner: &Planner<'_>, name: &ObjectName, value: &ColumnDef) -> Result<DomainPlan> {
    let name = planner.lookup().new_table_named(name)?;
    names::check_reserved(&name)?;
    let own = schemas::own_name(&name);
    if schemas::has_temporary(&name) {
        let instead = "Make it in another schema; temporary tables can use it.";
        return Err(SqlError::not_supported("a temporary domain", instead));
    }
    let (data_type, over) =
        create::column_type(planner, &format!("domain {own}"), &value.data_type)?;
    let mut column = ColumnDefinition::new(DOMAIN_VALUE, data_type);
    let over_table = over.as_ref().and_then(|over| planner.seen.numbered(over.number));
    if let (Some(over), Some(table)) = (over, over_table) {
        // As it is now, whatever becomes of that default.
        column.default = table.definition().columns()[0].default.clone();
        column.domain = Some(ColumnDomain { gives_default: false, ..over });
    }
    let (mut checks, mut is_nullable, mut has_default) = (Vec::new(), None, false);
    for option in &value.options {
        match &option.option {
            ColumnOption::Null | ColumnOption::NotNull => {
                let says_null = option.option == ColumnOption::Null;
                if is_nullable.replace(says_null).is_some_and(|before| before != says_null) {
                    return Err(refused("conflicting NULL/NOT NULL constraints"));
                }
                column.nullable = says_null;
            }
            ColumnOption::Collation(collation) => create::check_collation(collation)?,
            ColumnOption::Check(check) => {
                checks.push(NewCheck::new(check, option.name.as_ref())?);
            }
            ColumnOption::Default(_) if std::mem::replace(&mut has_default, true) => {
                return Err(refused("multiple default expressions"));
            }
            ColumnOption::Default(value) => column.default = default_of(planner, value, data_type)?,
            ColumnOption::Unique(_) => {
                return Err(refused("unique constraints not possible for domains"));
            }
            ColumnOption::PrimaryKey(_) => {
                return Err(refused("primary key constraints not possible for domains"));
            }
            ColumnOption::ForeignKey(_) => {
                return Err(refused("foreign key constraints not possible for domains"));
            }
            other => {
                return Err(SqlError::not_supported(format!("{other} of domain {own}"), FORMS));
            }
        }
    }
    let builder = TableDefinition::builder(&name).column(column);
    let builder = builder.domain(DomainDefinition::default());
    let bare = built(builder.clone())?;
    let mut kept = Vec::with_capacity(checks.len());
    for check in checks {
        kept.push(check.kept(planner.queries, &bare, &kept)?);
    }
    let definition = built(kept.into_iter().fold(builder, TableBuilder::check_constraint))?;
    Ok(DomainPlan::Create(Arc::new(definition)))
}

fn refused(message: &str) -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, message)
}

/// The default of a domain, which columns get that have none.
fn default_of(planner: &Planner<'_>, value: &Expr, data_type: DataType) -> Result<DefaultValue> {
    let mut value = value.clone();
    own_types::note_names(planner, &mut value)?;
    Ok(match default::default_of(planner, &value, data_type, false)? {
        // A column that may not be NULL has no such default.
        DefaultValue::Constant(value) if value.is_null() => DefaultValue::None,
        DefaultValue::Key(strategy)
            if !matches!(strategy, KeyStrategy::UuidV4 | KeyStrategy::UuidV7) =>
        {
            return Err(SqlError::not_supported(
                format!("the generator {strategy} as the default of a domain"),
                "Give it to the column.",
            ));
        }
        other => other,
    })
}

const FORMS: &str = "There are CREATE DOMAIN with DEFAULT, NOT NULL and CHECK, and ALTER DOMAIN with SET and DROP \
                     DEFAULT and NOT NULL, ADD, DROP, RENAME and VALIDATE CONSTRAINT, RENAME TO, OWNER TO and SET \
                     SCHEMA.";

fn change(planner: &Planner<'_>, domain: &Table, action: &Action) -> Result<DomainChange> {
    let name = domain.name();
    let operation = match action {
        Action::SetSchema(to) => {
            let to = schema::target(planner, &ObjectName::from(vec![to.clone()]))?;
            return Ok(DomainChange::Rename(schemas::joined(&to, schemas::own_name(name))));
        }
        Action::OfTable(operation) => &**operation,
    };
    Ok(match operation {
        AlterTableOperation::AlterColumn { column_name: _is_the_value, op } => match op {
            AlterColumnOperation::SetNotNull => DomainChange::NotNull(true),
            AlterColumnOperation::DropNotNull => DomainChange::NotNull(false),
            AlterColumnOperation::DropDefault => DomainChange::Default(DefaultValue::None),
            AlterColumnOperation::SetDefault { value } => {
                let data_type = domain.definition().columns()[0].data_type;
                DomainChange::Default(default_of(planner, value, data_type)?)
            }
            other => {
                return Err(SqlError::not_supported(format!("ALTER DOMAIN ... {other}"), FORMS));
            }
        },
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::Check(check),
            not_valid: is_not_valid,
        } => DomainChange::AddCheck {
            check: NewCheck::new(check, None)?,
            is_not_valid: *is_not_valid,
        },
        AlterTableOperation::AddConstraint { constraint, .. } => {
            return Err(match constraint {
                TableConstraint::Unique(_) => {
                    refused("unique constraints not possible for domains")
                }
                TableConstraint::PrimaryKey(_) => {
                    refused("primary key constraints not possible for domains")
                }
                TableConstraint::ForeignKey(_) => {
                    refused("foreign key constraints not possible for domains")
                }
                other => SqlError::not_supported(format!("ALTER DOMAIN ... ADD {other}"), FORMS),
            });
        }
        // Nothing depends on a check of a domain.
        AlterTableOperation::DropConstraint { if_exists, name, drop_behavior: _ } => {
            DomainChange::DropCheck { name: names::identifier(name), if_exists: *if_exists }
        }
        AlterTableOperation::RenameConstraint { old_name, new_name } => DomainChange::RenameCheck {
            from: names::identifier(old_name),
            to: names::identifier(new_name),
        },
        AlterTableOperation::ValidateConstraint { name } => {
            DomainChange::Validate(names::identifier(name))
        }
        AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(to) } => {
            let [to] = names::parts(to)?.try_into().map_err(|_| refused("syntax error"))?;
            let to: String = to;
            let to = schemas::joined(schemas::parts(name).0, &to);
            names::check_reserved(&to)?;
            DomainChange::Rename(to)
        }
        other => return Err(SqlError::not_supported(format!("ALTER DOMAIN ... {other}"), FORMS)),
    })
}

/// A cast of a value to a domain: one to the type that it is over, of which its conditions are asked.
///
/// # Errors
/// A condition that is not understood.
pub(super) fn cast(planner: &Planner<'_>, domain: &Table, value: Expr) -> Result<Expr> {
    let definition = domain.definition();
    let mut conditions = Vec::new();
    for rule in definition.rules_for(0) {
        conditions.push(match &rule.check {
            Some(kept) => Some((kept.name.clone(), check::written(definition, kept)?)),
            None => None,
        });
    }
    let number = planner.queries.domain(definition, conditions)?;
    let cast = calls::cast(value, definition.columns()[0].data_type)?;
    let number = Expr::value(Value::Number(number.to_string(), false));
    Ok(calls::call(TO_DOMAIN, vec![number, cast]))
}
