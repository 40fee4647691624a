//! The columns of a lake table, as Iceberg sees them.
//!
//! | kind | Iceberg v2 | Arrow |
//! |---|---|---|
//! | Boolean; Int32; Int64 | boolean; int; long | Boolean; Int32; Int64 |
//! | Float32; Float64; Decimal | float; double; decimal(p,s) | the same; Decimal128(p,s) |
//! | Text; Bytes; Uuid | string; binary; uuid | Utf8; LargeBinary; FixedSizeBinary(16) |
//! | Date; TimeMicros | date; time | Date32; Time64(us) |
//! | TimestampMicros; TimestamptzMicros | timestamp; timestamptz | Timestamp(us), also UTC |
//!
//! Three columns come behind: [`NODE_COLUMN`], [`LSN_COLUMN`] and [`AT_COLUMN`]. `_lsn` orders the
//! rows of one node; between nodes only `_at` does, as far as their clocks agree. The table is
//! partitioned by the day of `_at`, because that is what retention and most queries cut by, and
//! because a round then writes into one partition, seldom into two.

use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform, Type, UnboundPartitionSpec};

use crate::error::LakeError;

/// The node a row comes from.
pub const NODE_COLUMN: &str = "_node";
/// The row's LSN on its node.
pub const LSN_COLUMN: &str = "_lsn";
/// When the round was made that brought the row, by its node's clock.
pub const AT_COLUMN: &str = "_at";
/// The partition field. Other writers of Iceberg name it so as well.
const PARTITION_FIELD: &str = "_at_day";
/// Iceberg has no decimals of more digits.
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// A column of the node's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LakeColumn {
    /// Its name, in both tables.
    pub name: String,
    /// What it holds.
    pub kind: LakeKind,
    /// Whether rows may have NULL in it.
    pub is_nullable: bool,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LakeKind {
    /// `boolean`
    Boolean,
    /// `smallint` and `integer`
    Int32,
    /// `bigint`
    Int64,
    /// `real`
    Float32,
    /// `double precision`
    Float64,
    /// `numeric(precision, scale)`
    Decimal {
        /// Digits in all, at most [`DECIMAL_DIGITS_MAX`].
        precision: u8,
        /// Digits behind the point, at most `precision`.
        scale: u8,
    },
    /// Everything that is written as text.
    Text,
    /// `bytea`
    Bytes,
    /// `uuid`
    Uuid,
    /// `date`
    Date,
    /// `time`, in microseconds
    TimeMicros,
    /// `timestamp`, in microseconds
    TimestampMicros,
    /// `timestamptz`, in microseconds
    TimestamptzMicros,
}

impl LakeKind {
    /// The Iceberg type that means the same.
    pub(crate) fn iceberg_type(self) -> PrimitiveType {
        match self {
            LakeKind::Boolean => PrimitiveType::Boolean,
            LakeKind::Int32 => PrimitiveType::Int,
            LakeKind::Int64 => PrimitiveType::Long,
            LakeKind::Float32 => PrimitiveType::Float,
            LakeKind::Float64 => PrimitiveType::Double,
            LakeKind::Decimal { precision, scale } => {
                PrimitiveType::Decimal { precision: precision.into(), scale: scale.into() }
            }
            LakeKind::Text => PrimitiveType::String,
            LakeKind::Bytes => PrimitiveType::Binary,
            LakeKind::Uuid => PrimitiveType::Uuid,
            LakeKind::Date => PrimitiveType::Date,
            LakeKind::TimeMicros => PrimitiveType::Time,
            LakeKind::TimestampMicros => PrimitiveType::Timestamp,
            LakeKind::TimestamptzMicros => PrimitiveType::Timestamptz,
        }
    }

    /// Iceberg forbids it for numbers that are not equal to themselves.
    fn may_identify(self) -> bool {
        !matches!(self, LakeKind::Float32 | LakeKind::Float64)
    }
}

