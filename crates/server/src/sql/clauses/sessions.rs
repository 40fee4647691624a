//! Transactions, settings, roles, cursors and prepared statements.

use sqlparser::ast::{
    ContextModifier, CreateRole, Declare, Function, FunctionArgumentList, FunctionArguments, Grant,
    Grantee, GranteesType, Privileges, ResetStatement, Revoke, Set, Statement, WindowType,
};

use super::none;
use crate::error::Result;

pub(super) fn check(statement: &Statement) -> Result<()> {
    match statement {
        Statement::StartTransaction {
            modes: _are_taken,
            begin: _spelling,
            transaction: _word_transaction_or_work,
            modifier,
            statements,
            exception,
            has_end_keyword,
        } => {
            let instead = "Write BEGIN [ISOLATION LEVEL ...] [READ ONLY].";
            none(modifier.is_some(), "a kind of BEGIN", instead)?;
            let is_block = !statements.is_empty() || exception.is_some() || *has_end_keyword;
            none(is_block, "BEGIN with statements and END", instead)
        }
        Statement::Commit { chain: _is_taken, end: _spelling, modifier } => {
            none(modifier.is_some(), "a kind of COMMIT", "Write COMMIT.")
        }
        Statement::Rollback { chain: _is_taken, savepoint: _too } => Ok(()),
        Statement::Savepoint { name: _is_taken } => Ok(()),
        Statement::ReleaseSavepoint { name: _is_taken } => Ok(()),
        Statement::Set(set) => check_set(set),
        Statement::Reset(ResetStatement { reset: _is_taken }) => Ok(()),
        Statement::ShowVariable { variable: _is_taken } => Ok(()),
        Statement::Discard { object_type: _is_taken } => Ok(()),
        Statement::Prepare { name: _is_taken, data_types: _are_taken, statement: _too } => Ok(()),
        Statement::Execute {
            name: _is_taken,
            parameters: _are_taken,
            has_parentheses: _spelling,
            immediate,
            into,
            using,
            output,
            default,
        } => {
            let instead = "Write EXECUTE name (values).";
            none(*immediate, "EXECUTE IMMEDIATE", instead)?;
            none(!into.is_empty(), "EXECUTE ... INTO", instead)?;
            none(!using.is_empty(), "EXECUTE ... USING", instead)?;
            none(*output, "OUTPUT", instead)?;
            none(*default, "DEFAULT in EXECUTE", instead)
        }
        Statement::Deallocate { name: _is_taken, prepare: _spelling } => Ok(()),
        Statement::Declare { stmts } => stmts.iter().try_for_each(|declared| {
            // The planner of cursors names each of them.
            let Declare {
                names: _are_taken,
                data_type: _is_refused,
                assignment: _too,
                declare_type: _is_taken,
                binary: _is_looked_at,
                sensitive: _says_nothing_of_a_snapshot,
                scroll: _scroll_too,
                hold: _hold_too,
                for_query: _query_is_taken,
            } = declared;
            Ok(())
        }),
        Statement::Fetch { name: _is_taken, direction: _too, position: _spelling, into } => {
            none(into.is_some(), "FETCH ... INTO", "The rows go to the client.")
        }
        Statement::Close { cursor: _is_taken } => Ok(()),
        Statement::CreateRole(create) => check_role(create),
        // Its options are taken one by one.
        Statement::AlterRole { name: _is_taken, operation: _too } => Ok(()),
        Statement::Grant(grant) => check_grant(grant),
        Statement::Revoke(revoke) => check_revoke(revoke),
        // The planner names the parts of these itself, or refuses the statement.
        _ => Ok(()),
    }
}

fn check_set(set: &Set) -> Result<()> {
    let for_all = "ALTER DATABASE onrush SET name = value is for all sessions to come.";
    match set {
        Set::SingleAssignment { scope, hivevar, variable: _is_taken, values: _are_taken } => {
            match scope {
                None | Some(ContextModifier::Local | ContextModifier::Session) => {}
                Some(ContextModifier::Global) => none(true, "SET GLOBAL", for_all)?,
            }
            none(*hivevar, "HIVEVAR", "Write SET name = value.")
        }
        Set::SetTimeZone { local: _is_taken, value: _too } => Ok(()),
        Set::SetNames { charset_name: _is_taken, collation_name } => {
            none(collation_name.is_some(), "COLLATE in SET NAMES", "Write SET NAMES 'UTF8'.")
        }
        Set::SetTransaction { modes: _are_taken, snapshot, session: _is_taken } => {
            let instead = "A transaction's snapshot is taken at its first statement.";
            none(snapshot.is_some(), "SET TRANSACTION SNAPSHOT", instead)
        }
        // The planner refuses it by its words.
        _ => Ok(()),
    }
}

