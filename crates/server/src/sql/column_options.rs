//! What the options of a column may say beside each other.

use sqlparser::ast::{ColumnOption, ColumnOptionDef};

use crate::error::{Result, SqlError, state};
use crate::schemas;

/// Nothing, or what is wrong.
type Consistent = std::result::Result<(), &'static str>;

/// What a column has said so far.
#[derive(Default)]
struct Said {
    is_nullable: Option<bool>,
    has_default: bool,
    is_identity: bool,
    is_generated: bool,
}

/// Refuses options of which one contradicts another, or is there twice. A serial column has a default and is NOT NULL
/// behind all that is written.
pub(super) fn check(
    table: &str,
    column: &str,
    options: &[ColumnOptionDef],
    is_serial: bool,
) -> Result<()> {
    let mut said = Said::default();
    let read = options.iter().try_for_each(|option| said.read(&option.option));
    let of_serial = |said: &mut Said| match is_serial {
        true => said.with_default().and_then(|()| said.with_null(false)),
        false => Ok(()),
    };
    read.and_then(|()| of_serial(&mut said)).map_err(|fault| {
        let own = schemas::own_name(table);
        let message = format!("{fault} for column {column:?} of table {own:?}");
        SqlError::new(state::SYNTAX_ERROR, message)
    })
}

impl Said {
    fn read(&mut self, option: &ColumnOption) -> Consistent {
        match option {
            ColumnOption::Null => self.with_null(true),
            ColumnOption::NotNull => self.with_null(false),
            ColumnOption::Default(_) => self.with_default(),
            ColumnOption::Generated { generation_expr: Some(_), .. } => self.with_generation(),
            ColumnOption::Generated { generation_expr: None, .. } => self.with_identity(),
            _ => Ok(()),
        }
    }

    fn with_null(&mut self, is_nullable: bool) -> Consistent {
        match self.is_nullable.replace(is_nullable) {
            Some(before) if before != is_nullable => Err("conflicting NULL/NOT NULL declarations"),
            _ => Ok(()),
        }
    }

    fn with_default(&mut self) -> Consistent {
        match std::mem::replace(&mut self.has_default, true) {
            true => Err("multiple default values specified"),
            false => self.check_sources(),
        }
    }

    fn with_identity(&mut self) -> Consistent {
        if std::mem::replace(&mut self.is_identity, true) {
            return Err("multiple identity specifications");
        }
        self.with_null(false)?;
        self.check_sources()
    }

    fn with_generation(&mut self) -> Consistent {
        match std::mem::replace(&mut self.is_generated, true) {
            true => Err("multiple generation clauses specified"),
            false => self.check_sources(),
        }
    }

    /// A value comes from one of them.
    fn check_sources(&self) -> Consistent {
        match (self.has_default, self.is_identity, self.is_generated) {
            (true, true, _) => Err("both default and identity specified"),
            (true, _, true) => Err("both default and generation expression specified"),
            (_, true, true) => Err("both identity and generation expression specified"),
            _ => Ok(()),
        }
    }
}
