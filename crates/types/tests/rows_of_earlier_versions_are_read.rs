//! Whatever is added, dropped and renamed: a row of any version is read as one of the newest, from its
//! bytes and from its elided form, also after the definition went through its own bytes.

use std::collections::HashMap;
use std::sync::Arc;

use onrush_types::{
    ColumnDefinition, DataType, DefaultValue, EncodedRow, Schema, TableChange, TableDefinition,
    TypeError, Value,
};
use proptest::prelude::*;

/// What happens to the table next; numbers choose columns.
#[derive(Debug, Clone)]
enum Step {
    AddNumber(Option<i32>),
    AddText(Option<String>),
    Drop(usize),
    Rename(usize),
    RenameTable,
    Set(usize, Option<i32>),
    Insert(i32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        proptest::option::of(any::<i32>()).prop_map(Step::AddNumber),
        proptest::option::of("[a-z]{0,12}").prop_map(Step::AddText),
        (0usize..8).prop_map(Step::Drop),
        (0usize..8).prop_map(Step::Rename),
        Just(Step::RenameTable),
        (0usize..8, proptest::option::of(any::<i32>()))
            .prop_map(|(at, default)| Step::Set(at, default)),
        any::<i32>().prop_map(Step::Insert),
        any::<i32>().prop_map(Step::Insert),
    ]
}

fn first() -> TableDefinition {
    TableDefinition::builder("t")
        .column(ColumnDefinition::new("a", DataType::Int32).default_value(1i32))
        .column(ColumnDefinition::new("id", DataType::Int64).not_null())
        .column(ColumnDefinition::new("b", DataType::Text))
        .primary_key(["id"])
        .build()
        .expect("a sound definition")
}

/// The next definition, if the step changes it.
fn change(definition: &TableDefinition, step: &Step, fresh: usize) -> Option<TableChange> {
    let named = |at: usize| definition.columns()[at % definition.columns().len()].name.clone();
    Some(match step {
        Step::AddNumber(default) => {
            let column = ColumnDefinition::new(format!("c{fresh}"), DataType::Int32);
            TableChange::AddColumn(match default {
                Some(value) => column.not_null().default_value(*value),
                None => column,
            })
        }
        Step::AddText(default) => {
            let column = ColumnDefinition::new(format!("c{fresh}"), DataType::Text);
            TableChange::AddColumn(match default {
                Some(value) => column.default_value(value.clone()),
                None => column,
            })
        }
        Step::Drop(at) if named(*at) != "id" => TableChange::DropColumn { name: named(*at) },
        Step::Rename(at) if named(*at) != "id" => {
            TableChange::RenameColumn { from: named(*at), to: format!("c{fresh}") }
        }
        Step::Set(at, default) => {
            let column = &definition.columns()[at % definition.columns().len()];
            let is_key = column.name == "id";
            // NOT NULL goes, and does not come: not every row has a value.
            let nullable = !is_key && (column.nullable || at % 2 == 0);
            let default = match (default, column.data_type) {
                (None, _) if nullable || is_key => DefaultValue::None,
                (value, DataType::Text) => DefaultValue::Constant(format!("{value:?}").into()),
                (value, _) => DefaultValue::Constant(value.unwrap_or(0).into()),
            };
            TableChange::SetColumn { name: column.name.clone(), nullable, default }
        }
        Step::RenameTable => TableChange::Rename { to: format!("t{fresh}") },
        _ => return None,
    })
}

/// A row: what each column number holds, and its bytes.
struct Stored {
    values: HashMap<usize, Value<'static>>,
    names_version: bool,
    encoded: EncodedRow,
}

fn insert(schema: &Schema, id: i64, number: i32) -> Stored {
    let columns = schema.definition().columns();
    let value = |at: usize| match (columns[at].name.as_str(), columns[at].data_type) {
        ("id", _) => Value::Int64(id),
        (_, DataType::Int32) if number % 2 == 0 => Value::Int32(number),
        (_, DataType::Text) if number % 3 == 0 => Value::from(format!("text {number}")),
        _ => Value::Default,
    };
    let given: Vec<Value<'static>> = (0..columns.len()).map(value).collect();
    let mut encoded = EncodedRow::new();
    let none = |_: usize, _: &_| -> Result<Value<'static>, TypeError> { unreachable!() };
    schema.encode_row(&given, none, &mut encoded).expect("the values fit");
    let decoded = schema.decode_row(&encoded.key, &encoded.row).expect("its own row");
    let number_of = |at: usize| schema.definition().column_number(at);
    let values = decoded.into_iter().enumerate().map(|(at, value)| (number_of(at), value));
    let names_version = schema.elided_names_version();
    Stored { values: values.collect(), names_version, encoded }
}

