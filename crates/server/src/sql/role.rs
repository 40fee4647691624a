//! CREATE, ALTER and DROP ROLE (USER, GROUP), GRANT and REVOKE.

use onrush::TableDefinition;
use sqlparser::ast::{
    Action, AlterRoleOperation, CreateRole, Expr, Grant, GrantObjects, Grantee, GranteeName,
    GranteesType, Ident, ObjectName, ObjectNamePart, Password, Privileges, Revoke, RoleOption,
    Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::Planner;
use super::member_words::MemberChange;
use super::{names, plan, schema};
use crate::access::{Kind, PUBLIC, Right, RoleChange, Verifier};
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::sequences::check_is_sequence;

/// A role as a statement names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RoleName {
    Named(String),
    /// `CURRENT_USER` and `CURRENT_ROLE`.
    Current,
    /// `SESSION_USER`.
    Session,
}

impl RoleName {
    pub(super) fn of(token: &Token) -> Option<RoleName> {
        match token {
            Token::Word(word) => {
                let (value, quote_style) = (word.value.clone(), word.quote_style);
                Some(RoleName::of_identifier(&Ident { value, quote_style, span: Span::empty() }))
            }
            _ => None,
        }
    }

    pub(super) fn of_identifier(name: &Ident) -> RoleName {
        match names::identifier(name).as_str() {
            "current_user" | "current_role" if name.quote_style.is_none() => RoleName::Current,
            "session_user" if name.quote_style.is_none() => RoleName::Session,
            other => RoleName::Named(other.to_owned()),
        }
    }
}

/// Who is in whom from the moment that a role is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstMembers {
    /// Those that it is in.
    pub(crate) groups: Vec<RoleName>,
    pub(crate) members: Vec<RoleName>,
    /// Members who may make others so.
    pub(crate) admins: Vec<RoleName>,
}

/// What becomes of roles.
#[derive(Clone, Debug)]
pub(crate) enum RoleStatement {
    Create {
        names: Vec<String>,
        change: RoleChange,
        first: FirstMembers,
        if_not_exists: bool,
    },
    Alter {
        name: String,
        change: RoleChange,
    },
    Drop {
        names: Vec<String>,
        if_exists: bool,
    },
    /// Who is in these.
    Members {
        groups: Vec<RoleName>,
        change: MemberChange,
    },
    Grant {
        roles: Vec<RoleName>,
        /// Types, too.
        tables: Vec<String>,
        schemas: Vec<String>,
        rights: Vec<Right>,
        is_grant: bool,
    },
    /// What roles, or with none the current one, are going to make; in schemas, or with none in all.
    GrantByDefault {
        by: Vec<RoleName>,
        schemas: Vec<String>,
        kind: Kind,
        roles: Vec<RoleName>,
        rights: Vec<Right>,
        is_grant: bool,
    },
}

impl RoleStatement {
    /// As it stands in the answer.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            RoleStatement::Create { .. } => "CREATE ROLE",
            RoleStatement::Alter { .. } => "ALTER ROLE",
            RoleStatement::Drop { .. } => "DROP ROLE",
            RoleStatement::Members { change, .. } if change.is_alter => "ALTER ROLE",
            RoleStatement::Members { change, .. } if change.is_grant => "GRANT ROLE",
            RoleStatement::Members { .. } => "REVOKE ROLE",
            RoleStatement::Grant { is_grant: true, .. } => "GRANT",
            RoleStatement::Grant { is_grant: false, .. } => "REVOKE",
            RoleStatement::GrantByDefault { .. } => "ALTER DEFAULT PRIVILEGES",
        }
    }
}

