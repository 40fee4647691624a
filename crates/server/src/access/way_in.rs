//! What roles must be so that somebody with all rights can always come in, by a password too.
//!
//! Invariants, of every change of roles
//! 1. Where a role has LOGIN and a password, a superuser has both. So the role that ends open access on this machine
//!    is one that can make other roles. One that has LOGIN without a password ends nothing.
//! 2. Neither ceases to hold by the last such superuser being taken away: open access does not come back.

use std::collections::BTreeMap;

use super::Role;
use crate::error::{Result, SqlError, state};

impl Role {
    /// Whether a client comes in by it.
    pub(crate) fn lets_in(&self) -> bool {
        self.can_login && self.verifier.is_some()
    }
}

/// Refuses a change of roles that would take or leave every superuser without a way in.
pub(super) fn check(before: &BTreeMap<String, Role>, after: &BTreeMap<String, Role>) -> Result<()> {
    let what = "can log in by a password";
    let superuser = |roles: &BTreeMap<String, Role>| {
        let found = roles.iter().find(|(_, role)| role.is_superuser && role.lets_in());
        found.map(|(name, _)| name.clone())
    };
    if superuser(after).is_some() {
        return Ok(());
    }
    if let Some(last) = superuser(before) {
        let message = format!("role {last} is the last superuser that {what}, and must stay one");
        return Err(refused(message, "Make another one first"));
    }
    if let Some((first, _)) = after.iter().find(|(_, role)| role.lets_in()) {
        let message =
            format!("role {first} {what}, and no superuser does: nobody could administer roles");
        return Err(refused(message, "Make a superuser first"));
    }
    Ok(())
}

fn refused(message: String, first: &str) -> SqlError {
    SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message).with_hint(format!(
        "{first}: CREATE ROLE admin SUPERUSER LOGIN PASSWORD '...', or with PostgreSQL's tools \
         createuser --superuser --pwprompt admin."
    ))
}

#[cfg(test)]
mod tests {
    use super::super::Verifier;
    use super::*;

    /// Every set of two roles, each of them one of these nine or not there.
    fn all_sets() -> Vec<BTreeMap<String, Role>> {
        let verifier = Verifier::of("secret");
        let mut kinds: Vec<Option<Role>> = vec![None];
        for bits in 0..8 {
            kinds.push(Some(Role {
                verifier: (bits & 1 != 0).then(|| verifier.clone()),
                is_superuser: bits & 2 != 0,
                can_login: bits & 4 != 0,
                ..Role::default()
            }));
        }
        let pairs = kinds.iter().flat_map(|one| kinds.iter().map(move |other| (one, other)));
        pairs
            .map(|(one, other)| {
                let named = [("one", one), ("other", other)].into_iter();
                named.filter_map(|(name, role)| Some((name.to_owned(), role.clone()?))).collect()
            })
            .collect()
    }

    fn any(roles: &BTreeMap<String, Role>, is_so: impl Fn(&Role) -> bool) -> bool {
        roles.values().any(is_so)
    }

    #[test]
    fn whoever_comes_in_a_superuser_does_too_after_every_change_that_is_allowed() {
        for before in all_sets() {
            for after in all_sets() {
                if check(&before, &after).is_err() {
                    continue;
                }
                let admin = any(&after, |role| role.is_superuser && role.lets_in());
                assert!(admin || !any(&after, Role::lets_in), "{before:?} to {after:?}");
                let had = any(&before, |role| role.is_superuser && role.lets_in());
                assert!(admin || !had, "{before:?} to {after:?}");
            }
        }
    }

    #[test]
    fn a_change_that_leaves_a_superuser_with_a_password_is_never_refused() {
        let has_admin =
            |roles: &BTreeMap<String, Role>| any(roles, |role| role.is_superuser && role.lets_in());
        for before in all_sets() {
            for after in all_sets().into_iter().filter(has_admin) {
                assert!(check(&before, &after).is_ok(), "{before:?} to {after:?}");
            }
        }
    }
}
