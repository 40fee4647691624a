//! A definition compiled for encoding: offsets, and the row of all defaults made once.

use std::sync::Arc;

use super::{DefaultValue, Earlier, KeyOrder, TableDefinition};
use crate::key;
use crate::row::field;
use crate::{ColumnName, DataType, KEY_BYTES_MAX, KeyGenerator, ROW_BYTES_MAX, TypeError};

/// A table definition with everything that encoding and decoding of rows needs. Immutable; share
/// it in an `Arc`.
///
/// Invariants
/// 1. `template` is the row of constant defaults; other columns are zero bytes in it.
/// 2. `stored` are the columns outside the key, in declared order.
#[derive(Debug, Clone)]
pub struct Schema {
    pub(crate) definition: Arc<TableDefinition>,
    pub(crate) keys: Box<[KeyColumn]>,
    pub(crate) stored: Box<[StoredColumn]>,
    pub(crate) places: Box<[Place]>,
    pub(crate) layout: RowLayout,
    pub(crate) template: Box<[u8]>,
    /// A bitmap like the row's: a NULL in one of these columns is not what the template says.
    pub(crate) logged_nulls: Box<[u8]>,
    /// None when some column has neither default nor NULL, or computes a text or a default
    /// of variable length: then a row of all defaults takes the long way.
    pub(crate) all_defaults: Option<AllDefaults>,
    /// How rows of earlier versions are read, oldest first.
    pub(crate) earlier: Box<[Earlier]>,
}

/// A key column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyColumn {
    pub(crate) column: usize,
    pub(crate) data_type: DataType,
    /// Of the entries of an index: how it is ordered, NULL included.
    pub(crate) order: Option<KeyOrder>,
}

/// A column outside the key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredColumn {
    /// Position among all columns.
    pub(crate) column: usize,
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
    pub(crate) default: DefaultKind,
    pub(crate) field: Field,
}

/// Where a stored column's bytes are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Field {
    /// At a fixed offset from the start of the row.
    Fixed { offset: usize, width: usize },
    /// The nth of the variable columns.
    Variable { ordinal: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultKind {
    /// In the template.
    Constant,
    /// Computed per row.
    Computed,
    /// Computed of the other columns once they are known: NULL until then.
    Generated,
    /// There is none, and NULL is not allowed.
    Missing,
}

/// Where a column of the table is found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// Position in the key.
    Key(usize),
    /// Position in `stored`.
    Stored(usize),
}

/// The parts of a row, as offsets from its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLayout {
    /// The NULL bitmap: after the version.
    pub(crate) nulls: usize,
    /// The fixed-width area.
    pub(crate) fixed: usize,
    /// One 16-bit end for each variable column.
    pub(crate) ends: usize,
    /// The bytes of the variable columns.
    pub(crate) variable: usize,
}

/// The parts of a wide row, as offsets from its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WideLayout {
    /// The bitmap of columns that stand elsewhere.
    pub(crate) elsewhere: usize,
    /// The fixed-width area.
    pub(crate) fixed: usize,
    /// One 32-bit end for each variable column.
    pub(crate) ends: usize,
    /// The bytes of the variable columns.
    pub(crate) variable: usize,
}

impl RowLayout {
    /// Bytes of a bitmap.
    #[inline]
    fn bitmap_bytes(&self) -> usize {
        self.fixed - self.nulls
    }

    /// How much further behind a column of fixed width stands.
    #[inline]
    pub(crate) fn shift<const WIDE: bool>(&self) -> usize {
        if WIDE { self.bitmap_bytes() } else { 0 }
    }

    pub(crate) fn variable_count(&self) -> usize {
        (self.variable - self.ends) / 2
    }

    pub(crate) fn wide(&self) -> WideLayout {
        let ends = self.ends + self.bitmap_bytes();
        WideLayout {
            elsewhere: self.fixed,
            fixed: self.fixed + self.bitmap_bytes(),
            ends,
            variable: ends + 4 * self.variable_count(),
        }
    }
}

