//! `@?`, `@@` and the functions of paths of SQL/JSON.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use onrush::{DataType, Value};
use serde_json::Value as Json;

use super::json_parts::read;
use super::json_values::in_one_form;
use super::typed::{Given, TypedFunction};
use crate::array::write_array;
use crate::error::{QueryError, Result};
use crate::json_path::{Fault, JsonPath, Run};
use crate::types::ColumnType;

/// The function that `@?` stands for.
pub(crate) const JSON_PATH_FINDS: &str = "json_path_finds";
/// The function that `@@` stands for.
pub(crate) const JSON_PATH_HOLDS: &str = "json_path_holds";
/// What a path finds, as an array.
pub(crate) const JSON_PATH_ITEMS: &str = "json_path_items";

/// Paths that a thread keeps.
const KEPT_MAX: usize = 64;

thread_local! {
    static KEPT: RefCell<HashMap<String, Rc<JsonPath>>> = RefCell::default();
}

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let boolean = |_: &[ColumnType]| ColumnType::Stored(DataType::Boolean);
    let jsonb = |_: &[ColumnType]| ColumnType::Stored(DataType::Jsonb);
    let texts = |_: &[ColumnType]| ColumnType::Array(DataType::Text);
    let functions = [
        TypedFunction::new(JSON_PATH_FINDS, boolean, |given| {
            check_operand(given, "@?")?;
            Call::new(given, true)?.finds()
        }),
        TypedFunction::new(JSON_PATH_HOLDS, boolean, |given| {
            check_operand(given, "@@")?;
            Call::new(given, true)?.holds()
        }),
        TypedFunction::new("jsonb_path_exists", boolean, |given| Call::new(given, false)?.finds()),
        TypedFunction::new("jsonb_path_match", boolean, |given| Call::new(given, false)?.holds()),
        TypedFunction::new(JSON_PATH_ITEMS, texts, |given| {
            let items = Call::new(given, false)?.items()?;
            let written = items.iter().map(|item| in_one_form(&item.to_string()));
            let written = written.collect::<Result<Vec<_>>>()?;
            Ok(write_array(written.iter().map(Value::as_str)).into())
        }),
        TypedFunction::new("jsonb_path_query_array", jsonb, |given| {
            in_one_form(&Json::Array(Call::new(given, false)?.items()?).to_string())
        }),
        TypedFunction::new("jsonb_path_query_first", jsonb, |given| {
            let first = Call::new(given, false)?.items()?.into_iter().next();
            first.map_or(Ok(Value::Null), |first| in_one_form(&first.to_string()))
        }),
    ];
    functions.into_iter().map(|function| function.strict().into_udf()).collect()
}

/// Text is searched by words with the same operator.
fn check_operand(given: &Given<'_>, operator: &str) -> Result<()> {
    match given.types.first() {
        Some(ColumnType::Stored(DataType::Jsonb)) => Ok(()),
        _ => {
            let message = format!("{operator} of anything but jsonb and a path is not supported");
            Err(QueryError::NotSupported { message })
        }
    }
}

/// JSON, a path, the values of its variables, and whether errors are to be passed over.
struct Call {
    whole: Json,
    path: Rc<JsonPath>,
    variables: Option<Json>,
    is_silent: bool,
}

impl Call {
    fn new(given: &Given<'_>, is_silent: bool) -> Result<Call> {
        let [_, Value::Text(path), rest @ ..] = given.values else {
            let message = "there is no function of a path for values of these types".to_owned();
            return Err(QueryError::UnknownFunction { message });
        };
        let variables = if rest.is_empty() { None } else { Some(read(given, 2)?) };
        if variables.as_ref().is_some_and(|variables| !variables.is_object()) {
            let detail =
                "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
            let error = QueryError::refused("22023", "\"vars\" argument is not an object");
            return Err(error.detail(detail));
        }
        let is_silent = is_silent || rest.get(1) == Some(&Value::Boolean(true));
        Ok(Call { whole: read(given, 0)?, path: kept(path)?, variables, is_silent })
    }

    fn run(&self) -> Run<'_> {
        Run { path: &self.path, root: &self.whole, variables: self.variables.as_ref() }
    }

    fn finds(&self) -> Result<Value<'static>> {
        match self.run().finds() {
            Ok(finds) => Ok(Value::Boolean(finds)),
            Err(Fault::Soft(_)) if self.is_silent => Ok(Value::Null),
            Err(fault) => Err(fault.told()),
        }
    }

    /// What the only item says that a path finds.
    fn holds(&self) -> Result<Value<'static>> {
        match self.items()?.as_slice() {
            [Json::Bool(truth)] => Ok(Value::Boolean(*truth)),
            [Json::Null] => Ok(Value::Null),
            _ if self.is_silent => Ok(Value::Null),
            _ => Err(QueryError::refused("22038", "single boolean result is expected")),
        }
    }

    fn items(&self) -> Result<Vec<Json>> {
        self.run().all_until_fault(self.is_silent).map_err(Fault::told)
    }
}

fn kept(path: &str) -> Result<Rc<JsonPath>> {
    if let Some(known) = KEPT.with_borrow(|kept| kept.get(path).cloned()) {
        return Ok(known);
    }
    let made = Rc::new(JsonPath::new(path)?);
    KEPT.with_borrow_mut(|kept| {
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(path.to_owned(), Rc::clone(&made));
    });
    Ok(made)
}
