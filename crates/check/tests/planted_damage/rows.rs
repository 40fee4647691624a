//! Damage in single rows.

use onrush_check::Invariant;

use crate::model::{Image, Table};
use crate::{Case, Kind, kind};

pub fn kinds() -> Vec<Kind> {
    let mut kinds = keys();
    kinds.extend(values());
    kinds
}

fn keys() -> Vec<Kind> {
    use Invariant::{EntryHolder, KeyDecodes, KeysAscend, RowInsideFences, RowLsn};
    vec![
        kind("two rows in the wrong order", KeysAscend, |case| {
            row(
                case,
                |_| true,
                |image, at, _| {
                    let other = if at == 0 { 1 } else { at - 1 };
                    image.rows.swap(at, other);
                },
            )
        }),
        kind("a key twice", KeysAscend, |case| {
            row(
                case,
                |_| true,
                |image, at, _| {
                    image.rows[at].1 = image.rows[(at + 1) % image.rows.len()].1.clone();
                },
            )
        }),
        kind("a row above the fences", RowInsideFences, |case| {
            row(case, has_integer_key, |image, _, _| {
                let Some((_, Some(high))) = &image.fences else { return };
                let mut key = high.clone();
                key.resize(8, 0);
                image.rows.last_mut().unwrap().1 = key;
            })
        }),
        kind("a row below the fences", RowInsideFences, |case| {
            row(case, has_integer_key, |image, _, _| {
                if image.fences.as_ref().is_some_and(|fences| !fences.0.is_empty()) {
                    image.rows[0].1 = vec![0; 8];
                }
            })
        }),
        kind("an LSN in the future", RowLsn, |case| {
            let end = case.model.newest_field(40, 8);
            row(case, |_| true, move |image, at, dice| image.rows[at].0 = end + dice % 1_000_000)
        }),
        kind("an LSN of nobody", RowLsn, |case| {
            row(case, |_| true, |image, at, _| image.rows[at].0 = 0)
        }),
        kind("a row that was never committed", RowLsn, |case| {
            row(case, |_| true, |image, at, dice| image.rows[at].0 = (1 << 63) | (dice % 100))
        }),
        kind("a removal among the rows of a leaf", EntryHolder, |case| {
            row(case, |_| true, |image, at, _| image.rows[at].0 |= 1 << 62)
        }),
        kind("a key with a byte too many", KeyDecodes, |case| {
            row(case, |_| true, |image, at, dice| image.rows[at].1.push(dice as u8))
        }),
        kind("a key with a byte too few", KeyDecodes, |case| {
            row(
                case,
                |_| true,
                |image, at, _| {
                    image.rows[at].1.pop();
                },
            )
        }),
        kind("a key whose text is none", KeyDecodes, |case| {
            row(case, is_types, |image, at, dice| image.rows[at].1[(dice % 20) as usize] = 0xFF)
        }),
        kind("a key with minus zero", KeyDecodes, |case| {
            row(case, is_types, |image, at, _| {
                let key = &mut image.rows[at].1;
                let start = key.len() - 8;
                key[start..].copy_from_slice(&0x7FFF_FFFF_FFFF_FFFFu64.to_be_bytes());
            })
        }),
    ]
}

fn values() -> Vec<Kind> {
    use Invariant::{RowDecodes, ValuesFit};
    vec![
        kind("a row of another version", RowDecodes, |case| {
            row(case, |_| true, |image, at, dice| image.rows[at].2[0] ^= 1 + (dice % 255) as u8)
        }),
        kind("a row cut short", RowDecodes, |case| {
            row(
                case,
                |_| true,
                |image, at, dice| {
                    let length = image.rows[at].2.len();
                    image.rows[at].2.truncate((dice % length as u64) as usize);
                },
            )
        }),
        kind("a row with bytes left over", RowDecodes, |case| {
            row(case, |_| true, |image, at, dice| image.rows[at].2.push(dice as u8))
        }),
        kind("a NOT NULL column that is NULL", RowDecodes, |case| {
            // The second column outside the key of the tables that have a key strategy.
            row(case, has_integer_key, |image, at, _| image.rows[at].2[2] |= 2)
        }),
        kind("the NULL of a column that does not exist", RowDecodes, |case| {
            // Each bit of that table's bitmap is of a column.
            row(
                case,
                |table| !is_types(table),
                |image, at, _| {
                    let bitmap_end = if image.rows[at].2.len() > 80 { 3 } else { 2 };
                    let byte = if image.rows[at].2.len() == 67 { 2 } else { bitmap_end };
                    image.rows[at].2[byte] |= 0x80;
                },
            )
        }),
        kind("a boolean of two", ValuesFit, |case| {
            row(case, is_types, |image, at, dice| {
                image.rows[at].2[2] &= !1;
                image.rows[at].2[TYPES_BEGIN] = 2 + (dice % 254) as u8;
            })
        }),
        kind("a char that is no text", ValuesFit, |case| {
            row(case, has_integer_key, |image, at, dice| {
                image.rows[at].2[2] &= !1;
                image.rows[at].2[3 + (dice % 60) as usize] = 0xC0;
            })
        }),
        kind("a decimal with too many digits", ValuesFit, |case| {
            row(case, is_types, |image, at, _| {
                image.rows[at].2[2] &= !(1 << 4);
                let decimal = TYPES_BEGIN + 1 + 4 + 8 + 4;
                image.rows[at].2[decimal..][..8].copy_from_slice(&i64::MAX.to_le_bytes());
            })
        }),
        kind("a NULL column with a value", ValuesFit, |case| {
            row(case, has_integer_key, |image, at, dice| {
                image.rows[at].2[2] |= 1;
                image.rows[at].2[3 + (dice % 60) as usize] = b'x';
            })
        }),
    ]
}

/// Where the first column of a row of every type begins: behind the version and the NULL bitmap of 25 to 32 columns.
const TYPES_BEGIN: usize = 2 + 4;

/// The table of every type.
fn is_types(table: &Table) -> bool {
    table.definition[9..14] == *b"types"
}

/// A table whose key is one bigint.
fn has_integer_key(table: &Table) -> bool {
    !is_types(table) && !String::from_utf8_lossy(&table.definition).contains("uid")
}

/// Changes one row of an image of a wanted table.
fn row(
    case: &mut Case,
    wanted: fn(&Table) -> bool,
    change: impl FnOnce(&mut Image, usize, u64),
) -> bool {
    let place = case.leaf_of(wanted);
    let slot = case.slot(place);
    let mut image = case.model.image(slot);
    let at = case.random.below(image.rows.len());
    let before = image.rows.clone();
    change(&mut image, at, case.random.next());
    let changes = image.rows != before;
    case.model.put_image(&image);
    case.model.save();
    changes
}
