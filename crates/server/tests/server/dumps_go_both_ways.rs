//! A dump is the whole of a database: restored it is the same, here and in PostgreSQL.
//! Where pg_dump of PostgreSQL 15 is not installed nothing is tested and that is said; with `ONRUSH_REQUIRE_SERVERS`
//! set it is a failure.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{World, query};
use crate::postgresql::Cluster;
use tokio_postgres::Client;

/// Of each kind of thing one, and rows that are hard to write down.
const SHOP: &str = "
    CREATE SCHEMA depot;
    CREATE TYPE mood AS ENUM ('sad', 'so so', 'glad');
    CREATE TYPE a_pair AS (feels mood, \"How many\" int[]);
    CREATE TYPE depot.place AS (street varchar(20), number int);
    CREATE TABLE depot.houses (id int PRIMARY KEY, at depot.place);
    CREATE SEQUENCE depot.\"Ticket\" START 5 INCREMENT 3;
    CREATE DOMAIN depot.price AS numeric(10, 2) DEFAULT 1 CONSTRAINT from_zero CHECK (VALUE >= 0) NOT NULL;
    CREATE DOMAIN a_gift AS depot.price CHECK (VALUE < 100) CHECK (VALUE <> 50);
    CREATE DOMAIN a_code AS varchar(5) DEFAULT 'it''s';
    ALTER DOMAIN a_code ADD CONSTRAINT lower_case CHECK (VALUE = lower(VALUE)) NOT VALID;
    CREATE DOMAIN numbered AS int DEFAULT nextval('depot.\"Ticket\"');
    CREATE TABLE sales (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shop int NOT NULL, total numeric, tax numeric(10, 2),
        gross numeric GENERATED ALWAYS AS (total + tax) STORED, day date, token uuid, packed bytea
    );
    CREATE TABLE \"Shops\" (
        id serial PRIMARY KEY, name varchar(20) NOT NULL UNIQUE, mood mood DEFAULT 'glad', tags text[],
        made timestamptz DEFAULT now(), price numeric CHECK (price > 0), extra jsonb,
        ticket int DEFAULT nextval('depot.\"Ticket\"')
    );
    CREATE TABLE depot.keyless (a text DEFAULT 'it''s', b interval, c time with time zone, d double precision);
    CREATE TABLE depot.defaults (
        id int PRIMARY KEY, code char(5) DEFAULT 'ab', since timestamptz(3) DEFAULT '2020-01-01 00:00+02',
        clock timetz(2) DEFAULT '10:00+02', exact numeric(5, 2) DEFAULT 1.5, name varchar(4) DEFAULT 'it''s'
    );
    CREATE TABLE depot.gifts (
        id int PRIMARY KEY, gift a_gift, cost depot.price DEFAULT 7, code a_code, number numbered
    );
    CREATE INDEX ON depot.defaults (id) WHERE code = 'ab';
    ALTER TABLE sales ADD CONSTRAINT of_shop FOREIGN KEY (shop) REFERENCES \"Shops\" ON DELETE CASCADE;
    CREATE INDEX ON sales (shop, day DESC);
    CREATE UNIQUE INDEX ON \"Shops\" (lower(name)) WHERE price > 1;
    CREATE VIEW a_view AS
        SELECT s.id, shop.name, s.gross FROM sales s JOIN \"Shops\" shop ON shop.id = s.shop WHERE s.total > 1;
    CREATE VIEW \"A view of a view\" AS SELECT name, gross FROM a_view WHERE gross IS NOT NULL;
    CREATE VIEW a_count AS SELECT mood, count(*) AS number FROM \"Shops\" GROUP BY mood;
    CREATE MATERIALIZED VIEW depot.sums AS SELECT shop, sum(total) AS total FROM sales GROUP BY shop;
    COMMENT ON DOMAIN depot.price IS 'what it costs';
    COMMENT ON CONSTRAINT from_zero ON DOMAIN depot.price IS 'not below';
    COMMENT ON TABLE sales IS 'what was sold';
    COMMENT ON COLUMN \"Shops\".name IS 'its ''name''';
    GRANT SELECT ON sales TO PUBLIC;
    REVOKE USAGE ON TYPE mood FROM PUBLIC;
    ALTER DEFAULT PRIVILEGES IN SCHEMA depot GRANT SELECT, INSERT ON TABLES TO PUBLIC;
    INSERT INTO depot.houses VALUES (1, '(\"Long Lane\",7)'), (2, '(,)'), (3, NULL);
    INSERT INTO \"Shops\" (name, mood, tags, price, extra) VALUES
        ('tab\there', 'sad', '{x,\"y z\",NULL}', 2.50, '{\"a\": [1, null]}'), ('\\N', NULL, NULL, 1e30, NULL);
    INSERT INTO sales (shop, total, tax, day, token, packed) VALUES
        (1, 10.5, 0.01, '2020-02-29', '6a8b7c1e-0000-4000-8000-000000000000', '\\x00ff'), (2, 'NaN', 1, NULL, NULL, ''),
        (1, NULL, NULL, NULL, NULL, NULL);
    INSERT INTO depot.keyless VALUES ('', '1 mon -3 days 00:00:00.5', '12:00+02', '-0'), (NULL, NULL, NULL, 'Infinity');
    REFRESH MATERIALIZED VIEW depot.sums;";

