//! One measured load of Onrush, and the proof that what it inserted is there.
//!
//! Beside the life of an insert, not part of it: it uses the engine's public API only, as a user
//! would. One measured load, a *case*, goes through these files in order:
//!
//! 1. [`settings`]: what to do. [`place`]: folders made for it, removed after it.
//! 2. [`disk`]: what the device can do, so that the result has something to be held against.
//! 3. [`mod@classic_table`]: six columns, all with defaults, the key by one of eight strategies.
//! 4. [`load`]: many sessions insert and commit, as threads or as tasks.
//! 5. [`verify`]: the database is opened again and compared with what was acknowledged, by
//!    [`fingerprint`].
//! 6. [`result`]: the numbers under their names. [`report`]: the same for people.
//!
//! [`case`] walks through all of it, [`repeats`] does so several times. It knows no baseline: whatever compares
//! Onrush with others is in the crate `onrush-lab`, which uses this one for its own loads.

pub mod case;
pub mod classic_table;
pub mod disk;
pub mod doubt;
pub mod error;
pub mod fingerprint;
pub mod load;
pub mod machine;
pub mod nearest;
pub mod place;
pub mod progress;
pub mod repeats;
pub mod report;
pub mod result;
pub mod settings;
pub mod stand;
pub mod units;
pub mod verify;

pub use case::run_case;
pub use classic_table::{CLASSIC_TABLE, classic_table};
pub use error::{FolderError, MeasureError};
pub use fingerprint::Fingerprint;
pub use place::remove_temporary_folders;
pub use progress::{Observer, Quiet, Step};
pub use repeats::{Repeated, run_repeated};
pub use result::CaseResult;
pub use settings::{CaseSettings, Driver, Leave, Placement};
pub use verify::Verification;
