//! Labels of a type as bytes.

use super::{Input, push_short, push_u16};
use crate::EnumLabels;
use crate::row::field;

pub(super) fn push(labels: &EnumLabels, out: &mut Vec<u8>) {
    push_u16(labels.iter().len(), out);
    for (code, label) in labels.iter() {
        out.extend_from_slice(&code.to_le_bytes());
        push_short(label.as_bytes(), out);
    }
}

pub(super) fn read(input: &mut Input<'_>) -> Result<EnumLabels, &'static str> {
    let mut labels = Vec::new();
    for _ in 0..input.u16()? {
        let code = input.u32()?;
        labels.push((code, field::utf8(input.short()?)?.into()));
    }
    EnumLabels::from_codes(labels)
}