/// What a row of all defaults still needs.
#[derive(Debug, Clone)]
pub(crate) struct AllDefaults {
    /// Positions in `stored` of the computed defaults; all of fixed width.
    pub(crate) computed: Box<[usize]>,
    /// The elided form's bitmap when exactly those columns are present.
    pub(crate) bitmap: Box<[u8]>,
}

impl Schema {
    /// Compiles a definition.
    ///
    /// # Errors
    /// [`TypeError::RowTooLarge`] and [`TypeError::KeyTooLarge`] when no row could ever fit.
    pub fn new(definition: Arc<TableDefinition>) -> Result<Schema, TypeError> {
        let keys: Box<[KeyColumn]> = definition
            .primary_key()
            .iter()
            .enumerate()
            .map(|(position, &column)| KeyColumn {
                column,
                data_type: definition.columns()[column].data_type,
                order: definition.key_order(position),
            })
            .collect();
        let (stored, places, layout) = lay_out(&definition);
        let mut schema = Schema {
            definition,
            keys,
            stored,
            places,
            layout,
            template: Box::default(),
            logged_nulls: Box::default(),
            all_defaults: None,
            earlier: Box::default(),
        };
        schema.earlier = Earlier::all_of(&schema.definition)?;
        schema.check_sizes()?;
        schema.template = schema.make_template()?;
        schema.logged_nulls = schema.find_logged_nulls();
        schema.all_defaults = schema.plan_all_defaults();
        Ok(schema)
    }