/// A user is a role that can log in, and a group one that cannot: writes CREATE, ALTER and DROP of them as statements
/// about roles, which is what sqlparser reads.
pub(super) fn users_to_roles(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        let end = (at..tokens.len())
            .find(|index| tokens[*index].token == Token::SemiColon)
            .unwrap_or(tokens.len());
        let words: Vec<(usize, Keyword)> = (at..end)
            .filter_map(|index| match &tokens[index].token {
                Token::Word(word) => Some((index, word.keyword)),
                _ => None,
            })
            .collect();
        let mut next = end + 1;
        if let [(_, Keyword::CREATE | Keyword::DROP), (place, Keyword::GROUP), ..] = words[..] {
            tokens[place].token = Token::make_keyword("ROLE");
        }
        if let [(_, verb), (place, Keyword::USER), ..] = words[..]
            && matches!(verb, Keyword::CREATE | Keyword::ALTER | Keyword::DROP)
        {
            tokens[place].token = Token::make_keyword("ROLE");
            let is_said =
                |(_, word): &(usize, Keyword)| matches!(word, Keyword::LOGIN | Keyword::NOLOGIN);
            if verb == Keyword::CREATE && !words.iter().any(is_said) {
                let span = tokens[place].span;
                let added = [
                    Token::Whitespace(sqlparser::tokenizer::Whitespace::Space),
                    Token::make_keyword("LOGIN"),
                ];
                tokens.splice(end..end, added.map(|token| TokenWithSpan { token, span }));
                next += 2;
            }
        }
        at = next;
    }
}

pub(super) fn create(role: &CreateRole) -> Result<RoleStatement> {
    let has_more = role.connection_limit.is_some()
        || role.valid_until.is_some()
        || role.authorization_owner.is_some();
    let wanted = [role.create_db, role.create_role, role.replication, role.bypassrls];
    if has_more || wanted.into_iter().any(wants) {
        return Err(only_these());
    }
    let password = role.password.as_ref().map(password).transpose()?;
    let change = RoleChange {
        password,
        is_superuser: role.superuser,
        can_login: role.login,
        no_inherit: role.inherit.map(|inherits| !inherits),
    };
    let first = FirstMembers {
        groups: one_list(&role.in_role, &role.in_group)?,
        members: one_list(&role.role, &role.user)?,
        admins: one_list(&role.admin, &[])?,
    };
    let names = role_names(&role.names)?;
    if let Some(name) = names.iter().find(|name| name.starts_with("pg_")) {
        return Err(SqlError::new(state::RESERVED_NAME, format!("role name {name:?} is reserved"))
            .with_detail("Role names starting with \"pg_\" are reserved."));
    }
    Ok(RoleStatement::Create { names, change, first, if_not_exists: role.if_not_exists })
}

/// The roles of a clause that has two names, of which one stands there.
fn one_list(one: &[Ident], other: &[Ident]) -> Result<Vec<RoleName>> {
    if !one.is_empty() && !other.is_empty() {
        return Err(SqlError::new(state::SYNTAX_ERROR, "conflicting or redundant options"));
    }
    Ok(one.iter().chain(other).map(RoleName::of_identifier).collect())
}

pub(super) fn alter(name: &Ident, operation: &AlterRoleOperation) -> Result<RoleStatement> {
    let options = match operation {
        AlterRoleOperation::WithOptions { options } => options,
        AlterRoleOperation::Set { .. } | AlterRoleOperation::Reset { .. } => {
            return Err(SqlError::not_supported(
                "a setting of a role",
                "ALTER DATABASE onrush SET name = value is for all roles; clients send their own \
                 when they connect.",
            ));
        }
        _ => return Err(only_these()),
    };
    let mut change = RoleChange::default();
    for option in options {
        match option {
            RoleOption::Login(can) => change.can_login = Some(*can),
            RoleOption::SuperUser(is) => change.is_superuser = Some(*is),
            RoleOption::Password(given) => change.password = Some(password(given)?),
            RoleOption::Inherit(inherits) => change.no_inherit = Some(!inherits),
            RoleOption::CreateDB(false)
            | RoleOption::CreateRole(false)
            | RoleOption::Replication(false)
            | RoleOption::BypassRLS(false) => {}
            _ => return Err(only_these()),
        }
    }
    Ok(RoleStatement::Alter { name: names::identifier(name), change })
}

pub(super) fn drop(given: &[ObjectName], if_exists: bool) -> Result<RoleStatement> {
    Ok(RoleStatement::Drop { names: role_names(given)?, if_exists })
}

