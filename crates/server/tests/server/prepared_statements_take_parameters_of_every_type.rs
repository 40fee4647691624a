//! The extended protocol: parameters in binary and in text, rows in binary, portals in pieces.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::{World, code, query};
use futures_util::future::try_join_all;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};

#[tokio::test(flavor = "multi_thread")]
async fn binary_parameters_come_back_as_they_went() {
    let world = World::new();
    let client = world.client().await;
    query(
        &client,
        "CREATE TABLE t (id bigint PRIMARY KEY, b boolean, s smallint, i int, r real, d double \
         precision, c char(5), v varchar(20), x text, y bytea, u uuid, at timestamptz, plain timestamp)",
    )
    .await;
    let insert = client
        .prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)")
        .await
        .unwrap();
    assert_eq!(insert.params()[0], Type::INT8);
    assert_eq!(insert.params()[10], Type::UUID);
    let at: SystemTime = UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
    let id = uuid(7);
    let none: Option<&str> = None;
    let inserted = client
        .execute(
            &insert,
            &[
                &1i64,
                &true,
                &-2i16,
                &3i32,
                &0.5f32,
                &-1e100f64,
                &"ab",
                &none,
                &"täxt",
                &&[0u8, 255][..],
                &id,
                &at,
                &at,
            ],
        )
        .await
        .unwrap();
    assert_eq!(inserted, 1);
    let row = client.query_one("SELECT * FROM t WHERE id = $1", &[&1i64]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
    assert!(row.get::<_, bool>(1));
    assert_eq!((row.get::<_, i16>(2), row.get::<_, i32>(3)), (-2, 3));
    assert_eq!((row.get::<_, f32>(4), row.get::<_, f64>(5)), (0.5, -1e100));
    assert_eq!((row.get::<_, &str>(6), row.get::<_, Option<&str>>(7)), ("ab   ", None));
    assert_eq!((row.get::<_, &str>(8), row.get::<_, &[u8]>(9)), ("täxt", &[0u8, 255][..]));
    assert_eq!(row.get::<_, onrush::Uuid>(10), id);
    assert_eq!((row.get::<_, SystemTime>(11), row.get::<_, SystemTime>(12)), (at, at));
}

/// A value as it is on the wire.
#[derive(Debug, PartialEq)]
struct Raw(Vec<u8>);

impl ToSql for Raw {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The version (2 for 4, 3 for 6), the bits of the network, whether it is a network, and the bytes behind their number.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_go_in_binary_as_postgresql_writes_them() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, h inet, n cidr, m macaddr)").await;
    let host = vec![2, 24, 0, 4, 10, 1, 2, 3];
    let network = [&[3, 32, 1, 16, 0x20, 1, 0x0d, 0xb8][..], &[0; 12]].concat();
    let card = vec![8, 0, 0x2b, 1, 2, 3];
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4)").await.unwrap();
    assert_eq!(insert.params()[1..], [Type::INET, Type::CIDR, Type::MACADDR]);
    let values = [Raw(host.clone()), Raw(network.clone()), Raw(card.clone())];
    let given: [&(dyn ToSql + Sync); 4] = [&1i32, &values[0], &values[1], &values[2]];
    client.execute(&insert, &given).await.unwrap();
    let row = client.query_one("SELECT h, n, m FROM t WHERE h = $1", &[&values[0]]).await.unwrap();
    for (at, wanted) in [host, network, card].into_iter().enumerate() {
        assert_eq!(row.get::<_, Raw>(at).0, wanted);
    }
    assert_eq!(
        query(&client, "SELECT h, n, m FROM t").await,
        ["10.1.2.3/24|2001:db8::/32|08:00:2b:01:02:03"]
    );
    for (at, bad) in [
        (1, vec![4, 24, 0, 4, 10, 1, 2, 3]),
        (1, vec![2, 33, 0, 4, 10, 1, 2, 3]),
        (1, vec![2, 24, 0, 4, 10, 1, 2]),
        (1, vec![]),
        (2, vec![2, 8, 1, 4, 10, 1, 2, 3]),
        (3, vec![1, 2]),
    ] {
        let mut given: [&(dyn ToSql + Sync); 4] = [&2i32, &values[0], &values[1], &values[2]];
        let bad = Raw(bad);
        given[at] = &bad;
        let refused = client.execute(&insert, &given).await.unwrap_err();
        assert_eq!(code(&refused), "22P03", "{:?}", bad.0);
    }
}