const ROWS: &[&str] = &[
    "SELECT * FROM sales ORDER BY id",
    "SELECT * FROM \"Shops\" ORDER BY id",
    "SELECT * FROM depot.keyless ORDER BY a",
    "SELECT * FROM a_view ORDER BY id",
    "SELECT * FROM a_count ORDER BY mood",
    "SELECT id, (at).street, (at).number, at IS NULL FROM depot.houses ORDER BY id",
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute a JOIN pg_type t ON t.typrelid = a.attrelid
     WHERE t.typname IN ('a_pair', 'place') ORDER BY 1",
    "INSERT INTO depot.defaults (id) VALUES (1) RETURNING *",
    "INSERT INTO depot.gifts (id, gift) VALUES (1, 2) RETURNING *",
    "SELECT obj_description(oid, 'pg_type') FROM pg_type WHERE typname = 'price'",
    "SELECT * FROM \"A view of a view\" ORDER BY 1, 2",
    "SELECT * FROM depot.sums ORDER BY shop",
    "SELECT typname, typacl::text FROM pg_type WHERE typname IN ('mood', 'price') ORDER BY 1",
    "SELECT defaclobjtype, defaclnamespace::regnamespace::text, defaclacl::text FROM pg_default_acl ORDER BY 1",
    // Of an identity numbers may be left out, none comes twice.
    "SELECT nextval('sales_id_seq') > 3, nextval('\"Shops_id_seq\"') > 2, nextval('depot.\"Ticket\"')",
    "SELECT obj_description('sales'::regclass, 'pg_class'), col_description('\"Shops\"'::regclass, 2)",
];

/// Where a database is.
struct Place<'p> {
    host: &'p Path,
    port: u16,
    database: &'p str,
}

impl Place<'_> {
    fn of(world: &World) -> Place<'static> {
        Place { host: Path::new("127.0.0.1"), port: world.address.port(), database: "onrush" }
    }

    fn of_cluster<'p>(cluster: &'p Cluster, database: &'p str) -> Place<'p> {
        Place { host: cluster.folder(), port: 5432, database }
    }

    fn run(&self, program: &str, arguments: &[&str], input: Stdio) -> Output {
        let mut command = Command::new(program);
        command.arg("-h").arg(self.host).args(["-p", &self.port.to_string(), "-U", "onrush"]);
        command.args(["-d", self.database]).args(arguments).env_remove("PGOPTIONS").stdin(input);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {error}");
        output
    }

    /// Without what differs from one dump to the next.
    fn dump(&self) -> String {
        let output = self.run("pg_dump", &["--no-owner"], Stdio::null());
        let text = String::from_utf8(output.stdout).unwrap();
        let is_kept = |line: &&str| {
            !["\\restrict", "\\unrestrict", "--"].iter().any(|start| line.starts_with(start))
        };
        text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
    }

    fn restore(&self, dump: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), dump).unwrap();
        let input = fs::File::open(file.path()).unwrap();
        self.run("psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", "-"], input.into());
    }
}

