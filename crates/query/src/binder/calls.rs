//! Calls of functions: whether there is such a one, and whether it may stand there.

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, ObjectName, Spanned, WindowType,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::Binder;
use super::expression::Place;
use super::from::span_of;
use super::scope::Scope;
use super::signatures::{self, Choice};
use super::types::{self, Given, Type};
use crate::error::{QueryError, Result};
use crate::functions::is_ordered_set;
use crate::outer_calls::calls_outside_queries;
use crate::syntax::{array_of, cast_by_call, is_other_aggregate, is_other_function, unqualified};

/// What kind of function a name is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    OfOneRow,
    Aggregate,
    /// Only of windows.
    Window,
}

impl Binder<'_> {
    pub(super) fn call(
        &mut self,
        call: &Function,
        scope: &Scope<'_>,
        place: Place,
    ) -> Result<Type> {
        let name = function_name(&call.name);
        let span = call.name.0.first().map_or_else(Span::empty, span_of);
        let kind = self.kind(&name);
        let is_aggregate = kind == Some(Kind::Aggregate) && call.over.is_none();
        if is_aggregate {
            check_aggregate(scope, place, span)?;
        }
        if call.over.is_some() {
            check_window(scope, place, span)?;
        }
        let around = (scope.in_aggregate.get(), scope.in_window.get());
        scope.in_aggregate.set(around.0 || is_aggregate);
        scope.in_window.set(around.1 || call.over.is_some());
        let named = if is_aggregate { scope.named.take() } else { None };
        let arguments = self.arguments(call, scope, place);
        if is_aggregate {
            let own = scope.named.get();
            scope.named.set(own.max(named));
            if arguments.is_ok() && !self.is_second && scope.is_outside(own) {
                let message = "an aggregate of columns of the query outside alone is not supported";
                return Err(QueryError::refused("0A000", message).at(span));
            }
        }
        scope.in_aggregate.set(around.0);
        scope.in_window.set(around.1);
        let arguments = arguments?;
        if kind.is_some() && call.within_group.is_empty() {
            let given: Vec<&Expr> = listed(call).collect();
            self.type_constants(&call.name, &name, &given, &arguments)?;
        }
        if is_of_rows(&name) {
            check_rows(place, span)?;
        }
        if name == "coalesce" {
            for given in listed(call) {
                refuse_rows(given, "COALESCE")?;
            }
        }
        if let Some(over) = &call.over {
            self.over(over, scope)?;
        }
        match kind {
            // The clause is refused by its name.
            None if !call.within_group.is_empty() => Ok(Type::Untold),
            None => Err(unknown(&call.name, &arguments)),
            Some(Kind::Window) if call.over.is_none() => {
                let message = format!("window function {name} requires an OVER clause");
                Err(QueryError::refused("42809", message).at(span))
            }
            Some(Kind::OfOneRow) if let Some(clause) = of_many_rows(call) => {
                let message = match clause {
                    "OVER" => format!(
                        "OVER specified, but {name} is not a window function nor an aggregate function"
                    ),
                    _ => format!("{clause} specified, but {name} is not an aggregate function"),
                };
                Err(QueryError::refused("42809", message).at(span))
            }
            Some(kind) => {
                if is_aggregate {
                    scope.aggregates.set(true);
                }
                self.result(kind, &name, call, &arguments)
            }
        }
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        let state = &self.engine.state;
        if state.aggregate_functions().contains_key(name) || is_other_aggregate(name) {
            return Some(Kind::Aggregate);
        }
        if state.window_functions().contains_key(name) {
            return Some(Kind::Window);
        }
        let is_there = state.scalar_functions().contains_key(name)
            || state.higher_order_functions().contains_key(name)
            || makes_rows(name)
            || array_of(name).is_some()
            || is_other_function(name);
        is_there.then_some(Kind::OfOneRow)
    }

    fn result(&self, kind: Kind, name: &str, call: &Function, arguments: &[Type]) -> Result<Type> {
        let state = &self.engine.state;
        // What is written otherwise before it is planned is not asked of what it is planned as.
        if is_other_function(name) || is_other_aggregate(name) || makes_rows(name) {
            return Ok(Type::Untold);
        }
        if is_ordered_set(name) && call.within_group.is_empty() {
            let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
            return Err(QueryError::refused("42809", message));
        }
        // Which is the first argument of what it is planned as.
        if !call.within_group.is_empty() {
            return Ok(Type::Untold);
        }
        let given = match kind {
            _ if name == "count" => match arguments.len() {
                0 if !is_of_all(call) => {
                    let message =
                        "count(*) must be used to call a parameterless aggregate function";
                    return Err(QueryError::refused("42809", message));
                }
                0 | 1 => return Ok(Type::BIGINT),
                _ => Some(Given::NoMatch),
            },
            Kind::Aggregate => {
                state.aggregate_functions().get(name).map(|own| types::of_aggregate(own, arguments))
            }
            Kind::OfOneRow => {
                state.scalar_functions().get(name).map(|own| types::of_scalar(own, arguments))
            }
            Kind::Window => None,
        };
        match given {
            Some(Given::NoMatch) => Err(unknown(&call.name, arguments)),
            Some(Given::Type(own)) => Ok(own),
            None => Ok(Type::Untold),
        }
    }

    fn arguments(&mut self, call: &Function, scope: &Scope<'_>, place: Place) -> Result<Vec<Type>> {
        let mut types = Vec::new();
        match &call.args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(query) => {
                self.query(query, Some(scope))?;
            }
            FunctionArguments::List(list) => {
                for given in &list.args {
                    let (FunctionArg::Unnamed(given)
                    | FunctionArg::Named { arg: given, .. }
                    | FunctionArg::ExprNamed { arg: given, .. }) = given;
                    if let FunctionArgExpr::Expr(given) = given {
                        types.push(self.expression(given, scope, place)?);
                    }
                }
                for clause in &list.clauses {
                    if let FunctionArgumentClause::OrderBy(items) = clause {
                        for item in items {
                            self.expression(&item.expr, scope, place)?;
                        }
                    }
                }
            }
        }
        for item in &call.within_group {
            self.expression(&item.expr, scope, place)?;
        }
        if let Some(filter) = &call.filter {
            self.condition(filter, scope, Place::Filter, "FILTER")?;
        }
        Ok(types)
    }

    /// Gives constants among the arguments the types that the function takes.
    pub(super) fn type_constants(
        &mut self,
        written: &ObjectName,
        name: &str,
        given: &[&Expr],
        arguments: &[Type],
    ) -> Result<()> {
        // A cast reads its constant itself.
        if given.len() != arguments.len() || cast_by_call(name).is_some() {
            return Ok(());
        }
        // A column of constants is text by now.
        let type_of = |(given, own): (&&Expr, &Type)| match own {
            Type::Constant if !is_constant(given) => Type::Untold,
            own => *own,
        };
        let arguments: Vec<Type> = given.iter().zip(arguments).map(type_of).collect();
        let arguments = arguments.as_slice();
        if !arguments.contains(&Type::Constant) {
            return Ok(());
        }
        // DataFusion asks what these come to before constants have the type of what stands beside them.
        if matches!(name, "coalesce" | "greatest" | "least" | "nullif") {
            let told = |argument: &Type| {
                signatures::array(*argument).or_else(|| signatures::of_bytes(*argument))
            };
            if let Some(told) = arguments.iter().find_map(told) {
                given.iter().for_each(|constant| self.constants.add(constant, told.clone()));
            }
            return Ok(());
        }
        let types = match signatures::choose(name, arguments) {
            Choice::Types(types) => types,
            Choice::Ambiguous => return Err(ambiguous(written, arguments)),
            Choice::NoType => {
                let message = "could not determine polymorphic type because input has type unknown";
                return Err(QueryError::refused("42804", message));
            }
            Choice::Unknown => return Ok(()),
        };
        for (given, wanted) in given.iter().zip(types) {
            if let Some(data_type) = wanted.and_then(signatures::written) {
                self.constants.add(given, data_type);
            }
        }
        Ok(())
    }

    fn over(&mut self, over: &WindowType, scope: &Scope<'_>) -> Result<()> {
        match over {
            WindowType::NamedWindow(name) => {
                let wanted = crate::syntax::folded(name);
                if self.windows.contains(&wanted) {
                    return Ok(());
                }
                let message = format!("window \"{wanted}\" does not exist");
                Err(QueryError::refused("42704", message).at(name.span))
            }
            WindowType::WindowSpec(window) => self.window(window, scope),
        }
    }
}

