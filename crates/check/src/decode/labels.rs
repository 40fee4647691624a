//! The labels of a type in a definition.

use onrush_types::EnumLabels;

use super::definition::{Read, SHORT};
use super::input::Input;

const LABEL_BYTES_MAX: usize = 63;
const LABELS_MAX: u16 = 1000;

/// Reads labels and sees whether they are sound: their codes ascend, and they differ.
pub(super) fn read(input: &mut Input<'_>) -> Read<EnumLabels> {
    let count = input.u16().ok_or(SHORT)?;
    if count > LABELS_MAX {
        return Err("a type has at most 1,000 labels");
    }
    let mut labels: Vec<(u32, Box<str>)> = Vec::new();
    for _ in 0..count {
        let code = input.u32().ok_or(SHORT)?;
        let length = usize::from(input.u16().ok_or(SHORT)?);
        let label = std::str::from_utf8(input.take(length).ok_or(SHORT)?);
        let label = label.map_err(|_| "a label is not UTF-8")?;
        if labels.last().is_some_and(|(below, _)| *below >= code) {
            return Err("the codes of labels do not ascend");
        }
        if length > LABEL_BYTES_MAX || labels.iter().any(|(_, other)| **other == *label) {
            return Err("a label is too long, or there twice");
        }
        labels.push((code, label.into()));
    }
    EnumLabels::from_codes(labels)
}
