//! CREATE, ALTER, DROP and TRUNCATE of tables, and DROP of all else.

use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, CascadeOption, CheckConstraint,
    ColumnDef, ColumnOption, ColumnOptionDef, ConstraintCharacteristics, CreateTable,
    DeferrableInitial, DropBehavior, GeneratedAs, HiveDistributionStyle, IndexColumn,
    KeyOrIndexDisplay, ObjectType, OrderByExpr, OrderByOptions, PrimaryKeyConstraint,
    RenameTableNameKind, Statement, TableConstraint, Truncate, TruncateIdentityOption,
    TruncateTableTarget, UniqueConstraint,
};

use super::none;
use crate::error::Result;

const CREATE: &str = "Write CREATE [UNLOGGED | TEMPORARY] TABLE [IF NOT EXISTS] name (columns, PRIMARY KEY (...)) \
                      [WITH (...)].";

pub(super) fn check_create(create: &CreateTable) -> Result<()> {
    let CreateTable {
        or_replace,
        temporary,
        external,
        dynamic,
        global,
        if_not_exists: _is_taken,
        transient,
        volatile,
        iceberg,
        snapshot,
        name: _name_is_taken,
        columns,
        constraints,
        hive_distribution,
        hive_formats,
        table_options: _are_taken_one_by_one,
        file_format,
        location,
        query: _is_visited,
        without_rowid,
        like,
        clone,
        version,
        comment,
        on_commit: _taken_with_temporary,
        on_cluster,
        primary_key,
        order_by,
        partition_by,
        cluster_by,
        clustered_by,
        inherits,
        partition_of,
        for_values,
        strict,
        copy_grants,
        enable_schema_evolution,
        change_tracking,
        data_retention_time_in_days,
        max_data_extension_time_in_days,
        default_ddl_collation,
        with_aggregation_policy,
        with_row_access_policy,
        with_storage_lifecycle_policy,
        with_tags,
        external_volume,
        base_location,
        catalog,
        catalog_sync,
        storage_serialization_policy,
        target_lag,
        warehouse,
        refresh_mode,
        initialize,
        require_user,
        diststyle,
        distkey,
        sortkey,
        backup,
    } = create;
    for (is_there, what) in [
        (*or_replace, "CREATE OR REPLACE TABLE"),
        (global.is_some_and(|global| global || !temporary), "GLOBAL and LOCAL"),
        (like.is_some(), "LIKE"),
        (inherits.is_some(), "INHERITS"),
        (partition_by.is_some(), "PARTITION BY"),
        (partition_of.is_some() || for_values.is_some(), "PARTITION OF"),
        (comment.is_some(), "COMMENT in CREATE TABLE: COMMENT ON TABLE says it; this"),
        (*external || location.is_some() || file_format.is_some(), "EXTERNAL"),
        (hive_formats.is_some() || *hive_distribution != HiveDistributionStyle::NONE, "STORED AS"),
        (*dynamic || target_lag.is_some() || refresh_mode.is_some(), "DYNAMIC"),
        (*transient || *volatile || *iceberg || *snapshot, "a kind of table"),
        (*without_rowid || *strict, "WITHOUT ROWID and STRICT"),
        (clone.is_some() || version.is_some(), "CLONE"),
        (on_cluster.is_some(), "ON CLUSTER"),
        (primary_key.is_some(), "PRIMARY KEY behind the columns"),
        (order_by.is_some(), "ORDER BY of CREATE TABLE"),
        (cluster_by.is_some() || clustered_by.is_some(), "CLUSTER BY"),
        (*copy_grants, "COPY GRANTS"),
        (diststyle.is_some() || distkey.is_some() || sortkey.is_some(), "DISTSTYLE and SORTKEY"),
        (backup.is_some(), "BACKUP"),
    ] {
        none(is_there, what, CREATE)?;
    }
    let is_of_others = enable_schema_evolution.is_some()
        || change_tracking.is_some()
        || data_retention_time_in_days.is_some()
        || max_data_extension_time_in_days.is_some()
        || default_ddl_collation.is_some()
        || with_aggregation_policy.is_some()
        || with_row_access_policy.is_some()
        || with_storage_lifecycle_policy.is_some()
        || with_tags.is_some()
        || external_volume.is_some()
        || base_location.is_some()
        || catalog.is_some()
        || catalog_sync.is_some()
        || storage_serialization_policy.is_some()
        || warehouse.is_some()
        || initialize.is_some()
        || *require_user;
    none(is_of_others, "a setting of other databases in CREATE TABLE", CREATE)?;
    columns.iter().try_for_each(check_column)?;
    constraints.iter().try_for_each(check_constraint)
}

