//! The form in which tables keep expressions gives what PostgreSQL gives, values and errors, over the edges
//! of all types. Each expression becomes a CHECK that compares it with a column which holds the answer of
//! PostgreSQL. (Queries of this server differ from it in what docs/sql.md says of numbers.)

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::common::World;
use crate::postgresql::Cluster;

const COLUMNS: &str = "id int PRIMARY KEY, a smallint, b int, c bigint, f real, g double precision, \
     n numeric(12,4), m numeric(28,10), t text, v varchar(20), h char(5), o boolean, d date, \
     s timestamp, z timestamptz, u uuid, y bytea";

const ROWS: &[&str] = &[
    "1, 0, 0, 0, 0, 0, 0, 0, '', '', '', true, '1970-01-01', '1970-01-01 00:00:00', \
     '1970-01-01 00:00:00Z', '00000000-0000-0000-0000-000000000000', ''",
    "2, 1, 1, 1, 1.5, 2.5, 1.5, 0.0000000001, 'abc', 'Abc', 'abc', false, '2024-02-29', \
     '2024-01-31 12:30:15.25', '2024-12-31 23:59:59.999999Z', \
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x0102'",
    "3, -7, -7, -7, -0.5, -2.5, -3.3333, -7.5, 'héllo wörld', ' x ', 'ab', NULL, '0001-01-01', \
     '0001-01-01 00:00:00', '0001-01-01 00:00:00Z', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '\\xff'",
    "4, 32767, 2147483647, 9223372036854775807, 3.4e38, 1.7e308, 99999999.9999, \
     99999999999999999.9999999999, 'a%b_c', 'ÄÖÜ', 'abcde', true, '9999-12-31', \
     '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999Z', NULL, NULL",
    "5, -32768, -2147483648, -9223372036854775808, -3.4e38, -1.7e308, -99999999.9999, \
     -99999999999999999.9999999999, 'back\\slash', 'x', ' a', false, '2000-03-31', \
     '2000-03-31 00:00:00', '2000-03-31 00:00:00Z', NULL, NULL",
    "6, 3, 10, 100, 'NaN', 'NaN', 0.125, 2.5, 'xxabcxx', 'abc', 'x', true, '2023-01-01', \
     '2023-01-01 01:02:03', '2023-01-01 01:02:03Z', NULL, NULL",
    "7, 2, -1, 3, 'Infinity', '-Infinity', 0.5, 0.5, '  ', 'a b', 'é', false, NULL, NULL, NULL, NULL, NULL",
    "8, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    "9, -1, 5, 7, 1e-30, 1e-300, -0.5, -2.5, 'aXbXc', 'ABC', 'ABC', NULL, '2024-12-31', \
     '2024-02-29 00:00:00', '2024-02-29 00:00:00Z', NULL, NULL",
    "10, 1, 1, 1, 1, 1, 1, 1, 'a', 'a', 'a', NULL, '-infinity', '-infinity', '-infinity', NULL, NULL",
    "11, 1, 1, 1, 1, 1, 1, 1, 'a', 'a', 'a', NULL, 'infinity', 'infinity', 'infinity', NULL, NULL",
    "12, 1, 1, 1, 1, 1, 1, 1, 'a', 'a', 'a', NULL, '4714-11-24 BC', '4714-11-24 00:00:00 BC', \
     '4714-11-24 00:00:00Z BC', NULL, NULL",
    "13, 1, 1, 1, 1, 1, 1, 1, 'a', 'a', 'a', NULL, '294246-12-31', '294246-12-31 23:59:59.999999', \
     '294246-12-31 23:59:59.999999Z', NULL, NULL",
    "14, 1, 1, 1, 1, 1, 1, 1, 'a', 'a', 'a', NULL, '0001-02-28 BC', '0101-03-01 12:34:56.789 BC', \
     '0005-02-29 00:00:00Z BC', NULL, NULL",
];

