//! Whatever rows there are, whatever indexes and whatever is asked: a table with indexes gives the rows that the same
//! table gives without.

#![allow(clippy::unwrap_used)]

mod common;

use common::Fixture;
use onrush::expression::{Expression, Function};
use onrush::{
    ColumnDefinition, DataType, Database, Error, KeyOrder, NewIndex, NewIndexed, Row,
    RowExpression, Snapshot, Table, TableDefinition, Transaction, Value,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The columns beside `id`: their names and types.
const COLUMNS: [(&str, DataType); 6] = [
    ("small", DataType::Int32),
    ("label", DataType::Text),
    ("code", DataType::Char(3)),
    ("weight", DataType::Float64),
    ("is_on", DataType::Boolean),
    ("price", DataType::Decimal { precision: 6, scale: 2 }),
];

const LABELS: [&str; 8] = ["", "\0", "\0\u{1}", "a", "a\0", "a\0b", "a\u{1}", "\u{e9}"];
const CODES: [&str; 5] = ["", "a", "a  ", "ab", "b"];
const WEIGHTS: [f64; 6] = [-2.5, -0.0, 0.0, 1.0, 7.25, f64::NAN];
const PRICES: [&str; 5] = ["-1.50", "0.00", "0.01", "1", "99.90"];

#[derive(Clone, Debug)]
struct Case {
    indexes: Vec<NewIndex>,
    committed: Vec<Change>,
    own: Vec<Change>,
    queries: Vec<String>,
}

#[derive(Clone, Debug)]
enum Change {
    Put(i64, Vec<Value<'static>>),
    Delete(i64),
}

fn definition(name: &str) -> TableDefinition {
    let id = ColumnDefinition::new("id", DataType::Int64).not_null();
    let table = TableDefinition::builder(name).column(id);
    let columns = COLUMNS.iter().map(|(name, data_type)| ColumnDefinition::new(*name, *data_type));
    columns.fold(table, onrush::TableBuilder::column).primary_key(["id"]).build().unwrap()
}

/// A value of a column, or NULL.
fn value(column: usize) -> BoxedStrategy<Value<'static>> {
    let value = match column {
        0 => (-5..5i32).prop_map(Value::Int32).boxed(),
        1 => select(&LABELS[..]).prop_map(Value::from).boxed(),
        2 => select(&CODES[..]).prop_map(Value::from).boxed(),
        3 => select(&WEIGHTS[..]).prop_map(Value::from).boxed(),
        4 => any::<bool>().prop_map(Value::Boolean).boxed(),
        _ => select(&PRICES[..]).prop_map(|price| Value::Decimal(price.parse().unwrap())).boxed(),
    };
    prop_oneof![1 => Just(Value::Null), 4 => value].boxed()
}

fn change() -> impl Strategy<Value = Change> {
    let values: Vec<_> = (0..COLUMNS.len()).map(value).collect();
    prop_oneof![
        6 => (0..60i64, values).prop_map(|(id, values)| Change::Put(id, values)),
        1 => (0..60i64).prop_map(Change::Delete),
    ]
}

/// A constant that a column is compared with.
fn constant(column: usize) -> BoxedStrategy<String> {
    let quoted = |text: &str| format!("'{text}'");
    match column {
        0 => (-6..6i32).prop_map(|number| number.to_string()).boxed(),
        1 => select(&LABELS[..]).prop_map(quoted).boxed(),
        2 => select(&CODES[..]).prop_map(quoted).boxed(),
        3 => select(&["-2.5", "0", "-1e0", "1.0", "100.5"][..]).prop_map(str::to_owned).boxed(),
        4 => any::<bool>().prop_map(|is_on| is_on.to_string()).boxed(),
        _ => select(&["-1.50", "0", "0.015", "1.00", "7", "9999.5"][..])
            .prop_map(str::to_owned)
            .boxed(),
    }
}

/// A condition on one column.
fn comparison() -> impl Strategy<Value = String> {
    let of_column = |column: usize| {
        let name = COLUMNS[column].0;
        let compared = |operator: &'static str| {
            constant(column).prop_map(move |value| format!("{name} {operator} {value}"))
        };
        prop_oneof![
            4 => compared("="),
            1 => compared("<>"),
            1 => compared("<"),
            1 => compared("<="),
            1 => compared(">"),
            1 => compared(">="),
            2 => (constant(column), constant(column))
                .prop_map(move |(low, high)| format!("{name} BETWEEN {low} AND {high}")),
            2 => proptest::collection::vec(constant(column), 1..4)
                .prop_map(move |values| format!("{name} IN ({})", values.join(", "))),
            1 => Just(format!("{name} IS NULL")),
            1 => Just(format!("{name} IS NOT NULL")),
        ]
    };
    let of_key = (-5..65i64, select(&["=", "<", ">="][..]))
        .prop_map(|(id, operator)| format!("id {operator} {id}"));
    prop_oneof![6 => (0..COLUMNS.len()).prop_flat_map(of_column), 1 => of_key]
}

fn condition() -> impl Strategy<Value = String> {
    let leaf = comparison().boxed();
    leaf.prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            5 => (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} AND {right})")),
            1 => (inner.clone(), inner).prop_map(|(left, right)| format!("({left} OR {right})")),
        ]
    })
}