    /// The definition that was compiled.
    pub fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        self.definition.name()
    }

    /// The schema version that rows are written with.
    pub fn version(&self) -> u16 {
        self.definition.version()
    }

    /// How rows of another version are read; None for versions that there never were.
    #[cold]
    pub(crate) fn earlier(&self, version: u16) -> Option<&Earlier> {
        self.earlier.iter().find(|earlier| earlier.has(version))
    }

    /// How many columns the table has.
    pub fn column_count(&self) -> usize {
        self.places.len()
    }

    /// The type of a column.
    pub fn data_type(&self, column: usize) -> DataType {
        self.definition.columns()[column].data_type
    }

    /// A generator for a column whose default is a key strategy; None for other columns. Each
    /// session needs its own.
    ///
    /// # Errors
    /// [`TypeError::NoRandomness`].
    pub fn key_generator(&self, column: usize) -> Result<Option<KeyGenerator>, TypeError> {
        let found = &self.definition.columns()[column];
        match found.default {
            DefaultValue::Key(strategy) => {
                KeyGenerator::new(strategy, found.data_type, self.column_name(column)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The full name of a column, for messages.
    #[cold]
    pub(crate) fn column_name(&self, column: usize) -> ColumnName {
        self.definition.column_name(column)
    }

    fn check_sizes(&self) -> Result<(), TypeError> {
        let key_bytes: usize = self
            .keys
            .iter()
            // An empty text still needs its end mark.
            .map(|column| key::width_bytes(column.data_type).unwrap_or(2))
            .sum();
        let table = || self.name().into();
        if key_bytes > KEY_BYTES_MAX {
            let (bytes, limit) = (key_bytes, KEY_BYTES_MAX);
            return Err(TypeError::KeyTooLarge { table: table(), bytes, limit });
        }
        let mut key = Vec::new();
        for (position, column) in self.keys.iter().enumerate() {
            let default = &self.definition.columns()[column.column].default;
            if let DefaultValue::Constant(value) = default {
                self.push_key(position, value, &mut key)?;
            }
        }
        let bytes = key_bytes + self.layout.variable;
        if bytes > ROW_BYTES_MAX {
            return Err(TypeError::RowTooLarge { table: table(), bytes, limit: ROW_BYTES_MAX });
        }
        Ok(())
    }

    fn make_template(&self) -> Result<Box<[u8]>, TypeError> {
        let mut row = vec![0; self.layout.variable];
        row[..2].copy_from_slice(&self.version().to_le_bytes());
        for (index, stored) in self.stored.iter().enumerate() {
            match &self.definition.columns()[stored.column].default {
                DefaultValue::Constant(value) if !value.is_null() => {
                    self.put(index, value, &mut row)?;
                }
                DefaultValue::None | DefaultValue::Constant(_) if stored.nullable => {
                    self.put_null(index, &mut row);
                }
                // Filled in per row; a variable column is empty until then.
                _ => {
                    if let Field::Variable { ordinal } = stored.field {
                        field::set_end(&self.layout, &mut row, ordinal);
                    }
                }
            }
        }
        if row.len() > ROW_BYTES_MAX {
            return Err(TypeError::RowTooLarge {
                table: self.name().into(),
                bytes: row.len(),
                limit: ROW_BYTES_MAX,
            });
        }
        Ok(row.into())
    }

    fn find_logged_nulls(&self) -> Box<[u8]> {
        let template_nulls = &self.template[self.layout.nulls..self.layout.fixed];
        let mut logged = vec![0; template_nulls.len()];
        for (index, stored) in self.stored.iter().enumerate() {
            if stored.default != DefaultKind::Constant || !field::bit(template_nulls, index) {
                field::set_bit(&mut logged, index);
            }
        }
        logged.into()
    }

    fn plan_all_defaults(&self) -> Option<AllDefaults> {
        let columns = self.definition.columns();
        let key_missing =
            self.keys.iter().any(|key| columns[key.column].default == DefaultValue::None);
        let long_way = self.stored.iter().any(|stored| match stored.default {
            DefaultKind::Constant => false,
            // Text is not logged as it is stored, so it cannot be copied from the row.
            DefaultKind::Computed => {
                stored.data_type.is_text() || matches!(stored.field, Field::Variable { .. })
            }
            DefaultKind::Missing | DefaultKind::Generated => true,
        });
        if key_missing || long_way {
            return None;
        }
        let mut bitmap = vec![0u8; self.elided_bitmap_bytes()];
        let mut computed = Vec::new();
        for (index, stored) in self.stored.iter().enumerate() {
            if stored.default == DefaultKind::Computed {
                field::set_bit(&mut bitmap, index + 1);
                computed.push(index);
            }
        }
        Some(AllDefaults { computed: computed.into(), bitmap: bitmap.into() })
    }
}

fn lay_out(definition: &TableDefinition) -> (Box<[StoredColumn]>, Box<[Place]>, RowLayout) {
    let columns = definition.columns();
    let stored_count = columns.len() - definition.primary_key().len();
    let nulls = 2;
    let fixed = nulls + stored_count.div_ceil(8);
    let (mut offset, mut variable_count) = (fixed, 0);
    let (mut stored, mut places) = (Vec::with_capacity(stored_count), Vec::new());
    for (index, column) in columns.iter().enumerate() {
        if let Some(position) = definition.primary_key().iter().position(|&key| key == index) {
            places.push(Place::Key(position));
            continue;
        }
        let field = match column.data_type.fixed_width_bytes() {
            Some(width) => {
                offset += width;
                Field::Fixed { offset: offset - width, width }
            }
            None => {
                variable_count += 1;
                Field::Variable { ordinal: variable_count - 1 }
            }
        };
        let default = match &column.default {
            DefaultValue::Constant(_) => DefaultKind::Constant,
            DefaultValue::None if column.nullable => DefaultKind::Constant,
            DefaultValue::None => DefaultKind::Missing,
            DefaultValue::Now | DefaultValue::Key(_) | DefaultValue::Expression(_) => {
                DefaultKind::Computed
            }
            DefaultValue::Generated(_) => DefaultKind::Generated,
        };
        places.push(Place::Stored(stored.len()));
        stored.push(StoredColumn {
            column: index,
            data_type: column.data_type,
            nullable: column.nullable,
            default,
            field,
        });
    }
    let layout = RowLayout { nulls, fixed, ends: offset, variable: offset + 2 * variable_count };
    (stored.into(), places.into(), layout)
}