/// Whether a function makes rows of one column, in FROM or of each row among the columns of an answer.
pub(super) fn makes_rows(name: &str) -> bool {
    matches!(name, "unnest" | "generate_series" | "generate_subscripts")
}

/// Whether a function makes rows, of one column or of several.
pub(super) fn is_of_rows(name: &str) -> bool {
    makes_rows(name) || array_of(name).is_some()
}

/// Whether a function that makes rows is called in an expression, but not in a query inside of it.
pub(super) fn has_rows(expression: &Expr) -> bool {
    calls_outside_queries(expression, &|call| is_of_rows(&function_name(&call.name)))
}

/// Refuses functions that make rows inside of what is of one row.
pub(super) fn refuse_rows(expression: &Expr, of: &str) -> Result<()> {
    if !has_rows(expression) {
        return Ok(());
    }
    let message = format!("set-returning functions are not allowed in {of}");
    let hint = "You might be able to move the set-returning function into a LATERAL FROM item.";
    Err(QueryError::refused("0A000", message).at(expression.span()).hint(hint))
}

/// Whether rows that a function makes may come at a place.
fn check_rows(place: Place, span: Span) -> Result<()> {
    let of = match place {
        Place::Values
        | Place::Where
        | Place::JoinCondition
        | Place::Limit
        | Place::Offset
        | Place::Filter => place.without_aggregates(),
        _ => None,
    };
    of.map_or(Ok(()), |of| {
        let message = format!("set-returning functions are not allowed in {of}");
        Err(QueryError::refused("0A000", message).at(span))
    })
}

