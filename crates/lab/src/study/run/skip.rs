//! Cells that cannot be run, each with its reason, found before the first one runs.

use crate::machine;
use crate::study::file::Study;
use crate::study::matrix::Cell;
use crate::study::setting::Setting;
use crate::target::{Target, instances};

/// Where the runner finds its targets: [`crate::target::find`], or planted ones in tests.
pub type FindTarget<'f> = &'f dyn Fn(&str) -> Result<Box<dyn Target>, String>;

/// Why a cell is not run; None if it is. A permission that is missing is left out of the settings
/// where the study goes on without it.
pub(super) fn reason(study: &Study, cell: &mut Cell, find: FindTarget<'_>) -> Option<String> {
    if let Some(reason) = &cell.skip {
        return Some(reason.clone());
    }
    let target = match find(&cell.target) {
        Ok(target) => target,
        Err(reason) => return Some(reason),
    };
    let impossible = || target.impossible(&cell.settings);
    let reason = target.missing().or_else(impossible);
    if let Some(reason) = reason.or_else(|| instances::impossible(&cell.settings)) {
        return Some(reason);
    }
    for (setting, without, missing) in
        [(Setting::Pinning, "none", pinning(cell)), (Setting::LargePages, "try", large_pages(cell))]
    {
        match missing {
            Some(_) if study.without_permission => cell.settings.set(setting, without.into()),
            Some(reason) => return Some(reason),
            None => {}
        }
    }
    None
}

fn pinning(cell: &Cell) -> Option<String> {
    let wants = !cell.settings.is(Setting::Pinning, "none");
    wants.then(|| machine::may_pin().err()).flatten().map(|error| error.to_string())
}

fn large_pages(cell: &Cell) -> Option<String> {
    let bytes = cell.settings.number(Setting::CacheBytes);
    let wants = cell.settings.is(Setting::LargePages, "require");
    let free = machine::large_page_bytes_free();
    (wants && free < bytes).then(|| {
        format!(
            "needs {} of large pages, and {} are reserved and free: as root, write the number of \
             pages to /proc/sys/vm/nr_hugepages; or set large_pages = \"try\"",
            crate::units::bytes(bytes),
            crate::units::bytes(free)
        )
    })
}