fn check_role(create: &CreateRole) -> Result<()> {
    let CreateRole {
        names: _are_taken,
        if_not_exists: _is_taken,
        login: _login_is_taken,
        inherit: _inherit_is_taken,
        bypassrls,
        password: _password_is_taken,
        superuser: _superuser_is_taken,
        create_db,
        create_role,
        replication,
        connection_limit,
        valid_until,
        in_role: _is_planned,
        in_group: _too,
        role: _as_well,
        user: _equally,
        admin: _likewise,
        authorization_owner,
    } = create;
    let instead = "There are LOGIN, SUPERUSER and INHERIT, NO in front of each, PASSWORD, and IN ROLE, \
                   ROLE and ADMIN with names.";
    none(*bypassrls == Some(true), "BYPASSRLS", instead)?;
    none(*create_db == Some(true), "CREATEDB", instead)?;
    none(*create_role == Some(true), "CREATEROLE", instead)?;
    none(*replication == Some(true), "REPLICATION", instead)?;
    none(connection_limit.is_some(), "CONNECTION LIMIT", instead)?;
    none(valid_until.is_some(), "VALID UNTIL", instead)?;
    none(authorization_owner.is_some(), "AUTHORIZATION", instead)
}

fn check_grant(grant: &Grant) -> Result<()> {
    let Grant {
        privileges,
        objects: _are_taken,
        grantees,
        with_grant_option,
        as_grantor,
        granted_by,
        current_grants,
    } = grant;
    let instead = "Superusers grant rights.";
    none(*with_grant_option, "WITH GRANT OPTION", instead)?;
    none(as_grantor.is_some() || granted_by.is_some(), "GRANTED BY", instead)?;
    none(current_grants.is_some(), "what becomes of CURRENT GRANTS", instead)?;
    check_privileges(privileges)?;
    grantees.iter().try_for_each(check_grantee)
}

fn check_revoke(revoke: &Revoke) -> Result<()> {
    let Revoke {
        privileges,
        objects: _are_taken,
        grantees,
        granted_by,
        // Nobody can pass a right on, so nothing goes with it: both come to the same.
        cascade: _says_nothing,
    } = revoke;
    none(granted_by.is_some(), "GRANTED BY", "Superusers grant rights.")?;
    check_privileges(privileges)?;
    grantees.iter().try_for_each(check_grantee)
}

fn check_privileges(privileges: &Privileges) -> Result<()> {
    match privileges {
        Privileges::All { with_privileges_keyword: _spelling } => Ok(()),
        // Each is taken by itself.
        Privileges::Actions(_) => Ok(()),
    }
}

fn check_grantee(grantee: &Grantee) -> Result<()> {
    let Grantee { grantee_type, name: _is_taken } = grantee;
    match grantee_type {
        GranteesType::None | GranteesType::Role | GranteesType::User | GranteesType::Group => {
            Ok(())
        }
        // It has no name, which the planner says.
        GranteesType::Public => Ok(()),
        GranteesType::Share
        | GranteesType::DatabaseRole
        | GranteesType::Application
        | GranteesType::ApplicationRole => none(true, "a kind of role", "Name the role."),
    }
}

pub(super) fn check_call(call: &Function) -> Result<()> {
    let Function {
        name: _is_taken,
        uses_odbc_syntax: _spelling,
        parameters,
        args,
        filter,
        null_treatment,
        over,
        within_group,
    } = call;
    let instead = "Write CALL name (values).";
    match parameters {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) | FunctionArguments::List(_) => {
            none(true, "parameters in front of the arguments", instead)?;
        }
    }
    match args {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) => none(true, "a query as the argument of CALL", instead)?,
        FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment,
            args: _are_taken,
            clauses,
        }) => {
            let has_more = duplicate_treatment.is_some() || !clauses.is_empty();
            none(has_more, "a clause among the arguments of CALL", instead)?;
        }
    }
    none(filter.is_some(), "FILTER in CALL", instead)?;
    none(null_treatment.is_some(), "what becomes of NULLS in CALL", instead)?;
    match over {
        None => {}
        Some(WindowType::WindowSpec(_) | WindowType::NamedWindow(_)) => {
            none(true, "OVER in CALL", instead)?;
        }
    }
    none(!within_group.is_empty(), "WITHIN GROUP in CALL", instead)
}