/// Expressions by the type that they come to.
const EXPRESSIONS: &[(&str, &[&str])] = &[
    (
        "boolean",
        &[
            "a = b",
            "a < c",
            "b <> 5",
            "c >= 3000000000",
            "b > 1.5",
            "n = 0.5",
            "n < b",
            "m > n",
            "f < g",
            "f = 1.5",
            "f > b",
            "g <= n",
            "g = 'NaN'",
            "f = 'Infinity'::real",
            "a = '1'",
            "b > 0 AND t <> ''",
            "b > 0 OR o",
            "NOT o",
            "NOT (b > 0 AND o)",
            "o IS TRUE",
            "o IS NOT TRUE",
            "o IS FALSE",
            "o IS NOT FALSE",
            "o IS NULL",
            "o IS NOT NULL",
            "t IS NULL",
            "b IS DISTINCT FROM a",
            "o IS NOT DISTINCT FROM (b > 0)",
            "t IS DISTINCT FROM NULL",
            "b IN (1, 5, 10)",
            "b NOT IN (1, 5)",
            "b IN (1, NULL)",
            "b NOT IN (1, NULL)",
            "n IN (0.5, 1.5)",
            "t IN ('abc', 'x')",
            "b BETWEEN -7 AND 5",
            "b NOT BETWEEN 0 AND 5",
            "b BETWEEN NULL AND 3",
            "d BETWEEN '2000-01-01' AND '2024-06-01'",
            "t = 'abc'",
            "t < v",
            "t >= 'a'",
            "v = 'abc'",
            "h = 'ab'",
            "h = 'ab   '",
            "h = t",
            "h < v",
            "h <> 'x'",
            "d < '2024-01-01'",
            "d = s",
            "s > '2023-01-01'",
            "z >= '2024-01-01 00:00:00Z'",
            "s < d",
            "u > 'a0000000-0000-0000-0000-000000000000'",
            "u = u",
            "y > '\\x01'",
            "o = true",
            "o < (b > 0)",
            "t LIKE 'a%'",
            "t LIKE '%b_c'",
            "t LIKE 'a\\%b\\_c'",
            "t NOT LIKE '%x%'",
            "t LIKE ''",
            "t LIKE '%'",
            "t LIKE '_'",
            "v ILIKE 'aBc'",
            "t LIKE v",
            "t LIKE 'a!%b!_c' ESCAPE '!'",
            "t LIKE 'back\\slash' ESCAPE ''",
            "t NOT LIKE '%x%' ESCAPE 'x'",
            "t LIKE '%\\%' ESCAPE '#'",
            "v ILIKE 'A#Bc' ESCAPE '#'",
            "t ~ '^[a-c]+$'",
            "t ~ 'a.*c'",
            "t !~ 'x'",
            "v ~* '^abc$'",
            "t ~ '^(?:a|x){1,3}b*'",
            "t ~ '\\s'",
            "t ~ '[^a-z%_ ]'",
            "E'a\\nb' ~ '^a.b$'",
            "extract(year FROM s) = 2024",
            "extract(quarter FROM d) = 1",
            "extract(hour FROM s) >= 12",
            "date_trunc('month', s) = s",
            "starts_with(t, 'ab')",
            "length(t) < 10 AND b > 0",
            "b > 0 AND 10 / b > 2",
            "b = 0 OR 10 / b > 2",
            "CASE WHEN b = 0 THEN false ELSE 10 / b > 2 END",
            "NULL",
            "b = NULL",
            "o AND NULL",
            "o OR NULL",
            "b % 2 = 1",
            "mod(c, 3) = 1",
            "d - 0 = d",
            "b + 1 > b",
            "'abc' = t",
            "5 < b",
            "2147483648 > b",
            "-2147483648 = b",
        ],
    ),
    (
        "smallint",
        &[
            "a + a",
            "a - 1::smallint",
            "a * a",
            "a / a",
            "-a",
            "abs(a)",
            "b::smallint",
            "n::smallint",
            "g::smallint",
            "a % 2::smallint",
        ],
    ),
    (
        "int",
        &[
            "a + b",
            "b + 1",
            "b - 1",
            "b * 2",
            "b / 2",
            "b / a",
            "b % 3",
            "b % a",
            "-b",
            "abs(b)",
            "c::int",
            "n::int",
            "m::int",
            "f::int",
            "g::int",
            "o::int",
            "length(t)",
            "char_length(v)",
            "length(h)",
            "octet_length(t)",
            "length(y)",
            "octet_length(y)",
            "position('b' IN t)",
            "strpos(t, 'l')",
            "strpos(t, '')",
            "d - '2000-01-01'::date",
            "coalesce(b, a, 7)",
            "nullif(b, 5)",
            "nullif(a, 1)::int",
            "greatest(a, b)",
            "least(b, 3)",
            "CASE a WHEN 1 THEN 10 WHEN 2 THEN 20 ELSE b END",
            "CASE WHEN o THEN 1 END",
            "b / (a - 1)",
            "-7 / 2",
            "-7 % 3",
        ],
    ),
    (
        "bigint",
        &[
            "a + c",
            "b + c",
            "c + 1",
            "c - 1",
            "c * 2",
            "c / -1",
            "c % -1",
            "c / 3",
            "-c",
            "abs(c)",
            "b * 3000000000",
            "n::bigint",
            "g::bigint",
            "coalesce(c, b)",
            "greatest(a, c, b)",
        ],
    ),
    (
        "real",
        &[
            "f + f",
            "f - f",
            "f * f",
            "f / f",
            "-f",
            "abs(f)",
            "g::real",
            "n::real",
            "b::real",
            "coalesce(f, n)",
            "f / 3::real",
            "greatest(f, a)",
        ],
    ),
    (
        "double precision",
        &[
            "f + g",
            "g + 1",
            "g - f",
            "g * g",
            "g / 3",
            "g / b",
            "-g",
            "abs(g)",
            "n::float8",
            "m::float8",
            "c::float8",
            "f::float8",
            "round(g)",
            "ceil(g)",
            "floor(g)",
            "trunc(g)",
            "sign(g)",
            "round(f)",
            "ceil(b)",
            "floor(c)",
            "sign(b)",
            "f * b",
            "n * g",
            "g / g",
            "greatest(g, n)",
            "least(f, g)",
            "coalesce(g, 1.5)",
        ],
    ),
    (
        "numeric(28,10)",
        &[
            "extract(year FROM s)",
            "extract(quarter FROM s)",
            "extract(month FROM s)",
            "extract(week FROM s)",
            "extract(day FROM s)",
            "extract(dow FROM s)",
            "extract(isodow FROM s)",
            "extract(doy FROM s)",
            "extract(isoyear FROM s)",
            "extract(epoch FROM s)",
            "extract(hour FROM s)",
            "extract(minute FROM s)",
            "extract(second FROM s)",
            "extract(milliseconds FROM s)",
            "extract(microseconds FROM s)",
            "extract(year FROM d)",
            "extract(quarter FROM d)",
            "extract(month FROM d)",
            "extract(week FROM d)",
            "extract(day FROM d)",
            "extract(dow FROM d)",
            "extract(isodow FROM d)",
            "extract(doy FROM d)",
            "extract(isoyear FROM d)",
            "extract(epoch FROM d)",
            "extract(epoch FROM z)",
            "n + n",
            "n - m",
            "n + b",
            "m - 1",
            "-m",
            "abs(m)",
            "n % 3",
            "m % n",
            "n % b",
            "round(n)",
            "ceil(n)",
            "floor(m)",
            "trunc(n)",
            "sign(n)",
            "round(n, 1)",
            "round(m, 2)",
            "round(n, -1)",
            "trunc(n, 2)",
            "round(b, -1)",
            "n::numeric(6,2)",
            "b::numeric(5,1)",
            "b::numeric",
            "coalesce(n, b)",
            "greatest(n, b, m)",
            "nullif(b, 1.0)",
            "n * 2",
            "a * n",
            "round(n, 6)",
        ],
    ),
    (
        "numeric(28,20)",
        &[
            "n / 3",
            "1 / n",
            "a / 7.0",
            "n / 7",
            "1.0 / 3",
            "2 / n",
            "n * n / 100000000000",
            "a / 1000.5",
        ],
    ),
    (
        "text",
        &[
            "lower(t)",
            "upper(left(t, 1))",
            "upper(u::text)",
            "trim(t)",
            "ltrim(v)",
            "rtrim(v)",
            "btrim(t, 'x')",
            "trim(BOTH 'xa' FROM t)",
            "trim(LEADING 'x' FROM t)",
            "left(t, 2)",
            "left(t, -2)",
            "right(t, 3)",
            "right(t, -3)",
            "left(t, 0)",
            "substr(t, 2)",
            "substr(t, 2, 3)",
            "substr(t, -1, 4)",
            "substr(t, 2, b)",
            "substring(t FROM 2 FOR 2)",
            "substring(t FROM 3)",
            "t || v",
            "h || 'x'",
            "t || b",
            "c || t",
            "t || NULL",
            "b::text",
            "c::text",
            "n::text",
            "o::text",
            "u::text",
            "h::text",
            "coalesce(t, v, 'x')",
            "nullif(t, '')",
            "greatest(t, v)",
            "least(t, 'b')",
            "CASE WHEN b > 0 THEN 'up' WHEN b < 0 THEN 'down' ELSE t END",
            "lower(trim(t)) || '-' || upper(v)",
        ],
    ),
    (
        "date",
        &[
            "d + 1",
            "d - 1",
            "1 + d",
            "d + b",
            "s::date",
            "coalesce(d, '2000-01-01')",
            "greatest(d, '2001-01-01')",
        ],
    ),
    (
        "timestamp",
        &[
            "date_trunc('year', s)",
            "date_trunc('quarter', s)",
            "date_trunc('month', s)",
            "date_trunc('week', s)",
            "date_trunc('day', s)",
            "date_trunc('hour', s)",
            "date_trunc('minute', s)",
            "date_trunc('second', s)",
            "date_trunc('milliseconds', s)",
            "date_trunc('microseconds', s)",
            "d + interval '1 day'",
            "s + interval '1 month'",
            "s - interval '1 month 2 days'",
            "s + interval '1 year 36 hours'",
            "d - interval '1 second'",
            "d::timestamp",
            "coalesce(s, d)",
            "s + '90 minutes'::interval",
        ],
    ),
    ("timestamptz", &["coalesce(z, '2024-01-01 00:00:00+02')"]),
    ("uuid", &["coalesce(u, '00000000-0000-0000-0000-000000000001')", "greatest(u, u)"]),
    ("bytea", &["coalesce(y, '\\x00')", "least(y, '\\x01')"]),
];

