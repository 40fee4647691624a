//! The query engine: DataFusion, set up for this database, with threads of its own.
//!
//! Queries run on their own threads, so that a long one does not keep the threads that serve clients
//! from serving inserts. What a query makes goes through a short queue to whoever wants its rows: if
//! nobody takes them it waits, and if nobody wants them any more it ends.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use datafusion::common::config::Dialect;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{FunctionRegistry, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{displayable, execute_stream};
use futures::StreamExt;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::error::{QueryError, Result};
use crate::first_rows::FirstRows;
use crate::functions::{
    self, CheckedArithmetic, CheckedCasts, ElementCasts, ExistsAsValue, GroupSets, InputOrder,
    SingleRows, SystemFunction, ZonedCasts,
};
use crate::in_list::ListsOfRows;
use crate::in_turn::PartsInTurn;
use crate::interrupt::Interest;
use crate::join_order::{JoinOrder, SORTS};
use crate::memory::{QueryMemory, Runtimes, SpillOptions};
use crate::no_rows::NoRows;
use crate::query::{Query, check_counts};
use crate::row_by_row::{Setting, SubqueriesByRow, inside_of_calls, made_ready};
use crate::rows::{Batch, Rows};
use crate::statement::Statement;
use crate::style;
use crate::types::ColumnType;
use crate::typing::{Comparisons, Subscripts, Types, cast};

/// Batches that wait for whoever wants the rows.
const BATCHES_WAITING_MAX: usize = 2;

/// How queries are run.
#[derive(Clone, Debug)]
pub struct QueryOptions {
    /// Threads that run queries, and parts of one query that run at a time; at least 1.
    pub threads: usize,
    /// Memory that all statements together may have for sorting, grouping and joining, in bytes.
    pub memory_bytes: usize,
    /// Memory that one statement may have of it, in bytes. What a sort or a group needs beyond is
    /// written to temporary files; the smaller side of a join has to fit.
    pub statement_memory_bytes: usize,
    /// Where to write; none: a statement that needs more memory fails.
    pub spill: Option<SpillOptions>,
}

/// What is wanted of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Its rows.
    Rows,
    /// How it would be done, a line a row.
    Plan,
    /// How it was done, with counts and times, a line a row; its rows are thrown away.
    Analysis,
}

/// Plans and runs queries.
pub struct QueryEngine {
    pub(crate) state: SessionState,
    runtimes: Runtimes,
    /// Taken when the engine goes.
    threads: Option<Runtime>,
}

/// Of a thread that runs queries: a plan is as deep as a statement has UNIONs and joins in a row, which take up to
/// 70 KB each where the compiler does not optimise. The system gives what is used of it.
const STACK_BYTES: usize = 256 << 20;

impl QueryEngine {
    /// Starts the threads. Statements can call `functions` beside those that there are anyway.
    ///
    /// # Errors
    /// The system has no threads to give; functions that cannot be registered; a folder for temporary
    /// files that cannot be used.
    pub fn new(options: QueryOptions, functions: Vec<SystemFunction>) -> Result<QueryEngine> {
        style::inherit();
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_stack_size(STACK_BYTES)
            .thread_name("onrush-query")
            .build()
            .map_err(|error| QueryError::Internal { message: error.to_string() })?;
        let runtimes = Runtimes::new(
            options.memory_bytes,
            options.statement_memory_bytes,
            options.spill.as_ref(),
        )?;
        let mut builder = SessionStateBuilder::new()
            .with_config(config(&options))
            .with_default_features()
            .with_type_planner(Arc::new(Types))
            .with_analyzer_rule(Arc::new(ElementCasts { typed: cast }))
            .with_analyzer_rule(Arc::new(ZonedCasts))
            .with_analyzer_rule(Arc::new(CheckedCasts))
            .with_analyzer_rule(Arc::new(CheckedArithmetic))
            .with_analyzer_rule(Arc::new(ExistsAsValue))
            .with_analyzer_rule(Arc::new(SingleRows))
            .with_analyzer_rule(Arc::new(GroupSets))
            .with_analyzer_rule(Arc::new(InputOrder))
            .with_analyzer_rule(Arc::new(ListsOfRows))
            .with_analyzer_rule(Arc::new(SubqueriesByRow))
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rules(physical_rules());
        // DataFusion's own take all that has subscripts.
        builder.expr_planners().get_or_insert_default().insert(0, Arc::new(Subscripts));
        let mut state = builder.build();
        let brought = functions.into_iter().map(SystemFunction::into_udf);
        for function in functions::all().into_iter().chain(brought) {
            state.register_udf(function)?;
        }
        state.register_udaf(functions::single_value())?;
        state.register_udaf(Arc::new(functions::any_average()))?;
        for function in functions::ordered_sets() {
            state.register_udaf(function)?;
        }
        state.register_expr_planner(Arc::new(Comparisons))?;
        Ok(QueryEngine { state, runtimes, threads: Some(threads) })
    }

    /// What all queries have of memory now, and what they may have.
    #[must_use]
    pub fn memory(&self) -> Arc<QueryMemory> {
        Arc::clone(self.runtimes.memory())
    }