/// The number of the fields, and for each the number of its type, its length and its bytes.
#[tokio::test(flavor = "multi_thread")]
async fn records_go_in_binary_as_postgresql_writes_them() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TYPE place AS (street text, number int)").await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, at place)").await;
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2)").await.unwrap();
    let Kind::Composite(fields) = insert.params()[1].kind() else { panic!("no composite type") };
    let fields: Vec<(&str, &Type)> = fields.iter().map(|own| (own.name(), own.type_())).collect();
    assert_eq!(fields, [("street", &Type::TEXT), ("number", &Type::INT4)]);
    let record = |street: Option<&[u8]>, number: i32| {
        let mut bytes = [2i32, 25].map(i32::to_be_bytes).concat();
        let length = street.map_or(-1, |street| i32::try_from(street.len()).unwrap());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(street.unwrap_or_default());
        bytes.extend_from_slice(&[23i32, 4, number].map(i32::to_be_bytes).concat());
        bytes
    };
    for (id, street) in [(1i32, Some(&b"Long Lane"[..])), (2, None)] {
        client.execute(&insert, &[&id, &Raw(record(street, 7))]).await.unwrap();
        let row = client.query_one("SELECT at FROM t WHERE id = $1", &[&id]).await.unwrap();
        assert_eq!(row.get::<_, Raw>(0).0, record(street, 7));
        let same =
            client.query("SELECT id FROM t WHERE at = $1::place", &[&Raw(record(street, 7))]).await;
        assert_eq!(same.unwrap().len(), 1);
    }
    assert_eq!(query(&client, "SELECT at FROM t ORDER BY id").await, ["(\"Long Lane\",7)", "(,7)"]);
    let row = client.query_one("SELECT ROW(NULL::text, 7)", &[]).await.unwrap();
    assert_eq!(row.columns()[0].type_(), &Type::RECORD);
    assert_eq!(row.get::<_, Raw>(0).0, record(None, 7));
    for bad in [vec![], record(None, 7)[..10].to_vec(), [0i32, 1].map(i32::to_be_bytes).concat()] {
        let refused = client.execute(&insert, &[&3i32, &Raw(bad.clone())]).await.unwrap_err();
        assert!(matches!(code(&refused).as_str(), "22P03" | "42804"), "{bad:?}");
    }
}

