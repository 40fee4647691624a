//! A crowd that appends to lists and reads them, all at once, on a disk that is cut afterwards.
//!
//! Here the server and the engine run with all their threads, so a round does not follow from its seed; what the
//! clients heard is kept and judged by `cycles.rs`. Of the disk any boundary can be cut afterwards: what was
//! acknowledged by then is there, a transaction is there whole or not at all, and each list is the beginning of what
//! it became.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onrush::{Database, Options};
use onrush_server::{Server, ServerOptions};
use onrush_sim::{CrashDisk, CrashMode, Random};

use crate::cycles::{End, Step, Story, anomalies};
use crate::history::Checked;
use crate::look;
use crate::summary::Summary;
use crate::wire::Client;
use onrush_oracle::violation;

const CLIENTS: usize = 6;
const LISTS: u64 = 5;
const TRANSACTIONS: u64 = 30;

/// A transaction, and how many operations the disk had done when its answer had come.
struct Told {
    story: Story,
    answered_at: usize,
}

/// One round: a crowd, then so many cuts.
///
/// # Errors
/// An anomaly; something acknowledged that a cut loses; half a transaction.
pub fn prove(seed: u64, cuts: u64, summary: &mut Summary) -> Checked<()> {
    let disk = CrashDisk::new();
    let database =
        match Database::create_on(Arc::new(disk.clone()), look::folder(), Options::small()) {
            Ok(database) => database,
            Err(error) => violation!("create: {error}"),
        };
    let options = ServerOptions { threads: 2, ..look::server_options() };
    let server = match Server::start(database.clone(), options) {
        Ok(server) => server,
        Err(error) => violation!("the server does not start: {error}"),
    };
    let mut first = begin(&server)?;
    said(&mut first, "CREATE TABLE lists (k bigint PRIMARY KEY, v text)")?;
    let rows: Vec<String> = (0..LISTS).map(|list| format!("({list}, '')")).collect();
    said(&mut first, &format!("INSERT INTO lists VALUES {}", rows.join(", ")))?;
    let begun_at = disk.operation_count();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(begin(&server)?);
    }
    let outcomes: Vec<Checked<Vec<Told>>> = std::thread::scope(|scope| {
        let crowd = clients.into_iter().enumerate();
        let disk = &disk;
        let work = |(number, client)| scope.spawn(move || crowd_member(seed, number, client, disk));
        let threads: Vec<_> = crowd.map(work).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Ok(Vec::new()))).collect()
    });
    let mut told: Vec<Told> =
        outcomes.into_iter().collect::<Checked<Vec<_>>>()?.into_iter().flatten().collect();
    let last = lists(&mut first)?;
    let steps = last.iter().map(|(list, values)| Step::Read(*list, values.clone())).collect();
    let answered_at = disk.operation_count();
    told.push(Told { story: Story { session: CLIENTS, steps, end: End::Committed }, answered_at });
    drop((first, server, database));
    summary.rounds += 1;
    summary.commits += told.iter().filter(|told| told.story.end == End::Committed).count() as u64;
    summary.statements += told.iter().map(|told| told.story.steps.len() as u64).sum::<u64>();
    let stories: Vec<Story> = told.iter().map(|told| told.story.clone()).collect();
    if let Some(anomaly) = anomalies(&stories).first() {
        violation!("{anomaly:?} among\n    {}", shown(&stories).join("\n    "));
    }
    cut(seed, (&disk, begun_at, cuts), &told, &last, summary)
}

fn crowd_member(
    seed: u64,
    number: usize,
    mut client: Client,
    disk: &CrashDisk,
) -> Checked<Vec<Told>> {
    let mut random = Random::for_part(seed, 100 + number as u64);
    let mut told = Vec::new();
    let mut value = 1000 * (number as u64 + 1);
    for _ in 0..TRANSACTIONS {
        let mut steps = Vec::new();
        let mut end = End::Committed;
        said(&mut client, "BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        for _ in 0..=random.below(4) {
            let list = random.below(LISTS);
            let text = match random.chance(1, 2) {
                true => format!("SELECT v FROM lists WHERE k = {list}"),
                false => {
                    value += 1;
                    format!("UPDATE lists SET v = v || ' {value}' WHERE k = {list}")
                }
            };
            let answer = match client.ask(&text) {
                Ok(answer) => answer,
                Err(error) => violation!("{text}: {error}"),
            };
            let is_read = text.starts_with("SELECT");
            match answer.state() {
                None if is_read => steps.push(Step::Read(list, values_of(&answer.rows))),
                None => steps.push(Step::Append(list, value)),
                Some("40001" | "40P01") => {
                    if !is_read {
                        steps.push(Step::Append(list, value));
                    }
                    end = End::Aborted;
                    break;
                }
                Some(state) => violation!("{text}: {state}"),
            }
        }
        let is_given_up = end == End::Aborted || random.chance(1, 10);
        let text = if is_given_up { "ROLLBACK" } else { "COMMIT" };
        let answer = match client.ask(text) {
            Ok(answer) => answer,
            Err(error) => violation!("{text}: {error}"),
        };
        end = match (is_given_up, answer.state()) {
            (false, None) => End::Committed,
            (true, None) | (false, Some("40001")) => End::Aborted,
            (_, Some(state)) => violation!("{text}: {state}"),
        };
        let answered_at = disk.operation_count();
        told.push(Told { story: Story { session: number, steps, end }, answered_at });
    }
    Ok(told)
}

