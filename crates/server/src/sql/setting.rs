//! SET, RESET and SHOW.

use onrush::DataType;
use onrush_query::parse_interval;
use sqlparser::ast::{
    ContextModifier, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Reset,
    ResetStatement, Set, Statement, TransactionAccessMode, TransactionMode, Value as Literal,
};

use super::names;
use super::operand::{Operand, Parameters};
use super::select::Scalar;
use crate::error::{Result, SqlError, state};
use crate::execute::DATABASE;
use crate::execute::plan::{DefinitionPlan, SessionPlan};

/// A setting of the session and its new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingChange {
    /// None: all of them, for RESET ALL.
    pub(crate) name: Option<String>,
    /// None: its default.
    pub(crate) value: Option<String>,
    /// Until the end of the transaction only.
    pub(crate) is_local: bool,
    /// Whether it was written as RESET.
    pub(crate) is_reset: bool,
}

/// Plans a SET.
pub(super) fn set(statement: &Set) -> Result<SessionPlan> {
    let change = match statement {
        Set::SingleAssignment { scope, hivevar: false, variable, values } => SettingChange {
            name: Some(names::parts(variable)?.join(".")),
            value: match names::parts(variable)?.as_slice() {
                [name] if name == "search_path" => path_of(values)?,
                _ => value_of(values)?,
            },
            is_local: *scope == Some(ContextModifier::Local),
            is_reset: false,
        },
        Set::SetTimeZone { local, value } => SettingChange {
            name: Some("timezone".to_owned()),
            value: zone_of(value)?,
            is_local: *local,
            is_reset: false,
        },
        Set::SetNames { charset_name, .. } => SettingChange {
            name: Some("client_encoding".to_owned()),
            value: Some(charset_name.value.clone()),
            is_local: false,
            is_reset: false,
        },
        Set::SetTransaction { modes: given, snapshot: None, session: false } => {
            return Ok(SessionPlan::SetTransaction(modes(given)?));
        }
        Set::SetTransaction { modes: given, snapshot: None, session: true } => {
            return Ok(SessionPlan::SetTransactions(modes(given)?));
        }
        other => {
            return Err(SqlError::not_supported(other, "Write SET name = value."));
        }
    };
    Ok(SessionPlan::Set(change))
}

/// Plans a RESET.
pub(super) fn reset(statement: &ResetStatement) -> Result<SessionPlan> {
    let name = match &statement.reset {
        Reset::ALL => None,
        Reset::ConfigurationParameter(name) => Some(names::parts(name)?.join(".")),
    };
    Ok(SessionPlan::Set(SettingChange { name, value: None, is_local: false, is_reset: true }))
}

/// `current_setting(name [, missing_ok])` and `set_config(name, value, is_local)`; none for all
/// other functions.
pub(super) fn function(call: &Function, parameters: &mut Parameters) -> Result<Option<Scalar>> {
    let mut name = names::parts(&call.name)?;
    if name.len() == 2 && name[0] == "pg_catalog" {
        name.remove(0);
    }
    let FunctionArguments::List(list) = &call.args else { return Ok(None) };
    let mut given = Vec::with_capacity(list.args.len());
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => given.push(expression),
            _ => return Ok(None),
        }
    }
    let mut value = |at: usize, kind| Operand::if_simple(given[at], kind, parameters);
    let scalar = match (name.join(".").as_str(), given.len()) {
        ("current_setting", 1) => value(0, DataType::Text)?.map(|name| Scalar::Setting(name, None)),
        ("current_setting", 2) => {
            let (name, may_lack) = (value(0, DataType::Text)?, value(1, DataType::Boolean)?);
            name.zip(may_lack).map(|(name, may_lack)| Scalar::Setting(name, Some(may_lack)))
        }
        ("set_config", 3) => {
            let name = value(0, DataType::Text)?;
            let (text, is_local) = (value(1, DataType::Text)?, value(2, DataType::Boolean)?);
            let given = name.zip(text).zip(is_local);
            given.map(|((name, text), is_local)| {
                Scalar::SetSetting(Box::new([name, text, is_local]))
            })
        }
        _ => None,
    };
    Ok(scalar)
}

