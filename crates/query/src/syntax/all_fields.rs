//! `(record).*` in a list of items, which comes here as the field [`ALL_FIELDS`]: the fields of the record, once it is
//! known which those are.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, Query, Select, SelectItem, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Span;

/// The field that stands for all.
pub const ALL_FIELDS: &str = "onrush_all_fields";

/// Where records stand whose fields are to be written, and what those are called.
#[derive(Debug, Default)]
pub(crate) struct AllFields(Vec<(Span, Vec<String>)>);

/// The record whose fields an item stands for, and the place of that.
pub(crate) fn record_of(item: &Expr) -> Option<(&Expr, Span)> {
    let Expr::CompoundFieldAccess { root, access_chain } = item else { return None };
    match access_chain.as_slice() {
        [AccessExpr::Dot(Expr::Identifier(name))] if name.value == ALL_FIELDS => {
            Some((root, name.span))
        }
        _ => None,
    }
}

impl AllFields {
    pub(crate) fn add(&mut self, place: Span, fields: Vec<String>) {
        self.0.push((place, fields));
    }

    /// Writes all of them.
    pub(super) fn write(&self, query: &mut Query) {
        if !self.0.is_empty() {
            let _: ControlFlow<()> = query.visit(&mut Writer { known: self });
        }
    }

    fn items(&self, item: SelectItem) -> Vec<SelectItem> {
        if let SelectItem::UnnamedExpr(expression) = &item
            && let Some((record, place)) = record_of(expression)
            && let Some((_, fields)) = self.0.iter().find(|(own, _)| *own == place)
        {
            let field = |name: &String| {
                let name = Ident::with_quote('"', name);
                let access_chain = vec![AccessExpr::Dot(Expr::Identifier(name.clone()))];
                let root = Box::new(record.clone());
                let expr = Expr::CompoundFieldAccess { root, access_chain };
                SelectItem::ExprWithAlias { expr, alias: name }
            };
            return fields.iter().map(field).collect();
        }
        vec![item]
    }
}

struct Writer<'k> {
    known: &'k AllFields,
}

impl VisitorMut for Writer<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let items = std::mem::take(&mut select.projection).into_iter();
        select.projection = items.flat_map(|item| self.known.items(item)).collect();
        ControlFlow::Continue(())
    }
}