fn check_column(column: &ColumnDef) -> Result<()> {
    let ColumnDef { name: _is_taken, data_type: _type_is_taken, options } = column;
    options.iter().try_for_each(|option| {
        // As in PostgreSQL, NOT NULL and DEFAULT may have a name, which says nothing; that of a CHECK is taken.
        let ColumnOptionDef { name: _says_nothing, option } = option;
        check_column_option(option)
    })
}

fn check_column_option(option: &ColumnOption) -> Result<()> {
    match option {
        ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_) => Ok(()),
        ColumnOption::PrimaryKey(key) => check_key(key),
        ColumnOption::Check(check) => check_check(check),
        ColumnOption::Unique(unique) => check_unique(unique),
        ColumnOption::Generated {
            // Of identities that are ALWAYS generated, docs/sql.md tells.
            generated_as: GeneratedAs::Always | GeneratedAs::ByDefault | GeneratedAs::ExpStored,
            sequence_options: _are_taken_one_by_one,
            // The planner refuses it.
            generation_expr: _is_refused,
            generation_expr_mode: _of_it,
            generated_keyword: _spelling,
        } => Ok(()),
        // The planner refuses it by its words.
        _ => Ok(()),
    }
}

fn check_constraint(constraint: &TableConstraint) -> Result<()> {
    match constraint {
        TableConstraint::PrimaryKey(key) => check_key(key),
        TableConstraint::Check(check) => check_check(check),
        TableConstraint::Unique(unique) => check_unique(unique),
        // The planner looks at foreign keys, and refuses all else by its words.
        _ => Ok(()),
    }
}

fn check_key(key: &PrimaryKeyConstraint) -> Result<()> {
    let PrimaryKeyConstraint {
        name: _is_taken,
        index_name,
        index_type,
        columns,
        // The planner looks at them.
        index_options: _are_looked_at,
        characteristics,
    } = key;
    let instead = "Write PRIMARY KEY (columns).";
    none(index_name.is_some(), "a name of the index in PRIMARY KEY", instead)?;
    none(index_type.is_some(), "USING in PRIMARY KEY", instead)?;
    for column in columns {
        let IndexColumn {
            column: OrderByExpr { expr: _is_taken, options, with_fill },
            operator_class,
        } = column;
        let OrderByOptions { asc, nulls_first } = options;
        none(*asc == Some(false), "DESC in PRIMARY KEY", instead)?;
        none(nulls_first.is_some(), "NULLS FIRST and LAST in PRIMARY KEY", instead)?;
        none(with_fill.is_some(), "WITH FILL", instead)?;
        none(operator_class.is_some(), "an operator class in PRIMARY KEY", instead)?;
    }
    characteristics.as_ref().map_or(Ok(()), check_characteristics)
}

fn check_check(check: &CheckConstraint) -> Result<()> {
    let CheckConstraint { name: _is_taken, expr: _too, enforced } = check;
    none(enforced.is_some(), "[NOT] ENFORCED", "Leave it out: all are enforced.")
}

fn check_unique(unique: &UniqueConstraint) -> Result<()> {
    let UniqueConstraint {
        name: _is_taken,
        index_name,
        index_type_display,
        index_type,
        columns: _are_taken_one_by_one,
        // The planner looks at them.
        index_options: _are_looked_at,
        characteristics: _is_looked_at,
        nulls_distinct: _too,
    } = unique;
    let instead = "Write UNIQUE (columns).";
    none(index_name.is_some(), "a name of the index in UNIQUE", instead)?;
    none(*index_type_display != KeyOrIndexDisplay::None, "UNIQUE KEY and UNIQUE INDEX", instead)?;
    none(index_type.is_some(), "USING in UNIQUE", instead)
}

/// When a constraint is looked at: always at once, which may be said.
fn check_characteristics(characteristics: &ConstraintCharacteristics) -> Result<()> {
    let ConstraintCharacteristics { deferrable, initially, enforced } = characteristics;
    let instead = "Leave it out: a key is looked at when a row is written.";
    none(*deferrable == Some(true), "DEFERRABLE", instead)?;
    match initially {
        None | Some(DeferrableInitial::Immediate) => {}
        Some(DeferrableInitial::Deferred) => none(true, "INITIALLY DEFERRED", instead)?,
    }
    none(*enforced == Some(false), "NOT ENFORCED", "Leave it out: all are enforced.")
}

