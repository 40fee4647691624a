//! Values of enumerated types in Arrow's arrays: which type, and the code of the label, four bytes each, the first of
//! them counting most. So they are ordered as the labels are, and a value tells its label wherever it comes from.

use std::sync::LazyLock;

use onrush::{EnumLabels, EnumType};

use crate::error::{QueryError, Result};

/// Bytes of a value.
pub(crate) const ENUM_BYTES: i32 = 8;

/// What stands for the type of values of which nobody knows the type any more.
pub(crate) fn any_enum() -> EnumType {
    static ANY: LazyLock<EnumType> =
        LazyLock::new(|| EnumType::new(0, "anyenum", &EnumLabels::default()));
    *ANY
}

/// A label as a value. None if the type has no such one.
pub(crate) fn to_bytes(of: EnumType, label: &str) -> Option<[u8; ENUM_BYTES as usize]> {
    let value = u64::from(of.number()) << 32 | u64::from(of.code(label)?);
    Some(value.to_be_bytes())
}

/// The type and the label of a value. None for bytes that are none.
pub(crate) fn of_bytes(bytes: &[u8]) -> Option<(EnumType, &'static str)> {
    let value = u64::from_be_bytes(bytes.try_into().ok()?);
    let of = EnumType::with_number((value >> 32) as u32)?;
    Some((of, of.label(value as u32)?))
}

/// Reads a label.
///
/// # Errors
/// What is none.
pub(crate) fn read(of: EnumType, written: &str) -> Result<&'static str> {
    let label = of.code(written).and_then(|code| of.label(code));
    label.ok_or_else(|| {
        let message =
            format!("invalid input value for enum {}: \"{written}\"", own_name_of(of.name()));
        QueryError::refused("22P02", message)
    })
}

/// The name of a type without its schema.
pub(crate) fn own_name_of(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, own)| own)
}
