//! SET SESSION AUTHORIZATION and SET ROLE: as whom a client acts. It may do what that role may, is told so by
//! `current_user` and `session_user`, and comes back by what takes settings back: RESET, ROLLBACK, ROLLBACK TO.

use std::sync::Arc;

use super::Backend;
use crate::access::{Identity, Roles};
use crate::catalog::OWNER;
use crate::error::{Result, SqlError, state};
use crate::sql::{ROLE, SESSION_USER, SettingChange};

/// What SET ROLE takes for no role.
const NONE: &str = "none";

/// As whom a client acts, where that is not who came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Users {
    session: Option<Arc<str>>,
    role: Option<Arc<str>>,
}

impl Users {
    /// What SHOW says of `session_authorization` and `role`.
    pub(super) fn shown(&self, name: &str, came_in: &Arc<str>) -> String {
        match name {
            ROLE => self.role.as_deref().unwrap_or(NONE).to_owned(),
            _ => self.session_user(came_in).to_string(),
        }
    }

    /// Who the session belongs to, where `came_in` is who it was begun by.
    pub(super) fn session_user<'a>(&'a self, came_in: &'a Arc<str>) -> &'a Arc<str> {
        self.session.as_ref().unwrap_or(came_in)
    }

    /// Whose rights count.
    pub(super) fn current_user<'a>(&'a self, came_in: &'a Arc<str>) -> &'a Arc<str> {
        self.role.as_ref().unwrap_or_else(|| self.session_user(came_in))
    }
}

/// Whether a setting says as whom a client acts.
pub(super) fn is_of_users(name: &str) -> bool {
    matches!(name, ROLE | SESSION_USER)
}

impl Backend {
    /// Sets `session_authorization` or `role`.
    pub(super) fn set_user(&mut self, name: &str, change: &SettingChange) -> Result<()> {
        let mut users = self.settings.users.clone();
        let given = change.value.as_deref();
        if name == ROLE {
            users.role = given.filter(|role| *role != NONE).map(Arc::from);
            if let Some(role) = &users.role {
                self.check_may_act(&users, role)?;
            }
        } else {
            let session = given.filter(|user| *user != self.came_in.name).map(Arc::from);
            if let Some(user) = &session {
                check_is_there(&self.seen.roles()?, user)?;
                if !self.access.is_superuser(&self.came_in) {
                    return Err(denied("session authorization".to_owned()));
                }
            }
            users = Users { session, role: None };
        }
        self.settings.change_users(users, change.is_local);
        Ok(())
    }

    fn check_may_act(&self, users: &Users, role: &str) -> Result<()> {
        check_is_there(&self.seen.roles()?, role)?;
        let session = self.identity_of(users.session_user(&self.came_in_name()));
        match self.access.is_in(&session, role) {
            true => Ok(()),
            false => Err(denied(format!("role \"{role}\""))),
        }
    }

    /// Takes the client for whom its settings say, if they say something else than before.
    pub(super) fn follow_users(&mut self) {
        let came_in = self.came_in_name();
        let users = &self.settings.users;
        let (session, current) = (users.session_user(&came_in), users.current_user(&came_in));
        if *self.client.session_user == **session && *self.client.user == **current {
            return;
        }
        let (session, current) = (Arc::clone(session), Arc::clone(current));
        self.acts_as(&current);
        self.settings.follow_user(&current, self.access.is_superuser(&self.who));
        self.client.session_user = session;
        self.client.user = current;
    }

    /// For what is made for another role, who is put back behind it.
    pub(super) fn acts_as(&mut self, name: &str) {
        let own_roles = self.who.own_roles.take();
        self.acts_for(Identity { own_roles, ..self.identity_of(name) });
    }

    /// The client's rights are those of this one.
    pub(super) fn acts_for(&mut self, who: Identity) {
        self.sequences.is_for(&who);
        self.who = who;
    }

    /// Roles and grants are what the open transaction has made of them, or what everyone sees.
    pub(super) fn sees_roles(&mut self, own_roles: Option<Arc<Roles>>) {
        if self.who.own_roles.is_some() || own_roles.is_some() {
            self.who.own_roles = own_roles;
            self.sequences.is_for(&self.who);
        }
    }

    fn identity_of(&self, name: &str) -> Identity {
        if *name == *self.came_in.name {
            return self.came_in.clone();
        }
        // To whom everything belongs is no role that was made.
        Identity { name: name.to_owned(), is_trusted: name == OWNER, ..self.came_in.clone() }
    }

    fn came_in_name(&self) -> Arc<str> {
        Arc::clone(self.settings.came_in())
    }
}

fn check_is_there(roles: &Roles, name: &str) -> Result<()> {
    match name == OWNER || roles.roles.contains_key(name) {
        true => Ok(()),
        false => {
            let message = format!("role \"{name}\" does not exist");
            Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message))
        }
    }
}

fn denied(what: String) -> SqlError {
    SqlError::new(state::INSUFFICIENT_PRIVILEGE, format!("permission denied to set {what}"))
        .with_hint("A superuser can, and SET ROLE is for members of the role, too.")
}