    /// Runs a query for a statement, with a value for each of its parameters.
    ///
    /// # Errors
    /// Parameters that are not of the query's types. What fails later comes with the rows.
    pub fn run(
        &self,
        query: &Query,
        want: Want,
        statement: Statement,
        parameters: &[onrush::Value<'_>],
    ) -> Result<Rows> {
        let plan = query.with_parameters(parameters)?;
        let interest = Interest::default();
        let run = Run {
            state: self.state.clone(),
            plan,
            want,
            statement: Arc::new(statement),
            runtime: self.runtimes.statement(),
            interest: interest.clone(),
        };
        let (sender, receiver) = mpsc::channel(BATCHES_WAITING_MAX);
        let Some(threads) = &self.threads else {
            return Err(QueryError::Internal { message: "the threads are gone".to_owned() });
        };
        let task = threads.spawn(style::scoped(style::current(), async move {
            let last = match run.send_batches(&sender).await {
                Ok(()) => Ok(None),
                Err(error) => Err(error),
            };
            // Nobody may be there any more.
            let _ = sender.send(last).await;
        }));
        let columns = match want {
            Want::Rows => query.column_types(),
            Want::Plan | Want::Analysis => vec![ColumnType::Stored(onrush::DataType::Text)],
        };
        Ok(Rows::new(receiver, task.abort_handle(), interest, columns))
    }
}

impl Drop for QueryEngine {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// DataFusion's own rules, but for the one that takes columns out of ORDER BY that it takes for superfluous. Filters
/// that no row passes are seen before parts of them go elsewhere.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    rules.retain(|rule| rule.name() != EliminateDuplicatedExpr::new().name());
    let simplified = rules.iter().position(|rule| rule.name() == SimplifyExpressions::new().name());
    rules.insert(simplified.map_or(0, |at| at + 1), Arc::new(NoRows));
    rules
}

/// DataFusion's own rules, once it is known how each table is read, and before its parts are put together.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    let sorts = rules.iter().position(|rule| rule.name() == SORTS);
    rules.insert(sorts.unwrap_or_default(), Arc::new(JoinOrder));
    rules.insert(0, Arc::new(FirstRows));
    rules.push(Arc::new(PartsInTurn));
    rules
}

fn config(options: &QueryOptions) -> SessionConfig {
    // What a sort keeps back to merge what it has spilled; one for each part of a query.
    let threads = options.threads.max(1);
    let kept_back = (options.statement_memory_bytes / 8 / threads).min(10 << 20);
    let mut config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_sort_spill_reservation_bytes(kept_back)
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false)
        // Rows of one range come in the order of the key; sharing them out would lose it.
        .with_round_robin_repartition(false)
        .with_prefer_existing_sort(true);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    // Functions of many rows are given them in the order of the query below.
    options.sql_parser.enable_subquery_sort_elimination = false;
    options.execution.time_zone = Some("+00:00".to_owned());
    // Whether a column may be NULL is not always known alike before and after a query is put into steps.
    options.execution.skip_physical_aggregate_schema_check = true;
    config
}

/// One execution.
struct Run {
    state: SessionState,
    plan: LogicalPlan,
    want: Want,
    statement: Arc<Statement>,
    runtime: Arc<RuntimeEnv>,
    interest: Interest,
}

type Sender = mpsc::Sender<Result<Option<Batch>>>;

impl Run {
    async fn send_batches(mut self, sender: &Sender) -> Result<()> {
        let began = Instant::now();
        let (client, now_micros) = (&self.statement.client, self.statement.now_micros);
        let bind = |plan| functions::bind(plan, client, now_micros);
        let plan = inside_of_calls(bind(self.plan.clone())?, &bind)?;
        check_counts(&self.state, &plan)?;
        self.state.config_mut().set_extension(Arc::clone(&self.statement));
        let setting = || {
            let (state, runtime) = (self.state.clone(), Arc::clone(&self.runtime));
            Arc::new(Setting { state, runtime })
        };
        let plan = made_ready(plan, &setting)?;
        let plan = self.state.create_physical_plan(&plan).await?;
        let planned = began.elapsed();
        if self.want == Want::Plan {
            let lines = displayable(&*plan).indent(false).to_string();
            return send(sender, Batch::of_lines(&lines)).await;
        }
        let plan = self.interest.watch(plan)?;
        let context = TaskContext::from(&self.state).with_runtime(Arc::clone(&self.runtime));
        let mut batches = execute_stream(Arc::clone(&plan), Arc::new(context))?;
        let mut rows = 0;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            rows += batch.num_rows();
            if self.want == Want::Rows {
                send(sender, Batch::new(&batch)?).await?;
            }
        }
        if self.want == Want::Analysis {
            let mut lines =
                DisplayableExecutionPlan::with_metrics(&*plan).indent(false).to_string();
            let millis = |time: std::time::Duration| time.as_secs_f64() * 1e3;
            let _ = write!(
                lines,
                "Rows: {rows}\nPlanning Time: {:.3} ms\nExecution Time: {:.3} ms",
                millis(planned),
                millis(began.elapsed().saturating_sub(planned)),
            );
            send(sender, Batch::of_lines(&lines)).await?;
        }
        Ok(())
    }
}

async fn send(sender: &Sender, batch: Batch) -> Result<()> {
    sender.send(Ok(Some(batch))).await.map_err(|_| QueryError::GivenUp)
}