/// What a query says: a value, NULL, or the SQLSTATE of its error.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Value(Option<String>),
    Error(String),
}

async fn answer(client: &Client, query: &str) -> Answer {
    match client.simple_query(query).await {
        Ok(messages) => {
            let row = messages.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
                _ => None,
            });
            Answer::Value(row.unwrap())
        }
        Err(error) => Answer::Error(error.code().expect("told by the server").code().to_owned()),
    }
}

/// What the answer of PostgreSQL is here: timestamps end with the year 294246. No column of declared digits has an
/// infinite number that it could be compared with; NULL is there instead, and differs.
fn as_it_is_here(answer: Answer, type_name: &str) -> Answer {
    let Answer::Value(Some(value)) = &answer else { return answer };
    let year = || value.split('-').next().and_then(|year| year.parse::<i64>().ok());
    let is_timestamp = matches!(type_name, "timestamp" | "timestamptz");
    if is_timestamp && year().is_some_and(|year| year > 294_246) {
        return Answer::Error("22008".to_owned());
    }
    if type_name.starts_with("numeric(") && value.ends_with("Infinity") {
        return Answer::Error("23514".to_owned());
    }
    answer
}

async fn fill(client: &Client) {
    client.batch_execute(&format!("CREATE TABLE edges ({COLUMNS})")).await.unwrap();
    for row in ROWS {
        client.batch_execute(&format!("INSERT INTO edges VALUES ({row})")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_expression_over_every_edge() {
    let world = World::new();
    let client = world.client().await;
    fill(&client).await;
    let Some(cluster) = Cluster::start() else { return };
    let postgresql = cluster.client_in_new_database("expressions").await;
    fill(&postgresql).await;
    let mut wrong = Vec::new();
    let mut asked = 0;
    let all = EXPRESSIONS.iter().flat_map(|(name, all)| all.iter().map(move |one| (*name, *one)));
    for (number, (type_name, expression)) in all.enumerate() {
        let table = format!("probe_{number}");
        let condition = format!("({expression}) IS NOT DISTINCT FROM r");
        let create = format!(
            "CREATE TABLE {table} ({COLUMNS}, r {type_name}, CONSTRAINT same CHECK ({condition}))"
        );
        if let Err(error) = client.batch_execute(&create).await {
            wrong.push(format!("{expression} as {type_name}: {error:?}"));
            continue;
        }
        let definition = world.database.table(&table).unwrap();
        if definition.definition().checks()[0].form.is_none() {
            wrong.push(format!("{expression} as {type_name} is not in the form"));
            continue;
        }
        for (at, row) in ROWS.iter().enumerate() {
            asked += 1;
            let query = format!("SELECT {expression} FROM edges WHERE id = {}", at + 1);
            let right = answer(&postgresql, &query).await;
            let right = as_it_is_here(right, type_name);
            let insert =
                |value: &str| format!("INSERT INTO {table} VALUES ({row}, {value}) RETURNING 1");
            let (given, expected) = match &right {
                Answer::Value(Some(value)) => {
                    let other = answer(&client, &insert("NULL")).await;
                    if other != Answer::Error("23514".to_owned()) {
                        wrong.push(format!("{expression} row {}: {other:?} for NULL", at + 1));
                    }
                    let value = format!("'{}'", value.replace('\'', "''"));
                    (answer(&client, &insert(&value)).await, Answer::Value(Some("1".to_owned())))
                }
                Answer::Value(None) => {
                    (answer(&client, &insert("NULL")).await, Answer::Value(Some("1".to_owned())))
                }
                error => (answer(&client, &insert("NULL")).await, error.clone()),
            };
            if given != expected {
                wrong.push(format!("{expression} row {}: {right:?}, but {given:?}", at + 1));
            }
        }
        client.batch_execute(&format!("DROP TABLE {table}")).await.unwrap();
    }
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}