pub(super) fn grant(planner: &Planner<'_>, grant: &Grant) -> Result<RoleStatement> {
    if grant.with_grant_option || grant.as_grantor.is_some() || grant.current_grants.is_some() {
        return Err(only_superusers_grant());
    }
    rights_of(planner, &grant.privileges, grant.objects.as_ref(), &grant.grantees, true)
}

pub(super) fn revoke(planner: &Planner<'_>, revoke: &Revoke) -> Result<RoleStatement> {
    rights_of(planner, &revoke.privileges, revoke.objects.as_ref(), &revoke.grantees, false)
}

fn rights_of(
    planner: &Planner<'_>,
    privileges: &Privileges,
    objects: Option<&GrantObjects>,
    grantees: &[Grantee],
    is_grant: bool,
) -> Result<RoleStatement> {
    let (mut tables, mut schemas) = (Vec::new(), Vec::new());
    let rights = match (objects, privileges) {
        (Some(GrantObjects::Tables(named)), _) => {
            let mut are_sequences = true;
            for name in named {
                let table = planner.lookup().table_named(name)?;
                are_sequences &= plan::table(planner, &table)?.definition().sequence().is_some();
                tables.push(table);
            }
            match privileges {
                Privileges::All { .. } if are_sequences => Right::OF_SEQUENCES.to_vec(),
                Privileges::All { .. } => Right::OF_TABLES.to_vec(),
                Privileges::Actions(actions) if are_sequences => {
                    actions.iter().map(right_on_sequence).collect::<Result<_>>()?
                }
                Privileges::Actions(actions) => actions.iter().map(right).collect::<Result<_>>()?,
            }
        }
        (Some(GrantObjects::Sequences(named)), _) => {
            for name in named {
                let sequence = planner.lookup().table_named(name)?;
                check_is_sequence(&plan::table(planner, &sequence)?)?;
                tables.push(sequence);
            }
            match privileges {
                Privileges::All { .. } => Right::OF_SEQUENCES.to_vec(),
                Privileges::Actions(actions) => {
                    actions.iter().map(right_on_sequence).collect::<Result<_>>()?
                }
            }
        }
        (Some(GrantObjects::Schemas(named)), _) => {
            schemas = named.iter().map(|name| schema(planner, name)).collect::<Result<_>>()?;
            match privileges {
                Privileges::All { .. } => Right::OF_SCHEMAS.to_vec(),
                Privileges::Actions(actions) => {
                    actions.iter().map(right_on_schema).collect::<Result<_>>()?
                }
            }
        }
        (Some(GrantObjects::AllTablesInSchema { schemas: named }), _) => {
            tables = all_in(planner, named, |table| table.sequence().is_none())?;
            match privileges {
                Privileges::All { .. } => Right::OF_TABLES.to_vec(),
                Privileges::Actions(actions) => actions.iter().map(right).collect::<Result<_>>()?,
            }
        }
        (Some(GrantObjects::AllSequencesInSchema { schemas: named }), _) => {
            tables = all_in(planner, named, |table| table.sequence().is_some())?;
            match privileges {
                Privileges::All { .. } => Right::OF_SEQUENCES.to_vec(),
                Privileges::Actions(actions) => {
                    actions.iter().map(right_on_sequence).collect::<Result<_>>()?
                }
            }
        }
        _ => {
            return Err(SqlError::not_supported(
                "rights on anything but tables, sequences, types and schemas",
                "GRANT ... ON a table or a SEQUENCE, or USAGE ON TYPE or SCHEMA, or several with \
                 commas between them; a superuser needs none.",
            ));
        }
    };
    let role = |grantee: &Grantee| match &grantee.name {
        Some(GranteeName::ObjectName(name)) => match name.0.as_slice() {
            [ObjectNamePart::Identifier(own)] => Ok(RoleName::of_identifier(own)),
            _ => role_name(name).map(RoleName::Named),
        },
        None if grantee.grantee_type == GranteesType::Public => {
            Ok(RoleName::Named(PUBLIC.to_owned()))
        }
        _ => Err(SqlError::not_supported(grantee, "Name the role.")),
    };
    let roles = grantees.iter().map(role).collect::<Result<_>>()?;
    Ok(RoleStatement::Grant { roles, tables, schemas, rights, is_grant })
}

