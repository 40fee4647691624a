//! Damage in what an image says about itself.

use onrush_check::Invariant;

use crate::model::NONE;
use crate::{Case, Kind, kind};

pub fn kinds() -> Vec<Kind> {
    use Invariant::{ImageAddsUp, ImageNamed, ImagePlace, LeafInsideImage};
    vec![
        kind("an image of another object", ImagePlace, |case| {
            let object = 1 + case.random.next() as u32 % 1000;
            page(case, |page, _| {
                let old = u32::from_le_bytes(page[40..44].try_into().unwrap());
                page[40..44].copy_from_slice(&(old ^ object).to_le_bytes());
            })
        }),
        kind("an image of another database", ImagePlace, |case| {
            let at = 8 + case.random.below(16);
            page(case, |page, _| page[at] ^= 0x10)
        }),
        kind("swapped images that name their old slots", ImagePlace, |case| {
            let (one, other) = neighbours(case);
            let (left, right) = (case.model.page(one), case.model.page(other));
            case.model.write_image(one, right);
            case.model.write_image(other, left);
            case.model.save();
            true
        }),
        kind("swapped images that name their new slots", LeafInsideImage, |case| {
            let (one, other) = neighbours(case);
            let (mut left, mut right) = (case.model.page(one), case.model.page(other));
            left[24..32].copy_from_slice(&other.to_le_bytes());
            right[24..32].copy_from_slice(&one.to_le_bytes());
            case.model.write_image(one, right);
            case.model.write_image(other, left);
            case.model.save();
            true
        }),
        kind("a stale image", ImageNamed, |case| {
            // A whole image of the same leaf, as it was before some of its rows came.
            let place = case.leaf();
            let slot = case.slot(place);
            let mut image = case.model.image(slot);
            image.rows.truncate(1 + case.random.below(image.rows.len() - 1));
            let page = case.model.image_page(&image);
            case.model.write_page(slot, page);
            true
        }),
        kind("an image with a row too few", ImageAddsUp, |case| {
            page(case, |page, dice| {
                let count = u32::from_le_bytes(page[32..36].try_into().unwrap());
                let wrong = dice as u32 % count;
                page[32..36].copy_from_slice(&wrong.to_le_bytes());
            })
        }),
        kind("an image with a row too many", ImageAddsUp, |case| {
            page(case, |page, dice| {
                let count = u32::from_le_bytes(page[32..36].try_into().unwrap());
                let wrong = count + 1 + dice as u32 % 1000;
                page[32..36].copy_from_slice(&wrong.to_le_bytes());
            })
        }),
        kind("an image that says it is longer than it can be", ImageAddsUp, |case| {
            page(case, |page, dice| {
                page[36..40].copy_from_slice(&(16_321 + dice as u32 % 1_000_000).to_le_bytes());
            })
        }),
        kind("bytes behind the fences of an image", ImageAddsUp, |case| {
            page(case, |page, dice| page[16_383 - (dice % 20) as usize] = 1)
        }),
        kind("fences that make no sense", ImageAddsUp, |case| {
            page(case, |page, dice| page[44] = 3 + (dice % 250) as u8)
        }),
        kind("an entry whose key goes on beyond the entries", ImageAddsUp, |case| {
            page(case, |page, _| page[72..74].copy_from_slice(&[0xFF, 0xFF]))
        }),
        kind("an image made for another range", LeafInsideImage, |case| {
            let place = case.leaf();
            let slot = case.slot(place);
            let mut image = case.model.image(slot);
            let mut low = image.rows[0].1.clone();
            low.push(1);
            image.fences = Some((low, image.fences.clone().and_then(|fences| fences.1)));
            case.model.put_image(&image);
            case.model.save();
            true
        }),
    ]
}

/// Changes the page of an image.
fn page(case: &mut Case, change: impl FnOnce(&mut [u8], u64)) -> bool {
    let place = case.leaf();
    let slot = case.slot(place);
    let mut page = case.model.page(slot);
    change(&mut page, case.random.next());
    case.model.write_image(slot, page);
    case.model.save();
    true
}

/// The slots of two images of one table.
fn neighbours(case: &mut Case) -> (u64, u64) {
    loop {
        let table = case.wide_table();
        let leaves = &case.model.tables[table].segments[0].leaves;
        let at = case.random.below(leaves.len() - 1);
        let (one, other) = (leaves[at].slot, leaves[at + 1].slot);
        if one != other && one != NONE && other != NONE {
            return (one, other);
        }
    }
}