/// The three columns that come behind those of the node's table.
pub(crate) fn added_columns() -> [LakeColumn; 3] {
    [
        (NODE_COLUMN, LakeKind::Int32),
        (LSN_COLUMN, LakeKind::Int64),
        (AT_COLUMN, LakeKind::TimestamptzMicros),
    ]
    .map(|(name, kind)| LakeColumn { name: name.to_owned(), kind, is_nullable: false })
}

/// The schema of a new Iceberg table. The columns named by `key` identify a row, all or none of
/// them: a part of a key identifies nothing.
///
/// # Errors
/// A name is there twice or is one of the three added, a key's column is not among the columns, or
/// a decimal has too many digits.
pub fn iceberg_schema(columns: &[LakeColumn], key: &[&str]) -> Result<Schema, LakeError> {
    check_columns(columns)?;
    let added = added_columns();
    let all = || columns.iter().chain(&added);
    let mut key_ids = Vec::with_capacity(key.len());
    let mut is_identifying = true;
    for name in key {
        let Some((place, column)) = columns.iter().enumerate().find(|(_, it)| it.name == *name)
        else {
            return Err(mismatch(name, "a column of the key", "no such column"));
        };
        is_identifying &= !column.is_nullable && column.kind.may_identify();
        key_ids.push(field_id(place)?);
    }
    if !is_identifying {
        key_ids.clear();
    }
    let mut fields = Vec::with_capacity(columns.len() + added.len());
    for (place, column) in all().enumerate() {
        let kind = Type::Primitive(column.kind.iceberg_type());
        let field = NestedField::new(field_id(place)?, &column.name, kind, !column.is_nullable);
        fields.push(field.into());
    }
    Schema::builder()
        .with_fields(fields)
        .with_identifier_field_ids(key_ids)
        .build()
        .map_err(|cause| LakeError::Internal(format!("cannot make the Iceberg schema: {cause}")))
}

/// By the day of `_at`.
pub(crate) fn partition_spec(schema: &Schema) -> Result<UnboundPartitionSpec, LakeError> {
    let internal = |cause: &dyn std::fmt::Display| {
        LakeError::Internal(format!("cannot partition by {AT_COLUMN}: {cause}"))
    };
    let Some(at) = schema.field_by_name(AT_COLUMN) else {
        return Err(internal(&"the schema lacks it"));
    };
    Ok(UnboundPartitionSpec::builder()
        // The REST protocol says that it may be missing, and its reference server wants it.
        .with_spec_id(0)
        .add_partition_field(at.id, PARTITION_FIELD, Transform::Day)
        .map_err(|cause| internal(&cause))?
        .build())
}

/// Whether rows of these columns can be written into a table of this schema: each column and the
/// three added must be there by name, with the same type, and nullable if NULL may come. Columns
/// that only the Iceberg table has must take NULL.
///
/// # Errors
/// [`LakeError::TableMismatch`] names the first column that does not fit.
pub fn check_table(schema: &Schema, columns: &[LakeColumn]) -> Result<(), LakeError> {
    check_columns(columns)?;
    let added = added_columns();
    let all = || columns.iter().chain(&added);
    for column in all() {
        let expected = column.kind.iceberg_type();
        let Some(field) = schema.field_by_name(&column.name) else {
            return Err(mismatch(&column.name, &expected.to_string(), "no such column"));
        };
        if field.field_type.as_primitive_type() != Some(&expected) {
            let found = field.field_type.to_string();
            return Err(mismatch(&column.name, &expected.to_string(), &found));
        }
        if field.required && column.is_nullable {
            let expected = format!("{expected} that may be NULL");
            return Err(mismatch(
                &column.name,
                &expected,
                &format!("required {}", field.field_type),
            ));
        }
    }
    for field in schema.as_struct().fields() {
        if field.required && !all().any(|column| column.name == field.name) {
            let found = format!("required {}", field.field_type);
            return Err(mismatch(&field.name, "a column that may be NULL", &found));
        }
    }
    Ok(())
}