fn cut(
    seed: u64,
    (disk, begun_at, cuts): (&CrashDisk, usize, u64),
    told: &[Told],
    last: &BTreeMap<u64, Vec<u64>>,
    summary: &mut Summary,
) -> Checked<()> {
    let mut random = Random::for_part(seed, 6);
    let mut sweep = disk.sweep();
    sweep.advance_to(begun_at);
    let boundaries = (sweep.last_operation() - begun_at) as u64 + 1;
    summary.boundaries += boundaries;
    loop {
        if random.chance(cuts.min(boundaries), boundaries) {
            let mode = CrashMode::ALL[random.below(CrashMode::ALL.len() as u64) as usize];
            let image = sweep.image(mode, random.next_number());
            summary.cuts += 1;
            summary.starts += 1;
            let boundary = sweep.at_operation();
            let found = seen(&image)?;
            if let Some(wrong) = wrong(told, last, &found, boundary) {
                violation!("cut at boundary {boundary}, {mode:?}: {wrong}");
            }
        }
        if !sweep.advance() {
            return Ok(());
        }
    }
}

/// What must not be after a cut.
fn wrong(
    told: &[Told],
    last: &BTreeMap<u64, Vec<u64>>,
    found: &BTreeMap<u64, Vec<u64>>,
    boundary: usize,
) -> Option<String> {
    for (list, values) in found {
        let whole = last.get(list).map_or(&[][..], Vec::as_slice);
        if !whole.starts_with(values) {
            return Some(format!("list {list} is {values:?}, and became {whole:?}"));
        }
    }
    let there: BTreeSet<u64> = found.values().flatten().copied().collect();
    for Told { story, answered_at } in told.iter().filter(|told| told.story.end == End::Committed) {
        let appended = story.steps.iter().filter_map(|step| match step {
            Step::Append(_, value) => Some(there.contains(value)),
            Step::Read(..) => None,
        });
        let appended: Vec<bool> = appended.collect();
        if *answered_at <= boundary && appended.contains(&false) {
            return Some(format!(
                "a transaction that was acknowledged is not there: {:?}",
                story.steps
            ));
        }
        if appended.contains(&true) && appended.contains(&false) {
            return Some(format!("half a transaction is there: {:?}", story.steps));
        }
    }
    None
}

fn seen(image: &CrashDisk) -> Checked<BTreeMap<u64, Vec<u64>>> {
    let database = match Database::open_on(Arc::new(image.clone()), look::folder(), look::options())
    {
        Ok(database) => database,
        Err(error) => violation!("the database does not open: {error}"),
    };
    let server = match Server::start(database, look::server_options()) {
        Ok(server) => server,
        Err(error) => violation!("the server does not start: {error}"),
    };
    let mut client = begin(&server)?;
    lists(&mut client)
}

fn begin(server: &Server) -> Checked<Client> {
    match server.client().and_then(Client::begin) {
        Ok(client) => Ok(client),
        Err(error) => violation!("no client gets in: {error}"),
    }
}

fn said(client: &mut Client, text: &str) -> Checked<()> {
    match client.ask(text) {
        Ok(answer) if answer.error.is_none() && !answer.is_over => Ok(()),
        Ok(answer) => violation!("{text}: {:?}", answer.error),
        Err(error) => violation!("{text}: {error}"),
    }
}

fn lists(client: &mut Client) -> Checked<BTreeMap<u64, Vec<u64>>> {
    let answer = match client.ask("COPY lists TO STDOUT") {
        Ok(answer) if answer.error.is_none() => answer,
        Ok(answer) => violation!("COPY lists: {:?}", answer.error),
        Err(error) => violation!("COPY lists: {error}"),
    };
    let list = |row: &Vec<Option<String>>| {
        let key = row.first()?.as_ref()?.parse().ok()?;
        Some((key, values_of(&[row[1..].to_vec()])))
    };
    Ok(answer.rows.iter().filter_map(list).collect())
}

/// Of a list as it is stored: numbers with spaces in front.
fn values_of(rows: &[Vec<Option<String>>]) -> Vec<u64> {
    let text = rows.first().and_then(|row| row.first().cloned().flatten()).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn shown(stories: &[Story]) -> Vec<String> {
    stories.iter().enumerate().map(|(number, story)| format!("{number}: {story:?}")).collect()
}
