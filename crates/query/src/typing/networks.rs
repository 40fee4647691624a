//! Operators and casts of addresses and networks. A network beside an address is one.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use onrush::DataType;

use super::call;
use super::casts::typed;
use crate::functions::{NETWORK, NETWORK_AS_ADDRESS, named};
use crate::types::{CIDR_BYTES, ColumnType, INET_BYTES, field};

const INET: ArrowType = ArrowType::FixedSizeBinary(INET_BYTES);
const CIDR: ArrowType = ArrowType::FixedSizeBinary(CIDR_BYTES);

/// Whether the values of an Arrow type are addresses or networks.
pub(super) fn is_address(arrow: &ArrowType) -> bool {
    matches!(arrow, &INET | &CIDR)
}

/// An operator beside an address as the function that it stands for; of a comparison both sides become addresses.
pub(super) fn planned(expr: &mut RawBinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    use BinaryOperator as Op;
    let [left, right] = [&expr.left, &expr.right].map(|side| side.get_type(schema).ok());
    if ![&left, &right].into_iter().flatten().any(is_address) {
        return Ok(None);
    }
    let function = match &expr.op {
        Op::PGBitwiseShiftLeft => "network_sub",
        Op::PGBitwiseShiftRight => "network_sup",
        Op::Custom(written) if written == "<<=" => "network_subeq",
        Op::Custom(written) if written == ">>=" => "network_supeq",
        Op::PGOverlap => "network_overlap",
        Op::BitwiseAnd => "inetand",
        Op::BitwiseOr => "inetor",
        Op::Plus => "inetpl",
        // `~` is taken from minus one.
        Op::Minus if is_minus_one(&expr.left) => {
            return Ok(Some(call(named("inetnot")?, vec![expr.right.clone()])));
        }
        Op::Minus if right.is_some_and(|right| right.is_integer()) => "inetmi_int8",
        Op::Minus if left.is_some_and(|left| left.is_integer()) => return Ok(None),
        Op::Minus => "inetmi",
        Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq => {
            for side in [&mut expr.left, &mut expr.right] {
                *side = as_address(std::mem::take(side), schema)?;
            }
            return Ok(None);
        }
        _ => return Ok(None),
    };
    let mut given = vec![expr.left.clone(), expr.right.clone()];
    for side in &mut given {
        let is_constant = matches!(side, Expr::Literal(ScalarValue::Utf8(Some(_)), _));
        *side = match function {
            "inetpl" if is_constant => {
                Expr::Cast(Cast::new(Box::new(std::mem::take(side)), ArrowType::Int64))
            }
            "inetpl" | "inetmi_int8" => continue,
            _ => as_address(std::mem::take(side), schema)?,
        };
    }
    Ok(Some(call(named(function)?, given)))
}

fn is_minus_one(value: &Expr) -> bool {
    matches!(value, Expr::Literal(ScalarValue::Int64(Some(-1)) | ScalarValue::Int32(Some(-1)), _))
}

/// A network, or a constant in quotes, as an address.
fn as_address(side: Expr, schema: &DFSchema) -> Result<Expr> {
    match &side {
        Expr::Literal(ScalarValue::Utf8(Some(_)), _) => {
            let inet = field("", ColumnType::Stored(DataType::Inet), true).into();
            typed(Cast { expr: Box::new(side), field: inet }, schema)
        }
        _ if side.get_type(schema).is_ok_and(|own| own == CIDR) => {
            Ok(call(named(NETWORK_AS_ADDRESS)?, vec![side]))
        }
        _ => Ok(side),
    }
}

/// The cast of an address to a network, or of a network to an address; none of anything else.
pub(super) fn cast(expr: &Expr, from: &ArrowType, to: &ArrowType) -> Result<Option<Expr>> {
    let function = match (from, to) {
        (&INET, &CIDR) => NETWORK,
        (&CIDR, &INET) => NETWORK_AS_ADDRESS,
        _ => return Ok(None),
    };
    Ok(Some(call(named(function)?, vec![expr.clone()])))
}
