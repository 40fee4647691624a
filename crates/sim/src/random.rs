//! Numbers that follow from a seed.
//!
//! Our own few lines (the SplitMix64 generator) instead of a library, since a seed that once found
//! a failure must give the same run for ever, whatever a library's next version does.

/// Golden ratio in 64 bits: the step of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of numbers from a seed. Not for secrets.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// A stream for one part of a run, independent of what the other parts draw.
    pub fn for_part(seed: u64, part: u64) -> Random {
        let mut random = Random::new(seed);
        let mixed = random.next_number() ^ part.wrapping_mul(STEP);
        Random::new(Random::new(mixed).next_number())
    }

    /// Any number.
    pub fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; the bias is below one in 2^32 for limits below 2^32.
    ///
    /// # Panics
    /// When `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "no number is below 0");
        self.next_number() % limit
    }

    /// True in `of` out of `out_of` cases.
    pub fn chance(&mut self, of: u64, out_of: u64) -> bool {
        self.below(out_of) < of
    }

    /// Fills a buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.next_number().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut random = Random::new(42);
        assert_eq!(random.next_number(), 0xbdd7_3226_2feb_6e95);
        assert_ne!(Random::for_part(1, 2).next_number(), Random::for_part(2, 1).next_number());
    }
}
