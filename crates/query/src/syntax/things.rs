//! Names and numbers of the catalogue's things, as PostgreSQL's tools cast one to the other.

use datafusion::sql::sqlparser::ast::{DataType, Expr, Function, Ident, ObjectName, SelectItem};

use super::call;
use super::sets::cast;
use crate::functions::TYPE_OF;

/// The function that a name of a relation in quotes is made a number by.
const NUMBER_OF_RELATION: &str = "regclass_oid";

/// The function that a number or a name of a type is made its own name by.
const NAME_OF_TYPE: &str = "regtype_name";

/// The function that a name of a type is made a number by.
const NUMBER_OF_TYPE: &str = "to_regtype";

/// What a cast to the name or the number of a thing stands for.
pub(super) fn named(data_type: &DataType, given: &Expr) -> Option<Expr> {
    match name_function(data_type, given) {
        Some(function) => Some(call(function, given.clone())),
        None => number_of_relation(data_type, given).or_else(|| text_of_relation(data_type, given)),
    }
}

/// The function that a cast to the name of a thing stands for: from the number of a table to its name,
/// and from a name in quotes to the number.
fn name_function(data_type: &DataType, given: &Expr) -> Option<&'static str> {
    let is_constant = matches!(given, Expr::Value(_));
    let wanted = match data_type {
        DataType::Regclass => "regclass".to_owned(),
        DataType::Custom(name, _) => last_word(name),
        _ => return None,
    };
    match (wanted.as_str(), is_constant) {
        ("regclass", true) => Some(NUMBER_OF_RELATION),
        ("regclass", false) => Some("regclass_name"),
        ("regtype", _) => Some(NAME_OF_TYPE),
        ("regnamespace", false) => Some("regnamespace_name"),
        _ => None,
    }
}

/// `name::regclass::oid` and `name::regtype::oid`, where the name was made a name already, and `pg_typeof(value)::oid`:
/// the number that the name stands for.
fn number_of_relation(data_type: &DataType, given: &Expr) -> Option<Expr> {
    let (DataType::Custom(wanted, _), Expr::Function(named)) = (data_type, given) else {
        return None;
    };
    let wanted = last_word(wanted);
    if wanted == "oid" && is_name_of_type(given) {
        return Some(cast(call(NUMBER_OF_TYPE, given.clone()), data_type.clone()));
    }
    (wanted == "oid" && named.name.to_string() == "regclass_name").then(|| {
        let name = ObjectName::from(vec![Ident::new(NUMBER_OF_RELATION)]);
        Expr::Function(Function { name, ..named.clone() })
    })
}

/// Whether it is a type, which is its name to who looks at it.
fn is_name_of_type(given: &Expr) -> bool {
    let Expr::Function(named) = given else { return false };
    matches!(last_word(&named.name).as_str(), TYPE_OF | NAME_OF_TYPE)
}

/// Types are compared by their numbers, with each other and with the numbers of columns.
pub(super) fn compare_types(compared: &mut [&mut Expr]) {
    let is_type = |given: &Expr| {
        let is_number = |named: &Function| last_word(&named.name) == NUMBER_OF_TYPE;
        is_name_of_type(given) || matches!(given, Expr::Function(named) if is_number(named))
    };
    if !compared.iter().any(|given| is_type(given)) {
        return;
    }
    for given in compared {
        if is_name_of_type(given) {
            **given = call(NUMBER_OF_TYPE, given.clone());
        }
    }
}

/// The name of a type or a function, without its schema.
fn last_word(name: &ObjectName) -> String {
    name.0.last().map(|name| name.to_string().to_lowercase()).unwrap_or_default()
}

/// `'name'::regclass::text`, where the name was made a number already: the name by which it is seen.
fn text_of_relation(data_type: &DataType, given: &Expr) -> Option<Expr> {
    let (DataType::Text, Expr::Function(named)) = (data_type, given) else { return None };
    (named.name.to_string() == NUMBER_OF_RELATION).then(|| call("regclass_name", given.clone()))
}

/// Makes names in quotes that are columns of an answer, `'name'::regclass`, the names by which the
/// things are seen; everywhere else they are numbers.
pub(super) fn show_names(items: &mut [SelectItem]) {
    for item in items {
        let (SelectItem::UnnamedExpr(given) | SelectItem::ExprWithAlias { expr: given, .. }) = item
        else {
            continue;
        };
        if let Expr::Cast { expr, data_type, .. } = &*given
            && name_function(data_type, expr) == Some(NUMBER_OF_RELATION)
        {
            *given = call("regclass_name", call(NUMBER_OF_RELATION, (**expr).clone()));
        }
    }
}

/// `'name'::regproc::oid`, as psql's `\sf` asks.
pub(super) fn is_number_of_function(data_type: &DataType, given: &Expr) -> bool {
    let word = |data_type: &DataType| match data_type {
        DataType::Custom(name, _) => Some(last_word(name)),
        _ => None,
    };
    let Expr::Cast { data_type: inner, .. } = given else { return false };
    word(data_type).as_deref() == Some("oid")
        && matches!(word(inner).as_deref(), Some("regproc" | "regprocedure"))
}