/// Jsonb has the number of its form in front.
#[tokio::test(flavor = "multi_thread")]
async fn json_goes_as_text_and_jsonb_with_its_version() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, raw json, body jsonb)").await;
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3)").await.unwrap();
    assert_eq!(insert.params()[1..], [Type::JSON, Type::JSONB]);
    let raw = Raw(br#"{"b":1,"a":2}"#.to_vec());
    let body = Raw([b"\x01", raw.0.as_slice()].concat());
    assert_eq!(client.execute(&insert, &[&1i32, &raw, &body]).await.unwrap(), 1);
    for text in ["SELECT raw, body FROM t WHERE id = 1", "SELECT raw, body FROM t WHERE id < 9"] {
        let row = client.query_one(text, &[]).await.unwrap();
        assert_eq!(
            (row.columns()[0].type_(), row.columns()[1].type_()),
            (&Type::JSON, &Type::JSONB)
        );
        assert_eq!(row.get::<_, Raw>(0), raw);
        assert_eq!(row.get::<_, Raw>(1), Raw(b"\x01{\"a\": 2, \"b\": 1}".to_vec()));
    }
    let found = "SELECT id FROM t WHERE body = $1";
    assert_eq!(client.query(found, &[&body]).await.unwrap().len(), 1);
    let other = Raw([b"\x02", raw.0.as_slice()].concat());
    let refused = client.execute(&insert, &[&2i32, &raw, &other]).await.unwrap_err();
    assert_eq!(code(&refused), "22P03");
    let bad = Raw(b"\x01{".to_vec());
    let refused = client.execute(&insert, &[&2i32, &raw, &bad]).await.unwrap_err();
    assert_eq!(code(&refused), "22P02");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_in_an_array_keeps_its_declared_type() {
    let world = World::new();
    let client = world.client().await;
    let select = client.prepare_typed("SELECT ARRAY[chr($1)]", &[Type::INT2]).await.unwrap();
    let row = client.query_one(&select, &[&65i16]).await.unwrap();
    assert_eq!(row.get::<_, Vec<Option<String>>>(0), [Some("A".to_owned())]);
    let bytes = "SELECT $1 = ARRAY[set_byte('x', 0, $2)]";
    let equal = client.prepare_typed(bytes, &[Type::BYTEA_ARRAY, Type::INT2]).await.unwrap();
    let row = client.query_one(&equal, &[&vec![vec![200u8]], &200i16]).await.unwrap();
    assert!(row.get::<_, bool>(0));
}

/// As SQLAlchemy asks for the columns of indexes.
#[tokio::test(flavor = "multi_thread")]
async fn a_dimension_can_be_a_parameter() {
    let world = World::new();
    let client = world.client().await;
    let text = "SELECT generate_subscripts(ARRAY['a', 'b'], $1::integer)";
    let numbers = |rows: Vec<tokio_postgres::Row>| -> Vec<i32> {
        rows.iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(numbers(client.query(text, &[&1i32]).await.unwrap()), [1, 2]);
    assert!(client.query(text, &[&2i32]).await.unwrap().is_empty());
}

/// The fourth of the numbers in front is how many digits are shown behind the point.
#[tokio::test(flavor = "multi_thread")]
async fn a_binary_zero_has_the_digits_of_its_column() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (n numeric(5,2))").await;
    query(&client, "INSERT INTO t VALUES (0)").await;
    let row = client.query_one("SELECT n FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, Raw>(0), Raw(vec![0, 0, 0, 0, 0, 0, 0, 2]));
}

fn uuid(number: u128) -> onrush::Uuid {
    onrush::Uuid::from_u128(number)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_type_is_converted_to_that_of_the_column() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY, s smallint, n numeric(12,3))").await;
    let types = [Type::INT4, Type::INT8, Type::FLOAT8];
    let insert = client.prepare_typed("INSERT INTO t VALUES ($1, $2, $3)", &types).await.unwrap();
    client.execute(&insert, &[&1i32, &7i64, &1.5f64]).await.unwrap();
    assert_eq!(query(&client, "SELECT * FROM t").await, ["1|7|1.500"]);
    let too_large = client.execute(&insert, &[&2i32, &70_000i64, &1.5f64]).await.unwrap_err();
    assert_eq!(code(&too_large), "22003");
}

#[tokio::test(flavor = "multi_thread")]
async fn numeric_parameters_are_rounded_to_the_digits_of_their_column() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, n numeric(5,2), i int)").await;
    let types = [Type::INT4, Type::NUMERIC, Type::FLOAT8];
    let insert = client.prepare_typed("INSERT INTO t VALUES ($1, $2, $3)", &types).await.unwrap();
    let number = |digits, scale| onrush::Decimal::new(digits, scale);
    client.execute(&insert, &[&1i32, &number(1235, 3), &2.5f64]).await.unwrap();
    client.execute(&insert, &[&2i32, &number(-999_994, 3), &-1.5f64]).await.unwrap();
    assert_eq!(query(&client, "SELECT * FROM t").await, ["1|1.24|2", "2|-999.99|-2"]);
    let too_large = client.execute(&insert, &[&3i32, &number(999_995, 3), &0f64]).await;
    assert_eq!(code(&too_large.unwrap_err()), "22003");
    let update = client.prepare("UPDATE t SET n = $2 WHERE id = $1").await.unwrap();
    client.execute(&update, &[&1i32, &number(5, 3)]).await.unwrap();
    assert_eq!(query(&client, "SELECT n FROM t WHERE id = 1").await, ["0.01"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_no_key_can_have_finds_nothing() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY)").await;
    query(&client, "CREATE TABLE v (v varchar(3) PRIMARY KEY, n numeric(5,2))").await;
    query(&client, "INSERT INTO t VALUES (1), (2)").await;
    query(&client, "INSERT INTO v VALUES ('abc', 1.24)").await;
    for verb in ["SELECT * FROM", "DELETE FROM"] {
        let text = format!("{verb} t WHERE id = $1");
        let wide = client.prepare_typed(&text, &[Type::INT8]).await.unwrap();
        assert_eq!(client.execute(&wide, &[&(1i64 << 40)]).await.unwrap(), 0);
        let numeric = client.prepare_typed(&text, &[Type::NUMERIC]).await.unwrap();
        let half = onrush::Decimal::new(15, 1);
        assert_eq!(client.execute(&numeric, &[&half]).await.unwrap(), 0);
        let whole = onrush::Decimal::new(20, 1);
        assert_eq!(client.execute(&numeric, &[&whole]).await.unwrap(), 1);
        let text = format!("{verb} v WHERE v = $1");
        assert_eq!(client.execute(&text, &[&"abcd"]).await.unwrap(), 0);
    }
    assert!(
        client.query("SELECT v FROM v WHERE v || '' = $1", &[&"abcd"]).await.unwrap().is_empty()
    );
    let far = onrush::Decimal::new(1235, 3);
    assert!(client.query("SELECT v FROM v WHERE n = $1", &[&far]).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_steps_of_a_statement_share_its_parameters() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id int PRIMARY KEY, part float8, note text)").await;
    query(&client, "INSERT INTO t VALUES (1, 0.5, 'old')").await;
    let text = "WITH gone AS (DELETE FROM t WHERE id = $3 RETURNING note), \
                new AS (INSERT INTO t SELECT $1::int, $2::float8, note || $4 FROM gone RETURNING id, note) \
                SELECT new.note, $5 + new.id FROM new";
    let statement = client.prepare(text).await.unwrap();
    let types = [Type::INT4, Type::FLOAT8, Type::INT4, Type::TEXT, Type::INT4];
    assert_eq!(statement.params(), types);
    for (id, old, rows) in [(2i32, Some(1i32), 1), (3, None, 0), (3, Some(2), 1)] {
        let parameters: [&(dyn ToSql + Sync); 5] = [&id, &0.5f64, &old, &"!", &10i32];
        let found = client.query(&statement, &parameters).await.unwrap();
        assert_eq!(found.len(), rows);
        for row in found {
            assert_eq!(row.get::<_, i32>(1), 10 + id);
        }
    }
    assert_eq!(query(&client, "SELECT id || note FROM t").await, ["3old!!"]);
    let merge = "MERGE INTO t USING (SELECT $1::int AS id, $2 AS note) AS s ON t.id = s.id \
                 WHEN MATCHED THEN UPDATE SET note = s.note || $3 \
                 WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.id, $4)";
    for id in [3i32, 4] {
        let done = client.execute(merge, &[&id, &"a", &"b", &"c"]).await.unwrap();
        assert_eq!(done, 1);
    }
    assert_eq!(query(&client, "SELECT id || note FROM t ORDER BY id").await, ["3ab", "4c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_alone_is_a_column_of_its_declared_type() {
    let world = World::new();
    let client = world.client().await;
    let types = [Type::INT4, Type::INT8, Type::FLOAT8, Type::BOOL];
    let select = client.prepare_typed("SELECT $1, $2, $3, $4 AS b", &types).await.unwrap();
    let row = client.query_one(&select, &[&1i32, &2i64, &0.5f64, &true]).await.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1)), (1, 2));
    assert_eq!((row.get::<_, f64>(2), row.get::<_, bool>("b")), (0.5, true));
    let open = client.query_one("SELECT $1", &[&"text"]).await.unwrap();
    assert_eq!(open.get::<_, &str>(0), "text");
    let list = client.prepare_typed("SELECT $1", &[Type::INT4_ARRAY]).await.unwrap();
    let row = client.query_one(&list, &[&vec![1i32, 2]]).await.unwrap();
    assert_eq!(row.get::<_, Vec<i32>>(0), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_inserts_on_their_way_at_once_are_a_commit_each_and_few_waits() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY, note text)").await;
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2)").await.unwrap();
    let before = world.database.statistics();
    let rows: Vec<i64> = (0..1000).collect();
    try_join_all(
        rows.iter()
            .map(|id| async { client.execute(&insert, &[id, &"pipelined"]).await.map(|_| ()) }),
    )
    .await
    .unwrap();
    let load = world.database.statistics().since(&before);
    assert_eq!(load.totals.counter(onrush_waits::Counter::RowsInserted), 1000);
    assert!(load.log.syncs < 500, "{} syncs for 1000 commits", load.log.syncs);
    let durable = client.query_one("SELECT count(*) FROM t", &[]).await.unwrap();
    assert_eq!(durable.get::<_, i64>(0), 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_on_their_way_one_fails_alone() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY)").await;
    let insert = client.prepare("INSERT INTO t VALUES ($1)").await.unwrap();
    let ids: [i64; 5] = [1, 2, 2, 3, 4];
    let outcomes = futures_util::future::join_all(
        ids.iter().map(|id| async { client.execute(&insert, &[id]).await }),
    )
    .await;
    let failed: Vec<_> =
        outcomes.iter().filter_map(|outcome| outcome.as_ref().err().map(code)).collect();
    assert_eq!(failed, ["23505"]);
    assert_eq!(query(&client, "SELECT count(*) FROM t").await, ["4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_gives_its_rows_in_pieces() {
    let world = World::new();
    let mut client = world.client().await;
    query(&client, "CREATE TABLE t (id bigserial PRIMARY KEY)").await;
    query(&client, "CALL onrush.insert_loop('t', 25, 25)").await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("SELECT id FROM t", &[]).await.unwrap();
    let mut sizes = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 10).await.unwrap();
        sizes.push(rows.len());
        if rows.len() < 10 {
            break;
        }
    }
    assert_eq!(sizes, [10, 10, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_outlives_the_table_that_it_was_made_for() {
    let world = World::new();
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY)").await;
    let insert = client.prepare("INSERT INTO t VALUES ($1)").await.unwrap();
    client.execute(&insert, &[&1i64]).await.unwrap();
    query(&client, "DROP TABLE t").await;
    assert_eq!(code(&client.execute(&insert, &[&2i64]).await.unwrap_err()), "42P01");
    query(&client, "CREATE TABLE t (id bigint PRIMARY KEY)").await;
    client.execute(&insert, &[&3i64]).await.unwrap();
    assert_eq!(query(&client, "SELECT id FROM t").await, ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn execute_tells_the_columns_of_the_statement_that_it_names() {
    let world = World::new();
    let client = world.client().await;
    client
        .batch_execute("PREPARE numbers (int) AS SELECT $1 + 1 AS number, 'x' AS letter")
        .await
        .unwrap();
    let row = client.query_one("EXECUTE numbers (7)", &[]).await.unwrap();
    assert_eq!((row.columns()[0].name(), row.get::<_, i32>(0)), ("number", 8));
    assert_eq!(row.get::<_, &str>("letter"), "x");
}
