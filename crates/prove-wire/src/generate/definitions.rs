//! Definitions that a client draws: tables that come, go, change and change their names, and what is said of them.

use super::{Sight, Source};
use crate::kinds::Kind;
use crate::state::{KEY_TYPES, VALUE_TYPES};
use crate::statement::{OnConflict, Statement, Way, schema_of};

const RIGHTS: [&str; 3] = ["SELECT", "INSERT", "DELETE"];
const COLUMNS: [&str; 3] = ["a", "b", "c"];

impl Source {
    fn name(&mut self, sight: &Sight<'_>) -> Option<String> {
        let has_schema =
            self.kinds.has(Kind::Schemas) && sight.view().schemas.contains(&self.names.schema);
        let may_be = |name: &&str| has_schema || schema_of(name) == "public";
        let names = self.names.tables.iter().map(String::as_str);
        let names: Vec<String> = names.filter(may_be).map(str::to_owned).collect();
        let name = self.one_of(&names)?.clone();
        sight.is_free(&name).then_some(name)
    }

    pub(super) fn create_table(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.name(sight)?;
        // Now and then one that is there: an error, whose answer rests on it.
        if sight.view().names.contains_key(&table) && !self.random.chance(1, 8) {
            return None;
        }
        let count = self.random.below(3) as usize;
        let columns = COLUMNS[..count].iter().map(|column| (*column).to_owned()).collect();
        let filled = self.random.below(3);
        for _ in 0..filled {
            let rows = self.some_rows(3);
            let (way, conflict, returning) = (Way::Simple, OnConflict::Nothing, false);
            let table = table.clone();
            self.queue.push_back(Statement::Insert { table, rows, way, conflict, returning });
        }
        if self.kinds.has(Kind::Grants) && sight.open.is_none() && self.random.chance(1, 2) {
            let grant = |role: &String, right| Statement::Grant {
                right,
                table: table.clone(),
                role: role.clone(),
                is_grant: true,
            };
            let known = sight.view().roles.iter();
            let right = RIGHTS[self.random.below(3) as usize];
            self.queue.extend(known.map(|role| grant(role, right)).collect::<Vec<_>>());
        }
        Some(Statement::CreateTable { table, columns })
    }

    pub(super) fn drop_table(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.definable(sight)?;
        // The name is taken at once, so that what was of the old table would show.
        if self.random.chance(1, 2) {
            let columns = Vec::new();
            self.queue.push_back(Statement::CreateTable { table: table.clone(), columns });
        }
        Some(Statement::DropTable { table })
    }

    /// Within a transaction a name is given up, taken, and perhaps gone back to.
    pub(super) fn pass_within(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.definable(sight)?;
        let create = Statement::CreateTable { table: table.clone(), columns: Vec::new() };
        self.queue.push_back(create);
        let end = [Statement::Rollback, Statement::Commit][self.random.below(2) as usize].clone();
        self.queue.push_back(end);
        Some(Statement::DropTable { table })
    }

    pub(super) fn pass_name(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.definable(sight)?;
        let of_schema = |name: &&str| schema_of(name) == schema_of(&table);
        let free = self
            .names
            .tables
            .iter()
            .map(String::as_str)
            .filter(of_schema)
            .find(|name| sight.is_free(name) && !sight.view().names.contains_key(*name))?;
        let to = free.to_owned();
        let create = |table: &str| Statement::CreateTable {
            table: table.to_owned(),
            columns: vec!["a".to_owned()],
        };
        let drop_it = |table: &str| Statement::DropTable { table: table.to_owned() };
        let rename = |table: &str, to: &str| Statement::RenameTable {
            table: table.to_owned(),
            to: to.to_owned(),
        };
        let mut all = match self.random.below(4) {
            0 => vec![rename(&table, &to), create(&table), drop_it(&table), rename(&to, &table)],
            1 => vec![create(&to), drop_it(&to), rename(&table, &to)],
            2 => vec![rename(&table, &to), create(&table)],
            _ => vec![rename(&table, &to)],
        };
        let first = all.remove(0);
        self.queue.extend(all);
        Some(first)
    }

    pub(super) fn alter(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.definable(sight)?;
        let column = COLUMNS[self.random.below(3) as usize].to_owned();
        let default = self.random.chance(1, 2).then(|| self.value());
        Some(match self.random.below(8) {
            0 | 1 => Statement::AddColumn { table, column, default },
            2 | 3 => Statement::DropColumn { table, column },
            4 => Statement::SetDefault { table, column: self.one_column(column), default },
            5 | 6 => {
                // A table that refuses new rows goes on to, so mostly it is taken away.
                let is_not_null = self.random.chance(2, 5);
                Statement::SetNotNull { table, column: self.one_column(column), is_not_null }
            }
            _ => {
                let others: Vec<&str> =
                    COLUMNS.into_iter().filter(|other| *other != column).collect();
                let to = (*self.one_of(&others)?).to_owned();
                Statement::RenameColumn { table, column, to }
            }
        })
    }

    /// `v` now and then, which every table has.
    fn one_column(&mut self, other: String) -> String {
        if self.random.chance(1, 3) { "v".to_owned() } else { other }
    }

    /// The key's type, or that of `v`. One that the column has already is no change.
    pub(super) fn set_type(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.definable(sight)?;
        let (column, types) = match self.random.below(2) {
            0 => ("k", KEY_TYPES),
            _ => ("v", VALUE_TYPES),
        };
        let to = types[self.random.below(types.len() as u64) as usize];
        Some(Statement::SetType { table, column: column.to_owned(), to })
    }

    pub(super) fn role(&mut self, sight: &Sight<'_>) -> Statement {
        let role = self.one_role();
        match sight.view().roles.contains(&role) && self.random.chance(1, 3) {
            true => Statement::DropRole { role },
            false => Statement::CreateRole { role },
        }
    }

    fn one_role(&mut self) -> String {
        let at = self.random.below(self.names.roles.len() as u64) as usize;
        self.names.roles[at].clone()
    }

    pub(super) fn grant(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.definable(sight)?;
        let (role, right) = (self.one_role(), RIGHTS[self.random.below(3) as usize]);
        let is_grant = self.random.chance(3, 4);
        Some(Statement::Grant { right, table, role, is_grant })
    }

    pub(super) fn comment(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let table = self.definable(sight)?;
        let column = self.random.chance(1, 2).then(|| "v".to_owned());
        let text = self.random.chance(4, 5).then(|| self.value());
        Some(Statement::Comment { table, column, text })
    }

    pub(super) fn schema(&mut self, sight: &Sight<'_>) -> Option<Statement> {
        let schema = self.names.schema.clone();
        // A transaction may be about to make a table in it.
        let is_claimed = sight.claims.names.iter().any(|name| schema_of(name) == schema);
        match sight.view().schemas.contains(&schema) {
            true if is_claimed => None,
            true if self.random.chance(1, 4) => Some(Statement::DropSchema { schema }),
            true => None,
            false => Some(Statement::CreateSchema { schema }),
        }
    }
}
