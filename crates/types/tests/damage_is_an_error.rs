//! Promise: no bytes, however damaged, make a decoder panic.

mod common;

use common::{encode, schema_with_rows};
use onrush_types::{TableDefinition, TypeError};
use proptest::prelude::*;

/// Cuts or changes some bytes.
fn damaged(bytes: &[u8], at: prop::sample::Index, change: Option<u8>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.is_empty() {
        return bytes;
    }
    let at = at.index(bytes.len());
    match change {
        Some(change) => bytes[at] ^= change,
        None => bytes.truncate(at),
    }
    bytes
}

fn is_ok_or_damage<T>(result: Result<T, TypeError>) -> bool {
    result.is_ok() || result.is_err_and(|error| error.is_damage())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn damaged_rows_are_reported(
        (schema, rows) in schema_with_rows(),
        at in any::<prop::sample::Index>(),
        change in prop::option::of(1u8..),
    ) {
        let row = encode(&schema, &rows[0]);
        let key = damaged(&row.key, at, change);
        let bytes = damaged(&row.row, at, change);
        let elided = damaged(&row.elided, at, change);
        prop_assert!(is_ok_or_damage(schema.decode_row(&key, &bytes)));
        prop_assert!(is_ok_or_damage(schema.decode_key(&key)));
        prop_assert!(is_ok_or_damage(schema.expand_elided(&elided, false, &mut Vec::new())));
        prop_assert!(change.is_some() || schema.decode_row(&row.key, &bytes).is_err());
    }

    #[test]
    fn random_bytes_are_reported(
        (schema, _) in schema_with_rows(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        prop_assert!(is_ok_or_damage(schema.decode_row(&bytes, &bytes)));
        prop_assert!(is_ok_or_damage(schema.expand_elided(&bytes, false, &mut Vec::new())));
    }

    #[test]
    fn damaged_definitions_do_not_panic(
        (schema, _) in schema_with_rows(),
        at in any::<prop::sample::Index>(),
        change in prop::option::of(1u8..),
    ) {
        let bytes = damaged(&schema.definition().to_bytes(), at, change);
        let read = TableDefinition::from_bytes(&bytes);
        prop_assert!(change.is_some() || read.is_err());
    }
}
