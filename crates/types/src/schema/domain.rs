//! Domains, types that are others with conditions on their values, as definitions keep them.
//!
//! A domain is a table without rows, whose first column, [`DOMAIN_VALUE`], is of the type that the domain is over.
//! Whether that column may be NULL, its default and the checks of the table are those of the domain.
//!
//! A column of a domain has the domain's type, and the default too where it has none of its own. Its table has a
//! [rule](DomainRule) for each condition of the domain, so that whoever writes a row looks at no other definition.
//!
//! Invariants
//! 1. A rule is of a column that is of a domain, and looks at no other column.
//! 2. Whoever changes a domain gives its columns the rules that it has then, in the same transaction.

use std::sync::Arc;

use super::definition::check_name;
use super::row_expression::renumbered;
use super::{CHECK_BYTES_MAX, CheckConstraint, DefaultValue, TableBuilder, TableDefinition};
use crate::TypeError;
use crate::expression::Kind;

/// The column of a domain that tells its type, and what its checks call the value.
pub const DOMAIN_VALUE: &str = "value";

/// What makes a table a domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DomainDefinition {
    /// The names of checks that values which were there before them need not meet.
    pub unvalidated: Vec<String>,
}

/// The domain that a column is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDomain {
    /// The number of the table that the domain is.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Whether the column's default is the domain's, and becomes another with that.
    pub gives_default: bool,
}

/// A condition that a domain has for the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainRule {
    /// The number of the column.
    pub column: u16,
    /// The check, of this column; none: the value is not NULL.
    pub check: Option<CheckConstraint>,
    /// Whether the rows that were there before it meet it.
    pub is_validated: bool,
}

impl DomainRule {
    /// Whether the other one is the same condition, whatever its name.
    pub fn has_condition_of(&self, other: &DomainRule) -> bool {
        let is_same = match (&self.check, &other.check) {
            (None, None) => true,
            (Some(own), Some(other)) => {
                own.expression == other.expression && own.form == other.form
            }
            _ => false,
        };
        is_same && self.column == other.column
    }
}

impl TableBuilder {
    /// Makes the table a domain, with the key of a table [without one](Self::keyed_by_row_id). Its column is
    /// [`DOMAIN_VALUE`].
    #[must_use]
    pub fn domain(mut self, domain: DomainDefinition) -> TableBuilder {
        self.domain = Some(domain);
        self.keyed_by_row_id()
    }
}

impl TableDefinition {
    /// What makes the table a domain; none for one that is not.
    pub fn domain(&self) -> Option<&DomainDefinition> {
        self.domain.as_ref()
    }

    /// Whether the table is a type: of labels, composite, or a domain.
    pub fn is_type(&self) -> bool {
        self.labels.is_some() || self.is_composite || self.domain.is_some()
    }

    /// The conditions that the domains of its columns have.
    pub fn rules(&self) -> &[DomainRule] {
        &self.rules
    }

    /// The same definition with these rules in place of those that it has.
    ///
    /// # Errors
    /// A rule of a column that is of no domain, or that looks at another one.
    pub fn with_rules(mut self, rules: Vec<DomainRule>) -> Result<TableDefinition, TypeError> {
        self.rules = rules;
        self.checked()
    }

    /// The same definition with another default of a column.
    ///
    /// # Errors
    /// No such column; a default that is none for it.
    pub fn with_default(
        mut self,
        column: &str,
        default: DefaultValue,
    ) -> Result<TableDefinition, TypeError> {
        let index = self.column_index(column)?;
        self.columns[index].default = default;
        self.checked()
    }

    /// Of a domain: the rules of a column that is of it, by the column's number. That the value is not NULL comes
    /// first, then come the checks of the domain that it is over, and then its own by name.
    #[must_use]
    pub fn rules_for(&self, column: u16) -> Vec<DomainRule> {
        let refuses_null = self.rules.iter().any(|rule| rule.check.is_none());
        let not_null = DomainRule { column, check: None, is_validated: true };
        let not_null = (refuses_null || !self.columns[0].nullable).then_some(not_null);
        let is_validated = |name: &String| {
            !self.domain.as_ref().is_some_and(|domain| domain.unvalidated.contains(name))
        };
        let mut own: Vec<&CheckConstraint> = self.checks.iter().collect();
        own.sort_by(|one, other| one.name.cmp(&other.name));
        let own = own.into_iter().map(|check| (check, is_validated(&check.name)));
        let inherited = self.rules.iter();
        let inherited =
            inherited.filter_map(|rule| Some((rule.check.as_ref()?, rule.is_validated)));
        let rule = |(check, is_validated): (&CheckConstraint, bool)| {
            let check = Some(check.of_only(column)?);
            Some(DomainRule { column, check, is_validated })
        };
        not_null.into_iter().chain(inherited.chain(own).filter_map(rule)).collect()
    }

