//! What is answered to which request.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use onrush::Database;
use onrush_watch::View;
use serde::Serialize;

use crate::guard::{Guard, only_who_may_read};
use crate::page;

/// How the names of tables begin that the server keeps for itself.
const OWN: &str = "onrush.";

/// What the page shows.
#[derive(Serialize)]
struct Shown {
    /// As `onrush top` has it.
    #[serde(flatten)]
    view: View,
    tables: Vec<TableShown>,
}

/// One table of the database.
#[derive(Serialize)]
struct TableShown {
    name: String,
    columns: usize,
    primary_key: String,
    is_logged: bool,
}

pub(crate) fn routes(database: Database, guard: Option<Guard>) -> Router {
    let routes = Router::new()
        .route("/", get(whole_page))
        .route("/view.json", get(view))
        .route("/metrics", get(metrics));
    match guard {
        None => routes.route("/health", get(health)).layer(from_fn(only_from_here)),
        // Whoever looks after machines asks without a password.
        Some(guard) => routes
            .layer(from_fn_with_state(guard, only_who_may_read))
            .route("/health", get(health_in_a_word)),
    }
    .with_state(database)
}

/// Refuses requests that a page from elsewhere has a browser send here under another name.
async fn only_from_here(request: Request, next: Next) -> Response {
    if !is_here(request.headers()) {
        let told =
            "This page is for this machine: open it as http://127.0.0.1 or http://localhost.\n";
        return (StatusCode::FORBIDDEN, told).into_response();
    }
    next.run(request).await
}

fn is_here(headers: &HeaderMap) -> bool {
    let Some(Ok(host)) = headers.get(HOST).map(|host| host.to_str()) else { return false };
    // An address of version 6 stands in brackets; a port may follow.
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn whole_page() -> impl IntoResponse {
    let headers = [
        (CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, Html(page::PAGE.as_str()))
}

async fn view(State(database): State<Database>) -> impl IntoResponse {
    let table = |table: std::sync::Arc<onrush::TableDefinition>| {
        let key = table.primary_key().iter().map(|column| table.columns()[*column].name.clone());
        TableShown {
            name: table.name().to_owned(),
            columns: table.columns().len(),
            primary_key: key.collect::<Vec<_>>().join(", "),
            is_logged: table.is_logged(),
        }
    };
    let is_shown = |table: &std::sync::Arc<onrush::TableDefinition>| !table.name().starts_with(OWN);
    let tables = database.tables().into_iter().filter(is_shown).map(table).collect();
    ([(CACHE_CONTROL, "no-store")], Json(Shown { view: View::of(&database), tables }))
}

async fn metrics(State(database): State<Database>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], database.statistics().to_prometheus())
}

/// 200 while the database takes work, 503 with the reason once it has stopped.
async fn health(State(database): State<Database>) -> Response {
    match database.check_running() {
        Ok(()) => "ok\n".into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

/// The same for those who did not say who they are.
async fn health_in_a_word(State(database): State<Database>) -> Response {
    match database.check_running() {
        Ok(()) => "ok\n".into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "stopped\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_here() {
        let asks = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a header"));
            is_here(&headers)
        };
        for host in ["localhost", "localhost:8433", "127.0.0.1:8433", "127.9.0.1", "[::1]:8433"] {
            assert!(asks(host), "{host}");
        }
        for host in ["example.org", "127.0.0.1.example.org", "10.0.0.1:8433", "[::2]", ""] {
            assert!(!asks(host), "{host}");
        }
        assert!(!is_here(&HeaderMap::new()));
    }
}
