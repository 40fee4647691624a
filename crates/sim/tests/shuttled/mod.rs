//! Runs of a model under shuttle: at random, and by rare changes of priority (PCT). Seeds are fixed, so a run can
//! be had again; `ONRUSH_MODEL_SCALE=100` runs the sound model that many times as long.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// How a model is run.
pub struct Runs {
    /// Changes of priority in a run of PCT.
    pub depth: usize,
    /// Runs without a fault, for each scheduler.
    pub sound: usize,
    /// Runs in which a fault must show, for each scheduler.
    pub with_fault: usize,
    /// The stack of a thread of the model, where the usual one is too small.
    pub stack_bytes: Option<usize>,
}

impl Runs {
    /// Without a fault nothing fails.
    pub fn are_sound(&self, run: fn()) {
        let scale = std::env::var("ONRUSH_MODEL_SCALE").ok();
        let scale = scale.map_or(1, |scale| scale.parse().expect("ONRUSH_MODEL_SCALE is a number"));
        let runs = self.sound * scale;
        Runner::new(RandomScheduler::new_from_seed(1, runs), self.config()).run(run);
        Runner::new(PctScheduler::new_from_seed(2, self.depth, runs), self.config()).run(run);
    }

    /// Runs with the fault until it shows, in a failed assertion; which one is printed.
    pub fn show<F: Copy + Debug + Send + Sync + 'static>(&self, fault: F, run: fn(F)) {
        let random = |runs| {
            let scheduler = RandomScheduler::new_from_seed(3, runs);
            Runner::new(scheduler, self.config()).run(move || run(fault));
        };
        let by_priority = |runs| {
            let scheduler = PctScheduler::new_from_seed(4, self.depth, runs);
            Runner::new(scheduler, self.config()).run(move || run(fault));
        };
        // What one scheduler shows soon the other may not show at all, so both have a short try first.
        let is_shown = [self.with_fault / 20, self.with_fault].into_iter().any(|runs| {
            catch_unwind(AssertUnwindSafe(|| random(runs))).is_err()
                || catch_unwind(AssertUnwindSafe(|| by_priority(runs))).is_err()
        });
        assert!(is_shown, "{fault:?} was planted, and nothing showed");
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.stack_size = self.stack_bytes.unwrap_or(config.stack_size);
        config.silence_warnings = true;
        config.ungraceful_shutdown_config.immediately_return_on_panic = true;
        config
    }
}

/// A test for each fault: it shows in `RUNS` of `run`.
macro_rules! faults_show {
    ($($name:ident: $fault:ident,)*) => {
        $(#[test]
        fn $name() {
            RUNS.show(Fault::$fault, run);
        })*
    };
}
pub(crate) use faults_show;
