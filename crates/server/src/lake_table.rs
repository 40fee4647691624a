//! `lake.<table>`: all rows of a table that is attached to a lake, those of other nodes among them.
//!
//! What is in the lake is read at one snapshot of the Iceberg table, and the node's own rows from that snapshot's mark
//! on in the database, by the query engine ([`ColdRows`]). A statement reads each Iceberg table at one snapshot,
//! however often it names it, and so does a transaction.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use onrush::{DataType, Database, Lsn, Row, Table, Value};
use onrush_lake::drain::attachment::{self, Attachment};
use onrush_lake::{Cut, CutCondition, CutFile, CutValues, LakeError, LakeValue, lake_value};
use onrush_query::{ColdCondition, ColdFile, ColdPart, ColdRows, ColdValues, Statement};

use crate::error::{Result, SqlError, state};
use crate::execute::pins_of;
use crate::lake::{Lake, not_attached};
use crate::sequences::refused;
use crate::sql::OutputColumn;

/// The schema of the attached tables with all of their rows. A schema that a user has made of this name comes first.
pub(crate) const SCHEMA: &str = "lake";

/// The snapshots of Iceberg tables that a statement or a transaction reads, by the numbers of its tables.
#[derive(Default)]
pub(crate) struct LakePins(tokio::sync::Mutex<BTreeMap<u32, Arc<Cut>>>);

impl LakePins {
    /// The Iceberg table of an attachment as it was when it was first asked for.
    pub(crate) async fn cut(&self, lake: &Lake, of: &Attachment) -> Result<Arc<Cut>> {
        // Whoever asks meanwhile is to have the same.
        let mut pinned = self.0.lock().await;
        if let Some(cut) = pinned.get(&of.table) {
            return Ok(Arc::clone(cut));
        }
        let cut = lake.reader()?.cut(of).await?;
        pinned.insert(of.table, Arc::clone(&cut));
        Ok(cut)
    }
}

/// Where the rows of an attached table go.
pub(crate) fn attachment_of(database: &Database, table: &Table) -> Result<Attachment> {
    let known = attachment::all(database)?.into_iter().find(|known| known.table == table.id());
    known.ok_or_else(|| not_attached(table))
}

/// See the module.
pub(crate) struct LakeTable {
    lake: Arc<Lake>,
    attachment: Attachment,
    table: Table,
}

impl fmt::Debug for LakeTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEMA}.{}", self.table.name())
    }
}

impl LakeTable {
    pub(crate) fn new(lake: &Arc<Lake>, database: &Database, table: Table) -> Result<LakeTable> {
        let attachment = attachment_of(database, &table)?;
        Ok(LakeTable { lake: Arc::clone(lake), attachment, table })
    }
}

#[async_trait]
impl ColdRows for LakeTable {
    fn table(&self) -> &Table {
        &self.table
    }

    async fn part(
        &self,
        statement: &Statement,
        conditions: &[ColdCondition],
    ) -> onrush_query::Result<ColdPart> {
        let pins = pins_of(&statement.client).unwrap_or_default();
        let cut = pins.cut(&self.lake, &self.attachment).await.map_err(refused)?;
        let definition = self.table.definition();
        let shown = definition.shown_columns().map(|at| definition.columns()[at].data_type);
        let added = [DataType::Int32, DataType::Int64, DataType::TimestampTz];
        let types: Vec<DataType> = shown.chain(added).collect();
        let conditions = conditions.iter().filter_map(|own| condition(&types, own));
        let files = cut.files(&conditions.collect::<Vec<_>>()).await;
        let files = files.map_err(|error| refused(error.into()))?;
        let file = |file: CutFile| Arc::new(LakeFile(file)) as Arc<dyn ColdFile>;
        Ok(ColdPart {
            files: files.into_iter().map(file).collect(),
            field_ids: cut.field_ids().to_vec(),
            node: cut.node().0.cast_signed(),
            hot_from: Lsn(cut.own_mark().map_or(0, |mark| mark.lsn)),
        })
    }
}