    pub(super) fn check_domains(&self) -> Result<(), TypeError> {
        let damaged = |reason| Err(TypeError::DefinitionDamaged { at: 0, reason });
        if let Some(domain) = &self.domain {
            let is_check = |name: &String| self.checks.iter().any(|check| check.name == *name);
            if self.columns[0].name != DOMAIN_VALUE || !domain.unvalidated.iter().all(is_check) {
                return damaged("a domain is none of a value, or of checks that it does not have");
            }
        }
        for column in &self.columns {
            column.domain.as_ref().map_or(Ok(()), |domain| check_name(&domain.name))?;
        }
        for rule in &self.rules {
            let column = self.column_with_number(rule.column).map(|at| &self.columns[at]);
            let Some(column) = column.filter(|column| column.domain.is_some()) else {
                return damaged("a rule is of a column that is of no domain");
            };
            let Some(check) = &rule.check else { continue };
            check_name(&check.name)?;
            let of_it = |(number, kind): (u16, Kind)| {
                number == rule.column && kind == Kind::of(column.data_type)
            };
            let suits = check.form.as_ref().is_none_or(|form| {
                form.columns().into_iter().all(of_it) && form.fault_of_condition().is_none()
            });
            let is_alone = check.columns == [rule.column];
            if !suits || !is_alone {
                return damaged("a rule looks at what is not its column");
            }
            // The number of a column may be longer to write than the one that the domain's value has.
            let (bytes, limit) = (check.expression.len(), CHECK_BYTES_MAX);
            if bytes > limit {
                let (table, name) = (self.name.as_str().into(), check.name.as_str().into());
                return Err(TypeError::CheckTooLong { table, name, bytes, limit });
            }
        }
        Ok(())
    }
}

impl CheckConstraint {
    /// The same condition on another column, which is the only one that it may look at.
    fn of_only(&self, column: u16) -> Option<CheckConstraint> {
        let form = match &self.form {
            Some(form) => Some(Arc::new(form.renumbered(|_| Some(column))?)),
            None => None,
        };
        Some(CheckConstraint {
            name: self.name.clone(),
            columns: vec![column],
            expression: renumbered(&self.expression, |_| Some(column))?,
            form,
            is_validated: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Expression;
    use crate::schema::CHECKS_MAX;
    use crate::{ColumnDefinition, ColumnInDomain, DataType, TableChange};

    fn positive(name: &str, unvalidated: &[&str]) -> TableDefinition {
        let unvalidated = unvalidated.iter().map(ToString::to_string).collect();
        TableDefinition::builder(name)
            .column(ColumnDefinition::new(DOMAIN_VALUE, DataType::Int32).not_null())
            .domain(DomainDefinition { unvalidated })
            .check("is_positive", Expression::column(DOMAIN_VALUE).greater_than(0))
            .build()
            .unwrap()
    }

    fn user() -> TableDefinition {
        let count = ColumnDefinition::new("count", DataType::Int32);
        let domain = ColumnDomain { number: 7, name: "positive".into(), gives_default: false };
        TableDefinition::builder("t")
            .column(ColumnDefinition::new("id", DataType::Int32))
            .column(count.of_domain(domain))
            .primary_key(["id"])
            .build()
            .unwrap()
    }

    #[test]
    fn a_column_gets_the_rules_of_its_domain() {
        let rules = positive("positive", &["is_positive"]).rules_for(1);
        assert_eq!(rules.len(), 2);
        assert!(rules[0].check.is_none() && rules[0].is_validated);
        let check = rules[1].check.as_ref().unwrap();
        assert_eq!((check.expression.as_str(), check.columns.as_slice()), ("$2 > 0", &[1][..]));
        assert!(!rules[1].is_validated);
        assert!(user().with_rules(rules).is_ok());
    }

    #[test]
    fn domains_and_their_columns_come_back_from_their_bytes() {
        let domain = positive("positive", &["is_positive"]);
        assert_eq!(TableDefinition::from_bytes(&domain.to_bytes()), Ok(domain.clone()));
        assert!(domain.is_type() && !domain.is_table());
        let user = user().with_rules(domain.rules_for(1)).unwrap();
        let again = TableDefinition::from_bytes(&user.to_bytes()).unwrap();
        assert_eq!(again, user);
    }

    #[test]
    fn a_rule_of_a_column_that_is_of_no_domain_is_refused() {
        let rules = positive("positive", &[]).rules_for(0);
        assert!(user().with_rules(rules).is_err());
    }

    #[test]
    fn a_table_with_more_rules_than_its_bytes_can_count_is_refused() {
        let rule = positive("positive", &[]).rules_for(1).remove(1);
        assert!(user().with_rules(vec![rule.clone(); CHECKS_MAX]).is_ok());
        let refused = user().with_rules(vec![rule; CHECKS_MAX + 1]);
        assert!(matches!(refused, Err(TypeError::TooManyChecks { .. })), "{refused:?}");
    }

    #[test]
    fn all_columns_of_a_domain_change_in_one_version() {
        let column = |name: &str, number| ColumnInDomain {
            name: name.into(),
            domain: Some(ColumnDomain { number: 7, name: "positive".into(), gives_default: true }),
            rules: positive("positive", &[]).rules_for(number),
            default: Some(DefaultValue::Constant(3.into())),
        };
        let change = TableChange::SetDomainOfColumns(vec![column("id", 0), column("count", 1)]);
        let altered = user().altered(&change, 0).unwrap();
        assert_eq!((altered.version(), altered.rules().len()), (user().version() + 1, 4));
        assert_eq!(altered.columns()[1].default, DefaultValue::Constant(3.into()));
        assert_eq!(TableDefinition::from_bytes(&altered.to_bytes()), Ok(altered));
    }

    #[test]
    fn rules_go_with_their_column() {
        let user = user().with_rules(positive("positive", &[]).rules_for(1)).unwrap();
        let dropped = user.altered(&TableChange::DropColumn { name: "count".into() }, 0).unwrap();
        assert!(dropped.rules().is_empty());
        assert_eq!(TableDefinition::from_bytes(&dropped.to_bytes()), Ok(dropped));
    }
}