/// What no table of the lake could have.
pub(crate) fn check_columns(columns: &[LakeColumn]) -> Result<(), LakeError> {
    for (place, column) in columns.iter().enumerate() {
        let name = column.name.as_str();
        if [NODE_COLUMN, LSN_COLUMN, AT_COLUMN].contains(&name) {
            return Err(mismatch(name, "a name that the drain does not add itself", name));
        }
        if columns.iter().take(place).any(|other| other.name == name) {
            return Err(mismatch(name, "names that differ", "the name twice"));
        }
        if let LakeKind::Decimal { precision, scale } = column.kind
            && !((1..=DECIMAL_DIGITS_MAX).contains(&precision) && scale <= precision)
        {
            let expected = format!("at most {DECIMAL_DIGITS_MAX} digits");
            return Err(mismatch(name, &expected, &format!("numeric({precision},{scale})")));
        }
    }
    Ok(())
}

/// Iceberg counts from 1. The catalogue may give other ids, which hold then.
fn field_id(place: usize) -> Result<i32, LakeError> {
    i32::try_from(place + 1).map_err(|_| LakeError::Internal("too many columns".to_owned()))
}

pub(crate) fn mismatch(column: &str, expected: &str, found: &str) -> LakeError {
    LakeError::TableMismatch {
        column: column.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: LakeKind, is_nullable: bool) -> LakeColumn {
        LakeColumn { name: name.to_owned(), kind, is_nullable }
    }

    #[test]
    fn a_key_that_iceberg_allows_identifies() {
        let columns = [
            column("id", LakeKind::Int64, false),
            column("part", LakeKind::Text, false),
            column("weight", LakeKind::Float64, false),
            column("note", LakeKind::Text, true),
        ];
        let identifying = |key: &[&str]| {
            let schema = iceberg_schema(&columns, key).unwrap();
            let mut ids: Vec<i32> = schema.identifier_field_ids().collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(identifying(&["id", "part"]), [1, 2]);
        assert!(identifying(&["id", "weight"]).is_empty());
        assert!(identifying(&["note"]).is_empty());
        assert!(iceberg_schema(&columns, &["other"]).is_err());
    }

    #[test]
    fn a_new_table_fits_its_columns() {
        let columns = [
            column("id", LakeKind::Uuid, false),
            column("price", LakeKind::Decimal { precision: 38, scale: 2 }, true),
        ];
        let schema = iceberg_schema(&columns, &["id"]).unwrap();
        check_table(&schema, &columns).unwrap();
        assert!(partition_spec(&schema).is_ok());
    }

    #[test]
    fn a_table_that_does_not_fit_is_refused_by_column() {
        let columns = [column("id", LakeKind::Int64, false), column("note", LakeKind::Text, true)];
        let schema = iceberg_schema(&columns, &["id"]).unwrap();
        let refused = |columns: &[LakeColumn]| match check_table(&schema, columns) {
            Err(LakeError::TableMismatch { column, .. }) => column,
            other => panic!("{other:?}"),
        };
        let wider = column("id", LakeKind::Int32, false);
        assert_eq!(refused(&[wider, columns[1].clone()]), "id");
        let nullable = column("id", LakeKind::Int64, true);
        assert_eq!(refused(&[nullable, columns[1].clone()]), "id");
        let more = column("more", LakeKind::Date, true);
        assert_eq!(refused(&[columns[0].clone(), columns[1].clone(), more]), "more");
        // `id` is required, so a table without it cannot fill it.
        assert_eq!(refused(&columns[1..]), "id");
        // `note` may be NULL, so it may be left out.
        check_table(&schema, &columns[..1]).unwrap();
    }

    #[test]
    fn names_and_digits_that_cannot_be_are_refused() {
        for columns in [
            vec![column("_lsn", LakeKind::Int64, false)],
            vec![column("a", LakeKind::Int64, false), column("a", LakeKind::Text, false)],
            vec![column("a", LakeKind::Decimal { precision: 39, scale: 0 }, false)],
            vec![column("a", LakeKind::Decimal { precision: 3, scale: 4 }, false)],
            vec![column("a", LakeKind::Decimal { precision: 0, scale: 0 }, false)],
        ] {
            assert!(iceberg_schema(&columns, &[]).is_err(), "{columns:?}");
        }
    }
}
