//! Functions that the server brings along, a row at a time: those of the system's catalogue.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use onrush::Value;

use super::argument_columns;
use crate::columns::ColumnBuilder;
use crate::statement::Client;
use crate::types::{ColumnType, arrow_type, field};
use crate::values::value_at;

type Call = dyn Fn(&[Value<'_>]) -> crate::Result<Value<'static>> + Send + Sync;
type CallOfClient = dyn Fn(&Client, &[Value<'_>]) -> crate::Result<Value<'static>> + Send + Sync;

/// A function that takes any arguments, and makes one value of them.
#[derive(Clone)]
pub struct SystemFunction {
    name: &'static str,
    returns: ColumnType,
    call: Arc<Call>,
    /// Of a function that depends on who asks; before each execution it becomes one that does not.
    of_client: Option<Arc<CallOfClient>>,
    signature: Signature,
}

impl SystemFunction {
    /// A function of this name, in lower case. What it makes is of the type `returns`, or NULL.
    pub fn new(
        name: &'static str,
        returns: ColumnType,
        call: impl Fn(&[Value<'_>]) -> Value<'static> + Send + Sync + 'static,
    ) -> SystemFunction {
        SystemFunction::fallible(name, returns, move |given| Ok(call(given)))
    }

    /// As [`new`](Self::new), for a function that not all values can be given to.
    pub(crate) fn fallible(
        name: &'static str,
        returns: ColumnType,
        call: impl Fn(&[Value<'_>]) -> crate::Result<Value<'static>> + Send + Sync + 'static,
    ) -> SystemFunction {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        let signature = Signature::one_of(any, Volatility::Stable);
        SystemFunction { name, returns, call: Arc::new(call), of_client: None, signature }
    }

    /// As [`new`](Self::new), for a function that depends on who asks.
    pub fn of_client(
        name: &'static str,
        returns: ColumnType,
        call: impl Fn(&Client, &[Value<'_>]) -> Value<'static> + Send + Sync + 'static,
    ) -> SystemFunction {
        SystemFunction::fallible_of_client(name, returns, move |client, given| {
            Ok(call(client, given))
        })
    }

    /// As [`of_client`](Self::of_client), for a function that not all values can be given to.
    pub fn fallible_of_client(
        name: &'static str,
        returns: ColumnType,
        call: impl Fn(&Client, &[Value<'_>]) -> crate::Result<Value<'static>> + Send + Sync + 'static,
    ) -> SystemFunction {
        let unbound = SystemFunction::new(name, returns, |_| Value::Null);
        SystemFunction { of_client: Some(Arc::new(call)), ..unbound }
    }

    /// The same function, which makes something else with each call; `call` where it is not known who asks.
    #[must_use]
    pub fn volatile(
        mut self,
        call: impl Fn(&[Value<'_>]) -> crate::Result<Value<'static>> + Send + Sync + 'static,
    ) -> SystemFunction {
        self.signature.volatility = Volatility::Volatile;
        self.call = Arc::new(call);
        self
    }

    /// Whether it has to know who asks.
    pub(crate) fn is_of_client(&self) -> bool {
        self.of_client.is_some()
    }

    /// The same function for one client; none for one that does not depend on who asks.
    pub(crate) fn bound_to(&self, client: &Client) -> Option<SystemFunction> {
        let (call, client) = (Arc::clone(self.of_client.as_ref()?), client.clone());
        let bound = move |given: &[Value<'_>]| call(&client, given);
        Some(SystemFunction { call: Arc::new(bound), of_client: None, ..self.clone() })
    }

    /// The same function, which always makes the same of the same.
    #[must_use]
    pub fn immutable(mut self) -> SystemFunction {
        self.signature.volatility = Volatility::Immutable;
        self
    }

    pub(crate) fn into_udf(self) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(self))
    }
}

impl fmt::Debug for SystemFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl PartialEq for SystemFunction {
    fn eq(&self, other: &SystemFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for SystemFunction {}

impl Hash for SystemFunction {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.name.hash(hasher);
    }
}

impl ScalarUDFImpl for SystemFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(arrow_type(self.returns))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(field(self.name, self.returns, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = argument_columns(&args)?;
        let mut made = ColumnBuilder::new(self.returns, args.number_rows)?;
        let mut row = Vec::with_capacity(columns.len());
        for at in 0..args.number_rows {
            row.clear();
            for (array, column) in &columns {
                row.push(value_at(array, at, *column)?);
            }
            made.append(&(self.call)(&row)?)?;
        }
        Ok(ColumnarValue::Array(made.finish()))
    }
}
