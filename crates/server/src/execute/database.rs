//! ALTER DATABASE ... SET and RESET. It is durable when it is answered, and counts for clients that
//! come in later.

use super::Backend;
use crate::error::Result;
use crate::sql::SettingChange;

impl Backend {
    pub(super) fn alter_database(&mut self, change: &SettingChange) -> Result<()> {
        self.outside_transaction("ALTER DATABASE")?;
        let name = change.name.as_ref().map(|name| name.to_lowercase());
        if let Some(name) = &name {
            self.settings.check_default(name, change.value.as_deref())?;
        }
        tokio::task::block_in_place(|| match (&name, &change.value) {
            (Some(name), Some(value)) => self.defaults.put(name, value),
            _ => self.defaults.forget(name.as_deref()),
        })?;
        Ok(())
    }
}
