//! Tables of PostgreSQL's catalogue for things that there are none of here. Tools look into them.

use super::kinds::{BOOL, CHAR, INT2, INT4, NAME, OID, OID_VECTOR, OIDS, TEXT, TEXTS};
use super::{Column, PG_CATALOG, SystemTable};

const fn table(name: &'static str, columns: &'static [Column]) -> SystemTable {
    SystemTable { schema: PG_CATALOG, name, columns, rows: |_, _| Vec::new() }
}

pub(super) const ALL: &[SystemTable] = &[
    table(
        "pg_inherits",
        &[("inhrelid", OID), ("inhparent", OID), ("inhseqno", INT4), ("inhdetachpending", BOOL)],
    ),
    table("pg_shdescription", &[("objoid", OID), ("classoid", OID), ("description", TEXT)]),
    table(
        "pg_collation",
        &[("oid", OID), ("collname", NAME), ("collnamespace", OID), ("collcollate", TEXT)],
    ),
    table(
        "pg_policy",
        &[
            ("oid", OID),
            ("polname", NAME),
            ("polrelid", OID),
            ("polcmd", CHAR),
            ("polpermissive", BOOL),
            ("polroles", OIDS),
            ("polqual", TEXT),
            ("polwithcheck", TEXT),
        ],
    ),
    table("pg_publication", &[("oid", OID), ("pubname", NAME), ("puballtables", BOOL)]),
    table(
        "pg_publication_rel",
        &[("oid", OID), ("prpubid", OID), ("prrelid", OID), ("prqual", TEXT), ("prattrs", TEXT)],
    ),
    table("pg_publication_namespace", &[("oid", OID), ("pnpubid", OID), ("pnnspid", OID)]),
    table(
        "pg_statistic_ext",
        &[
            ("oid", OID),
            ("stxrelid", OID),
            ("stxname", NAME),
            ("stxnamespace", OID),
            ("stxstattarget", INT4),
            ("stxkind", TEXTS),
        ],
    ),
    table(
        "pg_trigger",
        &[
            ("oid", OID),
            ("tgrelid", OID),
            ("tgname", NAME),
            ("tgenabled", CHAR),
            ("tgisinternal", BOOL),
            ("tgparentid", OID),
        ],
    ),
    table("pg_foreign_table", &[("ftrelid", OID), ("ftserver", OID), ("ftoptions", TEXT)]),
    table("pg_foreign_server", &[("oid", OID), ("srvname", NAME), ("srvowner", OID)]),
    table(
        "pg_extension",
        &[("oid", OID), ("extname", NAME), ("extnamespace", OID), ("extversion", TEXT)],
    ),
    table(
        "pg_range",
        &[
            ("rngtypid", OID),
            ("rngsubtype", OID),
            ("rngmultitypid", OID),
            ("rngcollation", OID),
            ("rngsubopc", OID),
        ],
    ),
    table("pg_partitioned_table", &[("partrelid", OID), ("partstrat", CHAR), ("partnatts", INT2)]),
    table(
        "pg_proc",
        &[
            ("oid", OID),
            ("proname", NAME),
            ("pronamespace", OID),
            ("proowner", OID),
            ("prolang", OID),
            ("prokind", CHAR),
            ("prorettype", OID),
            ("proretset", BOOL),
            ("proargtypes", OID_VECTOR),
            ("prosrc", TEXT),
        ],
    ),
    table("pg_language", &[("oid", OID), ("lanname", NAME)]),
    table(
        "pg_opclass",
        &[
            ("oid", OID),
            ("opcmethod", OID),
            ("opcname", NAME),
            ("opcnamespace", OID),
            ("opcintype", OID),
            ("opcdefault", BOOL),
            ("opcfamily", OID),
            ("opckeytype", OID),
            ("opcowner", OID),
        ],
    ),
    table(
        "pg_opfamily",
        &[
            ("oid", OID),
            ("opfmethod", OID),
            ("opfname", NAME),
            ("opfnamespace", OID),
            ("opfowner", OID),
        ],
    ),
    table(
        "pg_amop",
        &[
            ("oid", OID),
            ("amopfamily", OID),
            ("amoplefttype", OID),
            ("amoprighttype", OID),
            ("amopstrategy", INT2),
            ("amoppurpose", CHAR),
            ("amopopr", OID),
            ("amopmethod", OID),
            ("amopsortfamily", OID),
        ],
    ),
    table(
        "pg_amproc",
        &[
            ("oid", OID),
            ("amprocfamily", OID),
            ("amproclefttype", OID),
            ("amprocrighttype", OID),
            ("amprocnum", INT2),
            ("amproc", OID),
        ],
    ),
    table("pg_parameter_acl", &[("oid", OID), ("parname", TEXT), ("paracl", TEXTS)]),
    table(
        "pg_user_mappings",
        &[
            ("umid", OID),
            ("srvid", OID),
            ("srvname", NAME),
            ("umuser", OID),
            ("usename", NAME),
            ("umoptions", TEXTS),
        ],
    ),
    table(
        "pg_ts_dict",
        &[
            ("oid", OID),
            ("dictname", NAME),
            ("dictnamespace", OID),
            ("dictowner", OID),
            ("dicttemplate", OID),
            ("dictinitoption", TEXT),
        ],
    ),
    table(
        "pg_ts_parser",
        &[
            ("oid", OID),
            ("prsname", NAME),
            ("prsnamespace", OID),
            ("prsstart", OID),
            ("prstoken", OID),
            ("prsend", OID),
            ("prsheadline", OID),
            ("prslextype", OID),
        ],
    ),
    table(
        "pg_ts_template",
        &[
            ("oid", OID),
            ("tmplname", NAME),
            ("tmplnamespace", OID),
            ("tmplinit", OID),
            ("tmpllexize", OID),
        ],
    ),
    table(
        "pg_subscription",
        &[
            ("oid", OID),
            ("subdbid", OID),
            ("subname", NAME),
            ("subowner", OID),
            ("subenabled", BOOL),
            ("subbinary", BOOL),
            ("substream", BOOL),
            ("subtwophasestate", CHAR),
            ("subdisableonerr", BOOL),
            ("subsynccommit", TEXT),
            ("subconninfo", TEXT),
            ("subskiplsn", TEXT),
            ("subpublications", TEXTS),
        ],
    ),
    table(
        "pg_partition_tree",
        &[("relid", OID), ("parentrelid", OID), ("isleaf", BOOL), ("level", INT4)],
    ),
    table(
        "pg_cast",
        &[
            ("oid", OID),
            ("castsource", OID),
            ("casttarget", OID),
            ("castfunc", OID),
            ("castcontext", CHAR),
            ("castmethod", CHAR),
        ],
    ),
    table("pg_operator", &[("oid", OID), ("oprname", NAME), ("oprnamespace", OID)]),
    table("pg_conversion", &[("oid", OID), ("conname", NAME), ("connamespace", OID)]),
    table("pg_event_trigger", &[("oid", OID), ("evtname", NAME)]),
    table("pg_foreign_data_wrapper", &[("oid", OID), ("fdwname", NAME), ("fdwowner", OID)]),
    table("pg_largeobject_metadata", &[("oid", OID), ("lomowner", OID), ("lomacl", TEXTS)]),
    table("pg_ts_config", &[("oid", OID), ("cfgname", NAME), ("cfgnamespace", OID)]),
    table("pg_db_role_setting", &[("setdatabase", OID), ("setrole", OID), ("setconfig", TEXTS)]),
    table("pg_transform", &[("oid", OID), ("trftype", OID), ("trflang", OID)]),
    table(
        "pg_seclabels",
        &[
            ("objoid", OID),
            ("classoid", OID),
            ("objsubid", INT4),
            ("provider", TEXT),
            ("label", TEXT),
        ],
    ),
    // A function of options, which nothing has here.
    table("pg_options_to_table", &[("option_name", TEXT), ("option_value", TEXT)]),
    table(
        "pg_shseclabel",
        &[("objoid", OID), ("classoid", OID), ("provider", TEXT), ("label", TEXT)],
    ),
    table("pg_prepared_xacts", &[("gid", TEXT), ("owner", NAME), ("database", NAME)]),
];