fn query() -> impl Strategy<Value = String> {
    let few = ["id", "id, small", "code, label", "is_on", "price, small", "weight, id", "count(*)"];
    let columns = prop_oneof![1 => Just("*"), 3 => select(few.to_vec())];
    let sorted = (select(&COLUMNS[..]), any::<(bool, bool)>(), 0..20u8).prop_map(
        |((name, _), (is_descending, nulls_first), limit)| {
            let order = if is_descending { "DESC" } else { "ASC" };
            let nulls = if nulls_first { "FIRST" } else { "LAST" };
            (format!("{name} {order} NULLS {nulls}"), order, limit)
        },
    );
    (columns, condition(), proptest::option::of(sorted)).prop_map(|(columns, condition, sorted)| {
        match sorted {
            None => format!("SELECT {columns} FROM t WHERE {condition}"),
            // Rows that are alike go by their key, so that which are the first is known.
            Some((sorted, order, limit)) => format!(
                "SELECT {columns} FROM (SELECT * FROM t WHERE {condition} \
                 ORDER BY {sorted}, id {order} LIMIT {limit}) AS first"
            ),
        }
    })
}

fn index() -> impl Strategy<Value = NewIndex> {
    let column = (any::<Index>(), any::<(bool, bool)>());
    let columns = proptest::collection::vec(column, 1..=2);
    let included = proptest::sample::subsequence(COLUMNS.to_vec(), 0..=COLUMNS.len());
    let kind = select(vec![Kind::OfAll, Kind::OfAll, Kind::OfSome, Kind::Computed]);
    (columns, included, any::<bool>(), kind).prop_map(|(columns, included, is_unique, kind)| {
        let mut index = NewIndex::new("", Vec::<String>::new());
        for (column, (descending, nulls_first)) in columns {
            let name = column.get(&COLUMNS).0.to_owned();
            let column = NewIndexed::Column(name);
            if index.columns.iter().all(|(other, _)| *other != column) {
                index.columns.push((column, KeyOrder { descending, nulls_first }));
            }
        }
        let is_other = |name: &String| {
            index.columns.iter().all(|(other, _)| *other != NewIndexed::Column(name.clone()))
        };
        index.included =
            included.iter().map(|(name, _)| (*name).to_owned()).filter(is_other).collect();
        let table = definition("indexed");
        let index = match kind {
            Kind::OfAll => index,
            Kind::OfSome => {
                let some = Expression::column("small").greater_than(0i32);
                index.only_where(RowExpression::condition(&some, &table).unwrap())
            }
            Kind::Computed => {
                let lower = Expression::call(Function::Lower, [Expression::column("label")]);
                index.expression(RowExpression::new(&lower, &table).unwrap())
            }
        };
        if is_unique { index.unique() } else { index }
    })
}

/// What an index has entries of.
#[derive(Clone, Copy, Debug)]
enum Kind {
    OfAll,
    OfSome,
    /// With an expression behind its columns.
    Computed,
}

fn case() -> impl Strategy<Value = Case> {
    (
        proptest::collection::vec(index(), 3..8),
        proptest::collection::vec(change(), 0..80),
        proptest::collection::vec(change(), 0..20),
        proptest::collection::vec(query(), 10),
    )
        .prop_map(|(indexes, committed, own, queries)| Case {
            indexes,
            committed,
            own,
            queries,
        })
}

/// Makes those indexes that there can be: a unique one may be refused by the rows.
fn make_indexes(db: &Database, indexes: &[NewIndex]) -> Table {
    for (number, index) in indexes.iter().enumerate() {
        let index = NewIndex { name: format!("index_{number}"), ..index.clone() };
        match db.create_index("indexed", &index) {
            Ok(_) | Err(Error::UniqueViolated { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    db.table("indexed").unwrap()
}

/// Makes a change to both tables, if the indexes of one do not refuse it.
fn change_both(transaction: &mut Transaction<'_>, tables: [&Table; 2], change: &Change) {
    let [indexed, plain] = tables;
    match change {
        Change::Delete(id) => {
            for table in tables {
                transaction.delete(table, &[(*id).into()]).unwrap();
            }
        }
        Change::Put(id, values) => {
            let mut row: Vec<Value<'static>> = vec![(*id).into()];
            row.extend(values.iter().cloned());
            match transaction.upsert(indexed, &row) {
                Ok(()) => transaction.upsert(plain, &row).unwrap(),
                Err(Error::UniqueViolated { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn check(fixture: &Fixture, view: &Snapshot, [indexed, plain]: [&Table; 2], sql: &str) {
    let shown = |table: &Table| {
        let mut rows: Vec<String> = fixture
            .rows(view.same(), table, sql)
            .iter()
            .map(|row: &Row| format!("{row:?}"))
            .collect();
        rows.sort_unstable();
        rows
    };
    let (found, expected) = (shown(indexed), shown(plain));
    assert_eq!(found, expected, "{sql}\n{}", fixture.plan(view.same(), indexed, sql));
}

fn run(case: &Case) {
    let fixture = Fixture::new();
    let plain = fixture.db.create_table(definition("plain")).unwrap();
    let indexed = fixture.db.create_table(definition("indexed")).unwrap();
    let mut session = fixture.db.session().unwrap();
    let (early, late) = case.committed.split_at(case.committed.len() / 2);
    let commit = |session: &mut onrush::Session, indexed: &Table, changes: &[Change]| {
        let mut transaction = session.begin().unwrap();
        for change in changes {
            change_both(&mut transaction, [indexed, &plain], change);
        }
        transaction.commit().unwrap();
    };
    commit(&mut session, &indexed, early);
    let indexed = make_indexes(&fixture.db, &case.indexes);
    commit(&mut session, &indexed, late);
    let mut transaction = session.begin().unwrap();
    let committed = transaction.snapshot();
    for change in &case.own {
        change_both(&mut transaction, [&indexed, &plain], change);
    }
    let own = transaction.snapshot();
    for sql in &case.queries {
        check(&fixture, &committed, [&indexed, &plain], sql);
        check(&fixture, &own, [&indexed, &plain], sql);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn an_index_changes_no_answer(case in case()) {
        run(&case);
    }
}
