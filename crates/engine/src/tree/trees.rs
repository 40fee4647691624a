//! What all trees share: the storage below them, and whoever says what intents mean.

use std::ops::Deref;

use onrush_log::Lsn;

use super::old_versions::OldVersions;
use super::own_versions::OwnVersions;
use crate::status::IntentResolver;
use crate::storage::Storage;

/// See the module.
pub(crate) struct Trees {
    storage: Storage,
    pub(crate) resolver: IntentResolver<OwnVersions>,
    pub(crate) old_versions: OldVersions,
}

impl Deref for Trees {
    type Target = Storage;

    #[inline]
    fn deref(&self) -> &Storage {
        &self.storage
    }
}

impl Trees {
    pub(crate) fn new(storage: Storage, resolver: IntentResolver<OwnVersions>) -> Trees {
        let old_versions = OldVersions::new(storage.options.old_versions_bytes);
        Trees { storage, resolver, old_versions }
    }

    /// No snapshot, open or to be opened, is below this LSN.
    pub(crate) fn horizon(&self) -> Lsn {
        self.resolver.horizon(&self.log)
    }
}