/// Plans ALTER DATABASE ... SET and RESET, of which these words are left.
pub(super) fn of_database(database: &str, statement: &Statement) -> Result<DefinitionPlan> {
    if database != DATABASE {
        let message = format!("database {database:?} does not exist");
        return Err(SqlError::new(state::UNDEFINED_DATABASE, message)
            .with_hint(format!("There is one, {DATABASE}.")));
    }
    let planned = match statement {
        Statement::Set(given) => set(given)?,
        Statement::Reset(given) => reset(given)?,
        _ => SessionPlan::Nothing(""),
    };
    match planned {
        SessionPlan::Set(change) if !change.is_local => Ok(DefinitionPlan::AlterDatabase(change)),
        _ => Err(SqlError::new(
            state::SYNTAX_ERROR,
            "ALTER DATABASE takes SET name = value, RESET name and RESET ALL",
        )),
    }
}

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// As `ReadCommitted`, under the name that was given.
    ReadUncommitted,
    /// Each statement sees what was committed before it.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the first.
    RepeatableRead,
    /// As `RepeatableRead`, and those that commit could have run one after the other.
    Serializable,
}

impl Isolation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "read uncommitted",
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        }
    }

    /// Whether each statement sees what was committed before it.
    pub(crate) fn renews_snapshots(self) -> bool {
        matches!(self, Isolation::ReadUncommitted | Isolation::ReadCommitted)
    }

    /// The level of this name, in lower case.
    pub(crate) fn of(name: &str) -> Result<Isolation> {
        let all = [
            Isolation::Serializable,
            Isolation::RepeatableRead,
            Isolation::ReadCommitted,
            Isolation::ReadUncommitted,
        ];
        all.into_iter().find(|level| level.name() == name).ok_or_else(|| {
            let message =
                format!("invalid value for parameter \"transaction_isolation\": \"{name}\"");
            SqlError::new(state::INVALID_PARAMETER_VALUE, message).with_hint(
                "Available values: serializable, repeatable read, read committed, read uncommitted.",
            )
        })
    }
}

/// What is said of a transaction when it begins, or later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransactionModes {
    pub(crate) is_read_only: Option<bool>,
    pub(crate) isolation: Option<Isolation>,
}

pub(super) fn modes(given: &[TransactionMode]) -> Result<TransactionModes> {
    let mut modes = TransactionModes::default();
    for mode in given {
        match mode {
            TransactionMode::IsolationLevel(level) => {
                modes.isolation = Some(Isolation::of(&level.to_string().to_lowercase())?);
            }
            TransactionMode::AccessMode(mode) => {
                modes.is_read_only = Some(*mode == TransactionAccessMode::ReadOnly);
            }
        }
    }
    Ok(modes)
}

/// A list of names, each in quotes where it must be.
fn path_of(values: &[Expr]) -> Result<Option<String>> {
    let mut quoted = Vec::with_capacity(values.len());
    for value in values {
        let name = match value {
            Expr::Value(value) => match &value.value {
                Literal::SingleQuotedString(text) => text.clone(),
                other => other.to_string(),
            },
            Expr::Identifier(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") =>
            {
                return Ok(None);
            }
            Expr::Identifier(word) => names::identifier(word),
            other => return Err(SqlError::not_supported(other, "Write names of schemas.")),
        };
        quoted.push(match names::is_plain(&name) {
            true => name,
            false => format!("\"{}\"", name.replace('"', "\"\"")),
        });
    }
    Ok(Some(quoted.join(", ")))
}

/// A name, hours to the east of UTC, or an interval of as much.
fn zone_of(value: &Expr) -> Result<Option<String>> {
    let interval = match value {
        Expr::Identifier(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("local") =>
        {
            return Ok(None);
        }
        Expr::Interval(interval) => match &*interval.value {
            Expr::Value(value) => value.value.clone().into_string(),
            _ => None,
        },
        other => return value_of(std::slice::from_ref(other)),
    };
    let Some(written) = interval else {
        return Err(SqlError::not_supported(value, "Write the interval as a constant."));
    };
    let interval = parse_interval(&written)?;
    if interval.months != 0 || interval.days != 0 {
        let message = format!("time zone interval {value} must not have months or days");
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message));
    }
    Ok(Some((interval.micros as f64 / 3.6e9).to_string()))
}

fn value_of(values: &[Expr]) -> Result<Option<String>> {
    let mut words = Vec::with_capacity(values.len());
    for value in values {
        words.push(match value {
            Expr::Value(value) => match &value.value {
                Literal::SingleQuotedString(text) => text.clone(),
                other => other.to_string(),
            },
            Expr::Identifier(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") =>
            {
                return Ok(None);
            }
            Expr::Identifier(word) => word.value.clone(),
            Expr::UnaryOp { .. } => value.to_string(),
            other => return Err(SqlError::not_supported(other, "Write a word or a number.")),
        });
    }
    Ok(Some(words.join(", ")))
}