/// The arguments of a call.
fn listed(call: &Function) -> impl Iterator<Item = &Expr> {
    let list = match &call.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    list.iter().filter_map(|given| match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given),
        _ => None,
    })
}

/// `count(*)`.
fn is_of_all(call: &Function) -> bool {
    matches!(&call.args, FunctionArguments::List(list) if matches!(
        list.args.as_slice(),
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]
    ))
}

/// The first clause of a call that only functions of many rows have.
fn of_many_rows(call: &Function) -> Option<&'static str> {
    let list = match &call.args {
        FunctionArguments::List(list) => Some(list),
        _ => None,
    };
    let is_ordered = list.is_some_and(|list| {
        list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)))
    });
    match () {
        () if list
            .is_some_and(|list| list.duplicate_treatment == Some(DuplicateTreatment::Distinct)) =>
        {
            Some("DISTINCT")
        }
        () if !call.within_group.is_empty() => Some("WITHIN GROUP"),
        () if is_ordered => Some("ORDER BY"),
        () if call.filter.is_some() => Some("FILTER"),
        () if call.over.is_some() => Some("OVER"),
        () => None,
    }
}

fn check_aggregate(scope: &Scope<'_>, place: Place, span: Span) -> Result<()> {
    let message = match place.without_aggregates() {
        Some(place) => format!("aggregate functions are not allowed in {place}"),
        None if scope.in_aggregate.get() => "aggregate function calls cannot be nested".to_owned(),
        None => return Ok(()),
    };
    Err(QueryError::refused("42803", message).at(span))
}

fn check_window(scope: &Scope<'_>, place: Place, span: Span) -> Result<()> {
    let told = |state, message: String| Err(QueryError::refused(state, message).at(span));
    if scope.in_aggregate.get() && place.without_windows().is_none() {
        let message = "aggregate function calls cannot contain window function calls";
        return told("42803", message.to_owned());
    }
    match place.without_windows() {
        Some(place) => told("42P20", format!("window functions are not allowed in {place}")),
        None if scope.in_window.get() => {
            told("42P20", "window function calls cannot be nested".to_owned())
        }
        None => Ok(()),
    }
}

/// A function's name without its schema, where that is one of those where functions are.
pub(super) fn function_name(name: &ObjectName) -> String {
    let parts = unqualified(name);
    match parts.as_slice() {
        [one] => one.clone(),
        other => other.join("."),
    }
}

/// A constant in quotes, NULL or a parameter as it is written.
fn is_constant(given: &Expr) -> bool {
    match given {
        Expr::Nested(inner) => is_constant(inner),
        other => matches!(other, Expr::Value(_)),
    }
}

/// Several functions take values of these types.
fn ambiguous(name: &ObjectName, arguments: &[Type]) -> QueryError {
    let message = format!("function {} is not unique", with_types(name, arguments));
    let hint =
        "Could not choose a best candidate function. You might need to add explicit type casts.";
    let span = name.0.first().map_or_else(Span::empty, span_of);
    QueryError::refused("42725", message).at(span).hint(hint)
}

/// A call as errors tell it, `length(integer)`.
fn with_types(name: &ObjectName, arguments: &[Type]) -> String {
    let types: Vec<String> = arguments.iter().map(|argument| argument.name()).collect();
    format!("{}({})", unqualified(name).join("."), types.join(", "))
}

/// There is no such function, or none for values of these types.
pub(super) fn unknown(name: &ObjectName, arguments: &[Type]) -> QueryError {
    let message = format!("function {} does not exist", with_types(name, arguments));
    let hint = "No function matches the given name and argument types. \
                You might need to add explicit type casts.";
    let span = name.0.first().map_or_else(Span::empty, span_of);
    QueryError::refused("42883", message).at(span).hint(hint)
}
