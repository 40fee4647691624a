//! What the log says of one row.

use onrush_types::{EncodedRow, Schema};

use crate::catalog::Table;
use crate::engine::Engine;
use crate::logging::{RecordKind, push_row};
use crate::units::ObjectId;

/// Which form of the encoded row the log takes.
#[inline]
pub(super) fn row_body<'r>(
    engine: &Engine,
    schema: &Schema,
    encoded: &'r EncodedRow,
) -> (RecordKind, &'r [u8]) {
    if engine.options.elide_defaults {
        (elided_kind(schema), &encoded.elided)
    } else {
        (RecordKind::Put, &encoded.row)
    }
}

/// The record of an elided row of this version of a table.
#[inline]
pub(super) fn elided_kind(schema: &Schema) -> RecordKind {
    match schema.elided_names_version() {
        false => RecordKind::PutElided,
        true => RecordKind::PutElidedVersion,
    }
}

/// A row record with its length in front, as a group holds it; none for rows that are not logged.
pub(super) fn framed_row(
    table: &Table,
    kind: RecordKind,
    object: ObjectId,
    key: &[u8],
    body: &[u8],
) -> Vec<u8> {
    if !table.entry.tree.is_logged() {
        return Vec::new();
    }
    let mut record = Vec::with_capacity(key.len() + body.len() + 16);
    push_row(kind, object, key, body, &mut record);
    record
}