/// What there is in schemas, by the engine's names.
fn all_in(
    planner: &Planner<'_>,
    schemas: &[ObjectName],
    is_meant: impl Fn(&TableDefinition) -> bool,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in schemas {
        let name = schema::target(planner, name)?;
        for table in schemas::tables_of(planner.seen, &name) {
            if is_meant(planner.seen.table(&table)?.definition()) {
                found.push(table);
            }
        }
    }
    Ok(found)
}

/// A schema that users have made, or `public`; everyone may use the others.
pub(super) fn schema(planner: &Planner<'_>, name: &ObjectName) -> Result<String> {
    let name = schema::target(planner, name)?;
    match name != schemas::PUBLIC && schema::is_builtin(&name) {
        false => Ok(name),
        true => Err(SqlError::not_supported(
            format!("rights on the schema {name}"),
            "Everyone may use it; rights on its tables say who may do what.",
        )),
    }
}

fn right(action: &Action) -> Result<Right> {
    match action {
        Action::Select { columns: None } => Ok(Right::Select),
        Action::Insert { columns: None } => Ok(Right::Insert),
        Action::Update { columns: None } => Ok(Right::Update),
        Action::Delete => Ok(Right::Delete),
        Action::Truncate => Ok(Right::Truncate),
        Action::References { columns: None } => Ok(Right::References),
        Action::Trigger => Ok(Right::Trigger),
        Action::Usage | Action::Create { .. } | Action::Connect | Action::Temporary => {
            // Relations may be sequences.
            let kind = if *action == Action::Usage { "table" } else { "relation" };
            let message = format!("invalid privilege type {action} for {kind}");
            Err(SqlError::new(state::INVALID_GRANT, message))
        }
        other => Err(SqlError::not_supported(
            format!("the right {other}"),
            "There are SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES and TRIGGER, of whole tables.",
        )),
    }
}

fn right_on_sequence(action: &Action) -> Result<Right> {
    match action {
        Action::Select { columns: None } => Ok(Right::Select),
        Action::Update { columns: None } => Ok(Right::Update),
        Action::Usage => Ok(Right::Usage),
        other => {
            let message = format!("invalid privilege type {other} for sequence");
            Err(SqlError::new(state::INVALID_GRANT, message))
        }
    }
}

fn right_on_schema(action: &Action) -> Result<Right> {
    match action {
        Action::Usage => Ok(Right::Usage),
        Action::Create { obj_type: None } => Ok(Right::Create),
        other => {
            let message = format!("invalid privilege type {other} for schema");
            Err(SqlError::new(state::INVALID_GRANT, message))
        }
    }
}

fn role_names(given: &[ObjectName]) -> Result<Vec<String>> {
    given.iter().map(role_name).collect()
}

fn role_name(name: &ObjectName) -> Result<String> {
    match <[String; 1]>::try_from(names::parts(name)?) {
        Ok([name]) => Ok(name),
        Err(_) => {
            let message = format!("{name} is no name of a role");
            Err(SqlError::new(state::SYNTAX_ERROR, message))
        }
    }
}

fn wants(option: Option<bool>) -> bool {
    option == Some(true)
}

/// The verifier of a password, which is forgotten here.
fn password(given: &Password) -> Result<Option<Verifier>> {
    match given {
        Password::NullPassword => Ok(None),
        Password::Password(Expr::Value(value)) => match &value.value {
            Value::SingleQuotedString(text) if !text.is_empty() => Ok(Some(Verifier::of(text))),
            Value::SingleQuotedString(_) => {
                let message = "a password cannot be empty";
                Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message))
            }
            _ => Err(no_password()),
        },
        Password::Password(_) => Err(no_password()),
    }
}

fn no_password() -> SqlError {
    SqlError::new(state::SYNTAX_ERROR, "a password is text between single quotes, or NULL")
}

fn only_these() -> SqlError {
    SqlError::not_supported(
        "an option of this role",
        "There are LOGIN, SUPERUSER and INHERIT, NO in front of each, and PASSWORD; GRANT role TO role \
         makes members.",
    )
}

pub(super) fn only_superusers_grant() -> SqlError {
    SqlError::not_supported("passing rights on", "Superusers grant rights.")
}
