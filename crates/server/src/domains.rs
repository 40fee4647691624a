//! Domains: definitions of tables without rows that tell of one value, and columns of those domains.
//!
//! Invariants
//! 1. A column of a domain has the rules that the domain has, and its default where it has none of its own: both
//!    change in one transaction.
//! 2. A domain is not dropped while a column, or another domain, is of it.
//! 3. Whoever gives a table a column of a domain holds the domain until the transaction ends, so that no change of
//!    that passes the column by.

use onrush::{
    ColumnDefinition, ColumnDomain, ColumnInDomain, DefaultValue, Error, Result, Table,
    TableChange, TableDefinition, Transaction,
};

use crate::own_types;

/// What a column is to be that is of a domain.
pub(crate) fn of_column(domain: &Table, gives_default: bool) -> ColumnDomain {
    ColumnDomain { number: domain.id(), name: domain.name().to_owned(), gives_default }
}

/// The default that a domain gives a column.
pub(crate) fn default_of(domain: &Table) -> &DefaultValue {
    &domain.definition().columns()[0].default
}

/// The definition as it is with the rules and defaults of the domains of its columns. Their types stay as they are
/// until the transaction ends.
///
/// # Errors
/// [`TableChanged`](Error::TableChanged) where a type is another one by now; those of waiting for it.
pub(crate) fn settled(
    transaction: &mut Transaction<'_>,
    mut definition: TableDefinition,
) -> Result<TableDefinition> {
    own_types::hold(transaction, definition.columns())?;
    let mut rules = Vec::new();
    for at in 0..definition.columns().len() {
        let column = definition.columns()[at].clone();
        let Some(domain) = held(transaction, &column)? else { continue };
        let number = u16::try_from(definition.column_number(at)).unwrap_or(u16::MAX);
        rules.extend(domain.definition().rules_for(number));
        if gives_default(&column) {
            let default = default_of(&domain).clone();
            definition = definition.with_default(&column.name, default)?;
        }
    }
    match rules == definition.rules() {
        true => Ok(definition),
        false => Ok(definition.with_rules(rules)?),
    }
}

/// The same changes of a table, with what the domains of new columns and of those that are of another domain now have
/// of rules and defaults.
///
/// # Errors
/// As of [`settled`].
pub(crate) fn settled_changes(
    transaction: &mut Transaction<'_>,
    table: &TableDefinition,
    changes: Vec<TableChange>,
) -> Result<Vec<TableChange>> {
    let mut definition = table.clone();
    let mut settled = Vec::with_capacity(changes.len());
    for change in changes {
        let own = match change {
            TableChange::AddColumn(mut column) => {
                own_types::hold(transaction, [&column])?;
                let domain = held(transaction, &column)?;
                if let (Some(domain), true) = (&domain, gives_default(&column)) {
                    column.default = default_of(domain).clone();
                }
                let own = column.domain.clone();
                let name = column.name.clone();
                let added = TableChange::AddColumn(column);
                definition = definition.altered(&added, 0)?;
                settled.push(added);
                let (Some(domain), Some(own)) = (domain, own) else { continue };
                let at = definition.column_index(&name)?;
                TableChange::SetDomainOfColumns(vec![in_domain(&definition, at, &domain, own)])
            }
            TableChange::SetColumn { name, nullable, mut default } => {
                let column = &definition.columns()[definition.column_index(&name)?];
                if column.domain.as_ref().is_some_and(|domain| domain.gives_default)
                    && let Some(domain) = held(transaction, column)?
                {
                    default = default_of(&domain).clone();
                }
                TableChange::SetColumn { name, nullable, default }
            }
            other => other,
        };
        definition = definition.altered(&own, 0)?;
        settled.push(own);
    }
    Ok(settled)
}

/// The change by which the domain of a column gives it its default, or does not any more.
pub(crate) fn with_same_rules(
    table: &TableDefinition,
    at: usize,
    domain: Option<ColumnDomain>,
) -> TableChange {
    let number = table.column_number(at);
    let own = table.rules().iter().filter(|rule| usize::from(rule.column) == number);
    let (name, rules) = (table.columns()[at].name.clone(), own.cloned().collect());
    TableChange::SetDomainOfColumns(vec![ColumnInDomain { name, domain, rules, default: None }])
}

