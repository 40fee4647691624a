//! Plans by the shapes of statements, for clients that write each call's constants into the text of a simple query.
//!
//! The first time a shape is seen it is noted; the second time it is planned with parameters, and from then on its
//! constants are bound to that plan. That must mean what planning the text would mean, so only plans of the short ways
//! are taken, in which each constant is a value of a known type by itself. A constant that cannot be read as that type
//! goes the way of its text, which tells what is wrong with it, and where.

use std::collections::HashMap;
use std::sync::Arc;

use onrush::DataType;
use onrush_query::style::{self, ClientEncoding};
use tokio::io::{AsyncRead, AsyncWrite};

use super::extended::Prepared;
use super::memory::{Part, parsed_bytes};
use super::run::Manner;
use super::{Connection, Stop};
use crate::clients;
use crate::execute::Backend;
use crate::sql::shape::{self, Shape};
use crate::sql::{self, Bound, Operand, Parameters};
use crate::values::Formats;

/// Most shapes that are remembered for one client.
const SHAPES_MAX: usize = 64;

/// The shapes of one client's statements.
#[derive(Default)]
pub(super) struct Shapes {
    by_text: HashMap<Box<str>, Known>,
}

/// What is known of a shape.
enum Known {
    /// It was seen.
    Once,
    /// It has no plan of a short way, as of this version of all definitions.
    Other(u64),
    Planned(Arc<PlannedShape>),
}

/// A shape that was planned.
pub(super) struct PlannedShape {
    prepared: Arc<Prepared>,
    /// Of all definitions, when it was planned.
    version: u64,
    /// The type of each parameter.
    types: Vec<DataType>,
}

impl Shapes {
    /// What the plans take in memory, about.
    pub(super) fn bytes(&self) -> usize {
        let planned = |known: &Known| match known {
            Known::Planned(planned) => planned.prepared.bytes(),
            Known::Once | Known::Other(_) => 0,
        };
        self.by_text.values().map(planned).sum()
    }

    pub(super) fn clear(&mut self) {
        self.by_text.clear();
    }

    fn put(&mut self, text: &str, known: Known) {
        if self.by_text.len() >= SHAPES_MAX && !self.by_text.contains_key(text) {
            self.clear();
        }
        self.by_text.insert(text.into(), known);
    }
}

impl PlannedShape {
    /// None if the plan is not one of a short way, or a parameter is something else in it than a value of its own.
    fn new(prepared: Prepared, version: u64) -> Option<PlannedShape> {
        let mut types = vec![None; prepared.oids.len()];
        for operand in prepared.plan.operands()? {
            if let Operand::Parameter(index, data_type) = operand {
                *types.get_mut(*index)? = Some(*data_type);
            }
        }
        let types = types.into_iter().collect::<Option<_>>()?;
        Some(PlannedShape { prepared: Arc::new(prepared), version, types })
    }

    /// Whether its names and the session's style mean what they meant.
    fn is_current(&self, version: u64, backend: &Backend) -> bool {
        let is_same_style = *self.prepared.style == *backend.settings.style;
        self.version == version && is_same_style && !self.prepared.is_stale(backend)
    }

    /// The constants as parameters; none where one is not what the plan takes in its place.
    fn bind(&self, shape: Shape) -> Option<Bound> {
        let is_taken = |(constant, data_type): (&shape::Constant, &DataType)| {
            !constant.is_number || is_of_digits(*data_type)
        };
        if shape.constants.len() != self.types.len()
            || !shape.constants.iter().zip(&self.types).all(is_taken)
        {
            return None;
        }
        let bound = Bound {
            message: shape.values,
            values: shape.constants.into_iter().map(|constant| Some(constant.place)).collect(),
            formats: Formats::TEXT,
            oids: Arc::clone(&self.prepared.oids),
            encoding: ClientEncoding::Utf8,
        };
        let types = self.types.iter().enumerate();
        let all_read = types.into_iter().all(|(index, it)| bound.value(index, *it).is_ok());
        all_read.then_some(bound)
    }
}

/// Whether digits without quotes are read as those in quotes.
fn is_of_digits(data_type: DataType) -> bool {
    matches!(data_type, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Runs a simple query by the plan of its shape. False, and nothing has been done, where there is no such plan.
    pub(super) async fn run_by_shape(
        &mut self,
        text: &str,
        shown: &Arc<str>,
    ) -> std::result::Result<bool, Stop> {
        // Names may mean a transaction's own tables in it, and a serializable statement has a transaction of its own.
        if self.backend.seen.is_own() || self.backend.is_serializable() {
            return Ok(false);
        }
        let Some(shape) = shape::of(text) else { return Ok(false) };
        style::set_current(&self.backend.settings.style);
        self.backend.look_if_old();
        let Some(planned) = self.planned_shape(&shape) else { return Ok(false) };
        let Some(bound) = planned.bind(shape) else { return Ok(false) };
        let plan = &planned.prepared.plan;
        self.backend.begin_statement(shown);
        self.backend.meet_definitions(plan)?;
        if planned.prepared.is_stale(&self.backend) {
            return Ok(false);
        }
        let is_alone = !self.backend.is_in_transaction();
        let answer = match self.backend.execute(plan, &bound).await {
            // At this very moment.
            Err(error) if error.is_table_changed() && is_alone => return Ok(false),
            answer => answer?,
        };
        let manner = Manner { formats: &Formats::TEXT, rows_max: None, is_simple: true };
        self.answer(answer, &manner).await?;
        Ok(true)
    }

    /// The plan of a shape that was seen before.
    fn planned_shape(&mut self, shape: &Shape) -> Option<Arc<PlannedShape>> {
        let version = self.backend.definitions_version();
        match self.shapes.by_text.get(shape.text.as_str()) {
            None => {
                self.shapes.put(&shape.text, Known::Once);
                return None;
            }
            Some(Known::Other(known)) if *known == version => return None,
            Some(Known::Planned(planned)) if planned.is_current(version, &self.backend) => {
                return Some(Arc::clone(planned));
            }
            // Seen once, or known of older definitions or another style.
            Some(_) => {}
        }
        let planned = self.plan_shape(&shape.text, version).map(Arc::new);
        let known = planned.clone().map_or(Known::Other(version), Known::Planned);
        self.shapes.put(&shape.text, known);
        self.note_known();
        planned
    }

    /// Whatever is wrong with it is told of the text.
    fn plan_shape(&self, text: &str, version: u64) -> Option<PlannedShape> {
        let mut statements = sql::read(text).ok()?.into_iter();
        let (parsed, None) = (statements.next()?, statements.next()) else { return None };
        let shown = (clients::shown(text), parsed_bytes(text));
        let prepared = self.prepare(Some(parsed), shown, Parameters::declared(Vec::new()));
        PlannedShape::new(prepared.ok()?, version)
    }

    /// Counts what is kept of statements.
    pub(super) fn note_known(&mut self) {
        self.wire.memory.note(Part::Known, self.known.bytes() + self.shapes.bytes());
    }
}