pub(super) fn check_alter(alter: &AlterTable) -> Result<()> {
    let AlterTable {
        name: _is_taken,
        if_exists: _if_is_taken,
        // There is no table that inherits.
        only: _is_so,
        operations,
        location,
        on_cluster,
        table_type,
        end_token: _token,
    } = alter;
    let instead = "Write ALTER TABLE [IF EXISTS] name and what is to be altered.";
    none(location.is_some(), "SET LOCATION", instead)?;
    none(on_cluster.is_some(), "ON CLUSTER", instead)?;
    none(table_type.is_some(), "a kind of table in ALTER TABLE", instead)?;
    operations.iter().try_for_each(check_operation)
}

fn check_operation(operation: &AlterTableOperation) -> Result<()> {
    match operation {
        AlterTableOperation::AddConstraint { constraint, not_valid } => {
            let may_be_late =
                matches!(constraint, TableConstraint::ForeignKey(_) | TableConstraint::Check(_));
            let instead = "Leave it out: rows that are there are looked at.";
            none(*not_valid && !may_be_late, "NOT VALID", instead)?;
            check_constraint(constraint)
        }
        AlterTableOperation::AddColumn {
            column_keyword: _spelling,
            if_not_exists: _is_taken,
            column_def,
            column_position,
        } => {
            let at_end = "A new column is the last one.";
            none(column_position.is_some(), "FIRST and AFTER", at_end)?;
            check_column(column_def)
        }
        AlterTableOperation::DropConstraint { if_exists: _, name: _, drop_behavior }
        | AlterTableOperation::DropColumn {
            has_column_keyword: _,
            column_names: _,
            if_exists: _,
            drop_behavior,
        } => match drop_behavior {
            // The planner takes it.
            None | Some(DropBehavior::Restrict | DropBehavior::Cascade) => Ok(()),
        },
        AlterTableOperation::RenameConstraint { old_name: _is_taken, new_name: _too } => Ok(()),
        AlterTableOperation::ValidateConstraint { name: _is_taken } => Ok(()),
        AlterTableOperation::RenameColumn { old_column_name: _is_taken, new_column_name: _too } => {
            Ok(())
        }
        AlterTableOperation::AlterColumn { column_name: _is_taken, op } => check_alter_column(op),
        AlterTableOperation::RenameTable { table_name } => match table_name {
            RenameTableNameKind::To(_) => Ok(()),
            RenameTableNameKind::As(_) => none(true, "RENAME AS", "Write RENAME TO."),
        },
        // The planner refuses it by its words.
        _ => Ok(()),
    }
}

fn check_alter_column(operation: &AlterColumnOperation) -> Result<()> {
    match operation {
        AlterColumnOperation::SetNotNull
        | AlterColumnOperation::DropNotNull
        | AlterColumnOperation::DropDefault
        | AlterColumnOperation::SetDefault { value: _ } => Ok(()),
        // The planner refuses USING.
        AlterColumnOperation::SetDataType { data_type: _is_taken, using: _too, had_set: _ } => {
            Ok(())
        }
        // The planner refuses it by its words.
        AlterColumnOperation::AddGenerated { generated_as: _, sequence_options: _ } => Ok(()),
    }
}

/// DROP and TRUNCATE.
pub(super) fn check_away(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Drop {
            object_type,
            if_exists: _is_taken,
            names: _are_taken,
            cascade,
            // As it is without a word.
            restrict: _is_so,
            purge,
            temporary,
            table,
        } => {
            let instead = "Write DROP, what it is, [IF EXISTS] and its name.";
            // The planner takes it.
            let may_cascade = !matches!(object_type, ObjectType::Role | ObjectType::User);
            none(*cascade && !may_cascade, "DROP ROLE ... CASCADE", instead)?;
            none(*purge, "DROP ... PURGE", instead)?;
            none(*temporary, "DROP TEMPORARY", instead)?;
            none(table.is_some(), "DROP ... ON a table", instead)
        }
        Statement::Truncate(Truncate {
            table_names,
            partitions,
            table: _spelling,
            if_exists,
            // The planner takes it.
            identity:
                None | Some(TruncateIdentityOption::Restart | TruncateIdentityOption::Continue),
            cascade: None | Some(CascadeOption::Cascade | CascadeOption::Restrict),
            on_cluster,
        }) => {
            let instead = "Write TRUNCATE and the names of tables.";
            none(partitions.is_some(), "TRUNCATE ... PARTITION", instead)?;
            none(*if_exists, "TRUNCATE IF EXISTS", instead)?;
            none(on_cluster.is_some(), "ON CLUSTER", instead)?;
            table_names.iter().try_for_each(|target| {
                // There is no table that inherits.
                let TruncateTableTarget { name: _is_taken, only: _is_so, has_asterisk: _too } =
                    target;
                Ok(())
            })
        }
        _ => Ok(()),
    }
}