proptest! {
    #[test]
    fn a_row_of_any_version_is_read_as_one_of_the_newest(
        steps in proptest::collection::vec(step(), 1..24),
    ) {
        let mut schema = Schema::new(Arc::new(first())).expect("sound");
        let mut rows: Vec<Stored> = vec![insert(&schema, -1, 6)];
        for (fresh, step) in steps.iter().enumerate() {
            if let Step::Insert(number) = step {
                rows.push(insert(&schema, fresh as i64, *number));
                continue;
            }
            let Some(change) = change(schema.definition(), step, fresh) else { continue };
            let before = Arc::clone(schema.definition());
            let altered = before.altered(&change, 0).expect("a change that can be made");
            prop_assert_eq!(altered.version(), before.version() + 1);
            prop_assert_eq!(&TableDefinition::from_bytes(&altered.to_bytes()), &Ok(altered.clone()));
            if let TableChange::AddColumn(column) = &change {
                let number = altered.column_number(altered.columns().len() - 1);
                for row in &mut rows {
                    let missing = match &column.default {
                        DefaultValue::Constant(value) => value.clone(),
                        _ => Value::Null,
                    };
                    row.values.insert(number, missing);
                }
            }
            schema = Schema::new(Arc::new(altered)).expect("sound");
        }
        for Stored { values, names_version, encoded } in &rows {
            let view = schema.view(&encoded.key, &encoded.row).expect("of a version there was");
            let read = view.values().expect("sound");
            for (at, value) in read.iter().enumerate() {
                prop_assert_eq!(value, &values[&schema.definition().column_number(at)]);
                prop_assert_eq!(&view.column(at).expect("sound"), value);
            }
            let mut restored = Vec::new();
            let expanded = schema.expand_elided(&encoded.elided, *names_version, &mut restored);
            prop_assert_eq!(expanded, Ok(()));
            prop_assert_eq!(&restored, &encoded.row);
            // Changed, it is one of today with the same values.
            let mut updated = EncodedRow::new();
            prop_assert_eq!(schema.update_row(&encoded.key, &encoded.row, &[], &mut updated), Ok(false));
            prop_assert_eq!(Schema::row_version(&updated.row), Some(schema.version()));
            let again = schema.decode_row(&updated.key, &updated.row).expect("its own row");
            prop_assert_eq!(again, read.into_iter().map(Value::into_owned).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_damaged_history_is_an_error(at in 0usize..400, flip in 1u8..) {
        let mut definition = first();
        for (fresh, step) in [Step::AddNumber(Some(1)), Step::Drop(0), Step::AddText(None)].iter().enumerate() {
            let change = change(&definition, step, fresh).expect("a change");
            definition = definition.altered(&change, 0).expect("can be made");
        }
        let mut bytes = definition.to_bytes();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        // Read or refused, without a panic; what is read can be written again.
        if let Ok(read) = TableDefinition::from_bytes(&bytes) {
            prop_assert_eq!(TableDefinition::from_bytes(&read.to_bytes()), Ok(read));
        }
    }
}

#[test]
fn versions_and_columns_run_out_with_an_error() {
    let column =
        |name: String| TableChange::AddColumn(ColumnDefinition::new(name, DataType::Int32));
    let mut definition = first();
    let mut added = 0;
    let error = loop {
        // Dropped columns count.
        let drop = TableChange::DropColumn { name: format!("c{added}") };
        match definition.altered(&column(format!("c{added}")), 0) {
            Ok(next) => definition = next.altered(&drop, 0).expect("was added"),
            Err(error) => break error,
        }
        added += 1;
    };
    assert!(matches!(error, TypeError::AlteredTooOften { .. }), "{error}");
    assert_eq!(added + 3, 1024);
}