fn is_installed() -> bool {
    let version = Command::new("pg_dump").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let is_it = version.is_ok_and(|version| version.contains(") 15."));
    if !is_it {
        let told =
            "pg_dump of PostgreSQL 15 is not installed: apt-get install postgresql-client-15";
        assert!(std::env::var_os("ONRUSH_REQUIRE_SERVERS").is_none(), "{told}");
        eprintln!("left out: {told}");
    }
    is_it
}

async fn rows(client: &Client) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for rows in ROWS {
        all.push(query(client, rows).await);
    }
    all
}

async fn shop() -> World {
    let world = World::new();
    query(&world.client().await, SHOP).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_that_is_restored_is_the_same_database() {
    if !is_installed() {
        return;
    }
    let (world, other) = (shop().await, World::new());
    let dump = Place::of(&world).dump();
    Place::of(&other).restore(&dump);
    assert_eq!(Place::of(&other).dump(), dump);
    assert_eq!(rows(&other.client().await).await, rows(&world.client().await).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_restored_over_what_is_there() {
    if !is_installed() {
        return;
    }
    let (world, file) = (shop().await, tempfile::NamedTempFile::new().unwrap());
    let place = Place::of(&world);
    let before = place.dump();
    let archive = file.path().to_str().unwrap();
    place.run("pg_dump", &["-Fc", "-f", archive], Stdio::null());
    query(&world.client().await, "DELETE FROM sales").await;
    let over = ["--clean", "--if-exists", "--no-owner", "--jobs=3", archive];
    place.run("pg_restore", &over, Stdio::null());
    assert_eq!(place.dump(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_restores_a_dump_and_its_own_is_restored_here() {
    if !is_installed() {
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let (world, again) = (shop().await, World::new());
    let client = cluster.client_in_new_database("dumped").await;
    let there = Place::of_cluster(&cluster, "dumped");
    there.restore(&Place::of(&world).dump());
    Place::of(&again).restore(&there.dump());
    let expected = rows(&world.client().await).await;
    assert_eq!(rows(&again.client().await).await, expected);
    assert_eq!(rows(&client).await, expected);
}

/// Roles are of all databases of a server: pg_dumpall has them.
#[tokio::test(flavor = "multi_thread")]
async fn roles_and_who_is_in_whom_are_dumped() {
    if !is_installed() {
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    let (world, again) = (World::new(), World::new());
    let made = "CREATE ROLE staff; CREATE ROLE board NOINHERIT IN ROLE staff; CREATE USER anna;
                GRANT board TO anna WITH ADMIN OPTION; GRANT staff TO anna GRANTED BY anna";
    query(&world.client().await, made).await;
    let whole = ["-d", "dbname=onrush", "--roles-only", "--no-role-passwords"];
    let dump = Place::of(&world).run("pg_dumpall", &whole, Stdio::null()).stdout;
    // The owner of the server is there already.
    let dump: String = String::from_utf8(dump)
        .unwrap()
        .lines()
        .filter(|line| !line.contains("ROLE onrush"))
        .map(|line| format!("{line}\n"))
        .collect();
    let client = cluster.client_in_new_database("dumped").await;
    Place::of_cluster(&cluster, "dumped").restore(&dump);
    Place::of(&again).restore(&dump);
    let told = "SELECT pg_get_userbyid(roleid), pg_get_userbyid(member), pg_get_userbyid(grantor), admin_option, \
                pg_has_role(member, roleid, 'USAGE'), pg_has_role('board', 'staff', 'USAGE') FROM pg_auth_members \
                WHERE pg_get_userbyid(roleid) NOT LIKE 'pg%' ORDER BY 1, 2";
    let expected = ["board|anna|onrush|t|t|f", "staff|anna|anna|f|t|f", "staff|board|onrush|f|f|f"];
    assert_eq!(query(&again.client().await, told).await, expected);
    assert_eq!(query(&client, told).await, expected);
}
