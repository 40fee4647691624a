//! Chance for `random()` and `gen_random_uuid()`: one generator for each thread, seeded by the operating
//! system, as those of random keys are for each session.

use std::cell::RefCell;

use rand::rngs::{ChaCha8Rng, SysRng};
use rand::{Rng, SeedableRng};

use super::EvaluationError;
use crate::TypeError;

thread_local! {
    static GENERATOR: RefCell<Option<ChaCha8Rng>> = const { RefCell::new(None) };
}

/// 128 random bits.
pub(super) fn bits() -> Result<u128, EvaluationError> {
    GENERATOR.with_borrow_mut(|generator| {
        let generator = match generator {
            Some(generator) => generator,
            None => {
                let seeded = ChaCha8Rng::try_from_rng(&mut SysRng);
                generator.insert(seeded.map_err(|error| TypeError::NoRandomness {
                    reason: error.to_string().into(),
                })?)
            }
        };
        let [high, low] = [generator.next_u64(), generator.next_u64()].map(u128::from);
        Ok(high << 64 | low)
    })
}