/// The condition in the lake's values; none where these do not tell.
fn condition<'v>(types: &[DataType], own: &'v ColdCondition) -> Option<CutCondition<'v>> {
    let of = *types.get(own.column)?;
    let value = |value: &'v Value<'static>| lake_value(of, value);
    let bound = |bound: &'v Bound<Value<'static>>| -> Option<Bound<LakeValue<'v>>> {
        Some(match bound {
            Bound::Included(end) => Bound::Included(value(end)?),
            Bound::Excluded(end) => Bound::Excluded(value(end)?),
            Bound::Unbounded => Bound::Unbounded,
        })
    };
    let values = match &own.values {
        ColdValues::OneOf(values) => {
            CutValues::OneOf(values.iter().map(value).collect::<Option<_>>()?)
        }
        // Labels have an order of their own, and names in the lake that of letters.
        ColdValues::Between(..) if matches!(of, DataType::Enum(_)) => return None,
        ColdValues::Between(from, to) => CutValues::Between(bound(from)?, bound(to)?),
    };
    Some(CutCondition { column: own.column, values })
}

/// A file of the lake.
#[derive(Debug)]
struct LakeFile(CutFile);

#[async_trait]
impl ColdFile for LakeFile {
    fn name(&self) -> &str {
        self.0.path()
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn required(&self) -> &[i32] {
        self.0.required()
    }

    async fn read(&self, range: Range<u64>) -> onrush_query::Result<Bytes> {
        self.0.read(range).await.map_err(|error: LakeError| refused(error.into()))
    }
}

/// Columns of `CALL onrush.lake_cut`.
pub(crate) fn cut_columns() -> Arc<[OutputColumn]> {
    let columns = [
        ("snapshot_id", DataType::Int64),
        ("node", DataType::Int32),
        ("mark_lsn", DataType::Int64),
        ("history", DataType::Text),
    ];
    let column = |(source, (name, of)): (usize, (&str, DataType))| OutputColumn {
        name: name.to_owned(),
        column_type: of.into(),
        source,
    };
    columns.into_iter().enumerate().map(column).collect()
}

/// A row for each node whose rows are in the lake.
pub(crate) fn cut_rows(cut: &Cut) -> Vec<Row> {
    let row = |(node, mark): (&onrush_lake::NodeId, &onrush_lake::Mark)| {
        vec![
            cut.snapshot_id().map_or(Value::Null, Value::Int64),
            Value::Int32(node.0.cast_signed()),
            Value::Int64(i64::try_from(mark.lsn).unwrap_or(i64::MAX)),
            Value::from(format!("{:032x}", mark.history)),
        ]
    };
    cut.marks().iter().map(row).collect()
}

/// A statement that gives all rows to another engine, those that are on their nodes still among them.
///
/// # Errors
/// An engine that is not known.
pub(crate) fn statement_for(
    engine: &str,
    cut: &Cut,
    attachment: &Attachment,
    table: &Table,
) -> Result<String> {
    if !engine.eq_ignore_ascii_case("trino") {
        let message = format!("there is no statement for {engine:?}");
        let told = SqlError::new(state::INVALID_PARAMETER_VALUE, message);
        return Err(told.with_hint("There is one for 'trino'."));
    }
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let definition = table.definition();
    let columns: Vec<_> = definition.shown_columns().map(|at| &definition.columns()[at]).collect();
    let added = ["_node", "_lsn", "_at"].map(quoted).join(", ");
    let cold = columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ");
    // The types that the Iceberg table has.
    let hot = columns.iter().map(|column| {
        let name = quoted(&column.name);
        match column.data_type {
            DataType::Oid => format!("{name}::bigint AS {name}"),
            DataType::Char(_)
            | DataType::Name
            | DataType::Json
            | DataType::Jsonb
            | DataType::Enum(_) => format!("{name}::text AS {name}"),
            _ => name,
        }
    });
    let hot = hot.collect::<Vec<_>>().join(", ");
    let name = attachment.name.rsplit_once('.').unwrap_or_default();
    let mut parts = Vec::new();
    if let Some(snapshot_id) = cut.snapshot_id() {
        parts.push(format!(
            "SELECT {cold}, {added}\nFROM {}.{}.{} FOR VERSION AS OF {snapshot_id}",
            quoted(&attachment.catalogue),
            quoted(name.0),
            quoted(name.1)
        ));
    }
    for (node, mark) in cut.marks() {
        let query = format!(
            "SELECT {hot}, {added} FROM {SCHEMA}.{} WHERE _node = {node} AND _lsn >= {}",
            quoted(table.name()),
            mark.lsn
        );
        parts.push(format!(
            "SELECT {cold}, {added}\nFROM TABLE(node_{node}.system.query(query => '{}'))",
            query.replace('\'', "''")
        ));
    }
    Ok(parts.join("\nUNION ALL\n"))
}
