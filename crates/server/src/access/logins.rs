//! Names and passwords for doors other than that of PostgreSQL clients, such as a page for the browser.

use std::sync::Arc;

use super::Access;

/// Tells who can log in, as roles are now.
#[derive(Clone)]
pub struct Logins {
    access: Arc<Access>,
}

impl Logins {
    pub(crate) fn new(access: Arc<Access>) -> Logins {
        Logins { access }
    }

    /// Whether a role of this name can log in by this password. The time that it takes, some
    /// milliseconds, tells neither which names there are nor how wrong a password is.
    #[must_use]
    pub fn accepts(&self, name: &str, password: &str) -> bool {
        self.access.verifier_of(name).accepts(password)
    }
}
