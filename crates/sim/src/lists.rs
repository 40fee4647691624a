//! Short workloads, all of them: every list of three actions of twelve, cut at every boundary in
//! every mode. Short and exhaustive finds what long and random leaves to luck.

use crate::cuts::{self, Budget, guarded};
use crate::plan::{Action, Plan};
use crate::summary::Summary;
use crate::world;
use onrush_oracle::Checked;

/// What a list is made of.
pub const ACTIONS: [Action; 12] = [
    Action::Insert,
    Action::InsertToken,
    Action::Fill,
    Action::Update,
    Action::Delete,
    Action::Transaction,
    Action::InsertMany,
    Action::Truncate,
    Action::DropAndCreate,
    Action::Barrier,
    Action::Checkpoint,
    Action::Reopen,
];

/// Actions of a list.
const LENGTH: u32 = 3;

/// How many lists there are.
pub const LISTS: u64 = (ACTIONS.len() as u64).pow(LENGTH);

/// The actions of a list, 0 to [`LISTS`].
pub fn list(number: u64) -> Vec<Action> {
    let base = ACTIONS.len() as u64;
    (0..LENGTH).map(|place| ACTIONS[(number / base.pow(place) % base) as usize]).collect()
}

/// Does what one list says, on a small database that a checkpoint knows, and cuts the power at each
/// boundary from there on, in each mode.
///
/// # Errors
/// The first violation.
pub fn cut_list(number: u64, summary: &mut Summary) -> Checked<()> {
    cut_actions(number, &list(number), summary)
}

/// As [`cut_list`], with actions of the caller's. `number` decides everything else.
///
/// # Errors
/// The first violation.
pub fn cut_actions(number: u64, actions: &[Action], summary: &mut Summary) -> Checked<()> {
    guarded(&format!("list {number}, {actions:?}"), || {
        let budget = Budget { every_boundary: true, every_mode: true, ..Budget::default() };
        let work = |world: &_| world::act_all(world, actions);
        cuts::cut_from_checkpoint(Plan::of_list(number), work, budget, summary)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_list_comes_twice() {
        let mut lists: Vec<String> =
            (0..LISTS).map(|number| format!("{:?}", list(number))).collect();
        lists.sort();
        lists.dedup();
        assert_eq!(lists.len(), 1728);
    }
}
