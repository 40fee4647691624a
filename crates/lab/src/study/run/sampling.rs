//! Counters over time: taken by a thread of its own while a target is loaded.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onrush_measure::progress::{Observer, Step};

use crate::target::Sampler;
use crate::target::record::{CHECKPOINTS, CounterSeries, Mark, Snapshot};

/// Time between two samples at first.
const INTERVAL: Duration = Duration::from_millis(100);
/// When there are so many, every second one is dropped and the interval doubled.
const SAMPLES_MAX: usize = 600;

/// Samples, each with its moment since the load began.
type Samples = Vec<(Duration, Snapshot)>;

/// A thread that takes samples until it is asked for them.
pub(super) struct Sampling {
    stop: Sender<()>,
    thread: JoinHandle<Samples>,
}

impl Sampling {
    /// Starts now.
    pub(super) fn start(mut sampler: Sampler) -> Sampling {
        let (stop, stopped) = channel();
        let started = Instant::now();
        let thread = std::thread::spawn(move || {
            let mut samples = Samples::new();
            let mut interval = INTERVAL;
            loop {
                if let Some(snapshot) = sampler() {
                    samples.push((started.elapsed(), snapshot));
                }
                if samples.len() >= SAMPLES_MAX {
                    thin(&mut samples);
                    interval *= 2;
                }
                match stopped.recv_timeout(interval) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return samples,
                }
            }
        });
        Sampling { stop, thread }
    }

    /// Ends it; returns the series and the moments worth a mark.
    pub(super) fn end(self) -> (Vec<CounterSeries>, Vec<Mark>) {
        // The thread may have ended by itself: then there is nobody to tell.
        let _ = self.stop.send(());
        let samples = self.thread.join().unwrap_or_default();
        (series(&samples), marks(&samples))
    }
}

fn thin(samples: &mut Samples) {
    let mut is_kept = false;
    samples.retain(|_| {
        is_kept = !is_kept;
        is_kept
    });
}

/// Levels as they are, everything else a second; counters that never moved are left out.
fn series(samples: &Samples) -> Vec<CounterSeries> {
    let mut all: BTreeMap<String, CounterSeries> = BTreeMap::new();
    for pair in samples.windows(2) {
        let [(earlier, before), (later, now)] = pair else { continue };
        let seconds = (*later - *earlier).as_secs_f64();
        for counter in &now.counters {
            let value = match before.counter(&counter.name) {
                _ if counter.is_level => counter.value,
                Some(before) if seconds > 0.0 => (counter.value - before) / seconds,
                _ => continue,
            };
            let series = all.entry(counter.name.clone()).or_insert_with(|| CounterSeries {
                name: counter.name.clone(),
                unit: match counter.is_level {
                    true => counter.unit.clone(),
                    false => format!("{}/s", counter.unit),
                },
                points: Vec::new(),
            });
            series.points.push((later.as_secs_f64(), value));
        }
    }
    all.into_values().filter(|one| one.points.iter().any(|(_, value)| *value != 0.0)).collect()
}

/// A mark for each sample in which a checkpoint ended.
fn marks(samples: &Samples) -> Vec<Mark> {
    let pairs = samples.windows(2).filter_map(|pair| match pair {
        [(_, before), (at, now)] => {
            let ended = now.counter(CHECKPOINTS)? - before.counter(CHECKPOINTS)?;
            (ended > 0.0).then(|| Mark { at_s: at.as_secs_f64(), label: "checkpoint".into() })
        }
        _ => None,
    });
    pairs.collect()
}

/// Passes everything on, and remembers how many rows were done when.
pub(super) struct RowsOverTime<'o> {
    observer: &'o dyn Observer,
    started: Instant,
    rows: RefCell<Vec<(f64, f64)>>,
}

impl<'o> RowsOverTime<'o> {
    pub(super) fn new(observer: &'o dyn Observer) -> Self {
        RowsOverTime { observer, started: Instant::now(), rows: RefCell::default() }
    }

    /// Rows a second over time.
    pub(super) fn series(self) -> Option<CounterSeries> {
        let rows = self.rows.into_inner();
        let rates = rows.windows(2).filter_map(|pair| match pair {
            [(earlier, before), (later, now)] if later > earlier && now >= before => {
                Some((*later, (now - before) / (later - earlier)))
            }
            _ => None,
        });
        let mut points: Vec<_> = rates.collect();
        while points.len() > SAMPLES_MAX {
            points = points.chunks(2).filter_map(|pair| pair.last().copied()).collect();
        }
        let (name, unit) = ("ROWS".to_owned(), "1/s".to_owned());
        (!points.is_empty()).then_some(CounterSeries { name, unit, points })
    }
}

impl Observer for RowsOverTime<'_> {
    fn begin(&self, step: Step, rows: Option<u64>) {
        self.observer.begin(step, rows);
    }

    fn advance(&self, rows_done: u64) {
        self.rows.borrow_mut().push((self.started.elapsed().as_secs_f64(), rows_done as f64));
        self.observer.advance(rows_done);
    }

    fn end(&self) {
        self.observer.end();
    }

    fn warn(&self, message: &str) {
        self.observer.warn(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::record::CounterRecord;

    fn at(second: u64, commits: f64, checkpoints: f64) -> (Duration, Snapshot) {
        let counter = |name: &str, value: f64, is_level| CounterRecord {
            name: name.into(),
            unit: "1".into(),
            value,
            is_level,
        };
        let counters = vec![
            counter("COMMITS", commits, false),
            counter(CHECKPOINTS, checkpoints, false),
            counter("LEAVES", commits, true),
            counter("NEVER", 0.0, false),
        ];
        (Duration::from_secs(second), Snapshot { counters, ..Snapshot::default() })
    }

    #[test]
    fn counters_become_rates_levels_stay_and_checkpoints_are_marked() {
        let samples = vec![at(1, 10.0, 0.0), at(3, 30.0, 0.0), at(4, 35.0, 1.0)];
        let all = series(&samples);
        let points = |name: &str| {
            let found = all.iter().find(|one| one.name == name);
            found.map(|one| (one.unit.as_str(), one.points.clone()))
        };
        assert_eq!(points("COMMITS"), Some(("1/s", vec![(3.0, 10.0), (4.0, 5.0)])));
        assert_eq!(points("LEAVES"), Some(("1", vec![(3.0, 30.0), (4.0, 35.0)])));
        assert_eq!(points("NEVER"), None);
        assert_eq!(marks(&samples), vec![Mark { at_s: 4.0, label: "checkpoint".into() }]);
    }

    #[test]
    fn thinning_keeps_every_second_sample() {
        let mut samples: Samples = (0..10).map(|second| at(second, 0.0, 0.0)).collect();
        thin(&mut samples);
        let seconds: Vec<u64> = samples.iter().map(|(at, _)| at.as_secs()).collect();
        assert_eq!(seconds, [0, 2, 4, 6, 8]);
    }
}
