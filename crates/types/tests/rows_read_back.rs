//! Promise: a row is stored and logged without loss; what the log leaves out is restored exactly.

mod common;

use common::{encode, expected, same_row, schema_with_rows};
use onrush_types::{DataType, EncodedRow, Value};
use proptest::prelude::*;

proptest! {
    #[test]
    fn values_come_back((schema, rows) in schema_with_rows()) {
        for values in rows {
            let row = encode(&schema, &values);
            let decoded = schema.decode_row(&row.key, &row.row).expect("sound");
            prop_assert!(same_row(&schema, &decoded, &expected(&schema, &values)));
            let view = schema.view(&row.key, &row.row).expect("sound");
            for (column, value) in decoded.iter().enumerate() {
                let alone = view.column(column).expect("sound");
                prop_assert_eq!(
                    schema.data_type(column).compare(&alone, value),
                    std::cmp::Ordering::Equal
                );
            }
        }
    }

    #[test]
    fn char_comes_back_at_its_declared_width((schema, rows) in schema_with_rows()) {
        for values in rows {
            let row = encode(&schema, &values);
            let decoded = schema.decode_row(&row.key, &row.row).expect("sound");
            for (column, value) in decoded.iter().enumerate() {
                if let (DataType::Char(width), Value::Text(text)) = (schema.data_type(column), value)
                {
                    prop_assert_eq!(text.len(), usize::from(width));
                }
            }
        }
    }

    #[test]
    fn the_elided_form_restores_the_row((schema, rows) in schema_with_rows()) {
        let mut restored = vec![0xEE; 3];
        for values in rows {
            let row = encode(&schema, &values);
            schema.expand_elided(&row.elided, false, &mut restored).expect("sound");
            prop_assert_eq!(&restored, &row.row);
        }
    }

    #[test]
    fn what_was_read_encodes_to_the_same_bytes((schema, rows) in schema_with_rows()) {
        for values in rows {
            let row = encode(&schema, &values);
            let decoded = schema.decode_row(&row.key, &row.row).expect("sound");
            let again = encode(&schema, &decoded);
            prop_assert_eq!(&again.key, &row.key);
            prop_assert_eq!(&again.row, &row.row);
            prop_assert_eq!(&again.elided, &row.elided);
        }
    }

    #[test]
    fn an_update_equals_an_insert_of_the_result((schema, rows) in schema_with_rows()) {
        let mut updated = EncodedRow::new();
        for pair in rows.windows(2) {
            let (old, new) = (encode(&schema, &pair[0]), encode(&schema, &pair[1]));
            let assignments: Vec<_> = pair[1].iter().cloned().enumerate().collect();
            let moved = schema.update_row(&old.key, &old.row, &assignments, &mut updated);
            prop_assert_eq!(moved.expect("sound"), old.key != new.key);
            prop_assert_eq!(&updated.key, &new.key);
            prop_assert_eq!(&updated.row, &new.row);
        }
    }
}