/// A column with the rules of its domain.
fn in_domain(
    table: &TableDefinition,
    at: usize,
    domain: &Table,
    own: ColumnDomain,
) -> ColumnInDomain {
    let number = u16::try_from(table.column_number(at)).unwrap_or(u16::MAX);
    let (name, rules) = (table.columns()[at].name.clone(), domain.definition().rules_for(number));
    ColumnInDomain { name, domain: Some(own), rules, default: None }
}

fn gives_default(column: &ColumnDefinition) -> bool {
    column.domain.as_ref().is_some_and(|domain| domain.gives_default)
}

/// The domain of a column as it is now; it stays so until the transaction ends.
fn held(transaction: &mut Transaction<'_>, column: &ColumnDefinition) -> Result<Option<Table>> {
    let Some(of) = &column.domain else { return Ok(None) };
    let changed = || Error::TableChanged { name: of.name.clone() };
    let Ok(domain) = transaction.table(&of.name) else { return Err(changed()) };
    transaction.hold_table(&domain)?;
    let is_it = domain.id() == of.number
        && domain.definition().domain().is_some()
        && domain.definition().columns()[0].data_type == column.data_type;
    if is_it { Ok(Some(domain)) } else { Err(changed()) }
}

/// The tables and domains with columns of a domain, and the positions of those.
pub(crate) fn users(transaction: &Transaction<'_>, domain: u32) -> Vec<(Table, Vec<usize>)> {
    let mut found = Vec::new();
    for definition in transaction.tables() {
        let columns = columns_of(&definition, domain);
        if !columns.is_empty()
            && let Ok(table) = transaction.table(definition.name())
        {
            found.push((table, columns));
        }
    }
    found
}

/// The positions of the columns of a domain.
fn columns_of(definition: &TableDefinition, domain: u32) -> Vec<usize> {
    let columns = definition.columns().iter().enumerate();
    let is_of = |of: &ColumnDomain| of.number == domain;
    columns
        .filter(|(_, column)| column.domain.as_ref().is_some_and(is_of))
        .map(|(at, _)| at)
        .collect()
}

/// Gives the columns of a domain the rules, the default and the name of the domain that it has now. Rows that are
/// there are looked at by rules that are new.
///
/// # Errors
/// [`RowsViolateDomain`](Error::RowsViolateDomain); those of waiting for who uses a table.
pub(crate) fn follow(transaction: &mut Transaction<'_>, domain: &Table) -> Result<()> {
    let mut followed = Vec::new();
    for (found, _) in users(transaction, domain.id()) {
        // Whoever defined it meanwhile may have made another column of it, so it is looked at again under its lock.
        let table = transaction.lock_table(found.name())?;
        let definition = table.definition();
        followed.push(table.id());
        let columns: Vec<ColumnInDomain> = columns_of(definition, domain.id())
            .into_iter()
            .map(|at| {
                let column = &definition.columns()[at];
                let gives_default = gives_default(column);
                let own = of_column(domain, gives_default);
                let is_other = gives_default && column.default != *default_of(domain);
                let default = is_other.then(|| default_of(domain).clone());
                ColumnInDomain { default, ..in_domain(definition, at, domain, own) }
            })
            .collect();
        if columns.is_empty() {
            continue;
        }
        let change = TableChange::SetDomainOfColumns(columns);
        let altered = transaction.alter_table(table.name(), &[change])?;
        if altered.definition().domain().is_some() {
            follow(transaction, &altered)?;
        }
    }
    // One that has got another name, or was written anew, while another was waited for.
    let is_new = |table: &Table| !followed.contains(&table.id());
    match users(transaction, domain.id()).into_iter().find(|(table, _)| is_new(table)) {
        Some((table, _)) => Err(Error::TableChanged { name: table.name().to_owned() }),
        None => Ok(()),
    }
}
