//! Promise: keys compare as bytes exactly as their values compare, and no key is a prefix of
//! another; ranges over the first columns of a key follow.

mod common;

use std::cmp::Ordering;

use common::{any_schema, value_of};
use onrush_types::{Schema, Value, prefix_end};
use proptest::prelude::*;

fn schema_and_keys()
-> impl Strategy<Value = (std::sync::Arc<Schema>, Vec<Value<'static>>, Vec<Value<'static>>)> {
    any_schema().prop_flat_map(|schema| {
        let keys = schema.definition().primary_key();
        let key: Vec<_> = keys.iter().map(|&key| value_of(schema.data_type(key))).collect();
        (Just(schema), key.clone(), key)
    })
}

fn compare(schema: &Schema, left: &[Value<'_>], right: &[Value<'_>]) -> Ordering {
    let keys = schema.definition().primary_key();
    let pairs = keys.iter().zip(left.iter().zip(right));
    pairs
        .map(|(&column, (left, right))| schema.data_type(column).compare(left, right))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn byte_order_is_value_order((schema, left, right) in schema_and_keys()) {
        let (mut left_key, mut right_key) = (Vec::new(), Vec::new());
        schema.encode_key(&left, &mut left_key).expect("fits");
        schema.encode_key(&right, &mut right_key).expect("fits");
        prop_assert_eq!(left_key.cmp(&right_key), compare(&schema, &left, &right));
        if left_key != right_key {
            prop_assert!(!left_key.starts_with(&right_key));
            prop_assert!(!right_key.starts_with(&left_key));
        }
    }

    #[test]
    fn keys_come_back((schema, values, _) in schema_and_keys()) {
        let (mut key, mut again) = (Vec::new(), Vec::new());
        schema.encode_key(&values, &mut key).expect("fits");
        let decoded = schema.decode_key(&key).expect("sound");
        prop_assert_eq!(compare(&schema, &decoded, &values), Ordering::Equal);
        schema.encode_key(&decoded, &mut again).expect("fits");
        prop_assert_eq!(key, again);
    }

    #[test]
    fn a_prefix_holds_exactly_its_keys((schema, left, right) in schema_and_keys()) {
        let (mut prefix, mut key) = (Vec::new(), Vec::new());
        schema.encode_key_prefix(&left[..1], &mut prefix).expect("fits");
        schema.encode_key(&right, &mut key).expect("fits");
        let below_end = prefix_end(&prefix).is_none_or(|end| key < end);
        let inside = key >= prefix && below_end;
        prop_assert_eq!(inside, compare(&schema, &left[..1], &right[..1]).is_eq());
    }
}
