//! Point reads and updates that a session makes between its inserts, of rows that it has inserted.

use xxhash_rust::xxh3::xxh3_64;

/// How many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// Point reads for every hundred rows inserted.
    pub reads_per_100_rows: u64,
    /// Updates for every hundred rows inserted.
    pub updates_per_100_rows: u64,
}

impl Mix {
    /// Whether there is nothing but inserts.
    pub fn is_inserts_only(&self) -> bool {
        *self == Mix::default()
    }
}

/// What is done to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is read by its key.
    Read,
    /// Its moment becomes now.
    Update,
}

/// What one session does next. It remembers every key of its own.
#[derive(Debug)]
pub struct Mixer<K> {
    mix: Mix,
    keys: Vec<K>,
    reads_due: u64,   // in hundredths
    updates_due: u64, // in hundredths
    drawn: u64,
}

impl<K: Copy> Mixer<K> {
    /// Before the first row.
    pub fn new(mix: Mix) -> Mixer<K> {
        Mixer { mix, keys: Vec::new(), reads_due: 0, updates_due: 0, drawn: 0 }
    }

    /// A row was inserted.
    #[inline]
    pub fn inserted(&mut self, key: K) {
        if !self.mix.is_inserts_only() {
            self.keys.push(key);
            self.reads_due += self.mix.reads_per_100_rows;
            self.updates_due += self.mix.updates_per_100_rows;
        }
    }

    /// What is due before the next insert, on which of its rows: any of them, with equal chances.
    #[inline]
    pub fn due(&mut self) -> Option<(Operation, K)> {
        let operation = if self.reads_due >= 100 {
            self.reads_due -= 100;
            Operation::Read
        } else if self.updates_due >= 100 {
            self.updates_due -= 100;
            Operation::Update
        } else {
            return None;
        };
        self.drawn += 1;
        let random = u128::from(xxh3_64(&self.drawn.to_le_bytes()));
        let number = (random * self.keys.len() as u128) >> 64;
        Some((operation, self.keys[number as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_updates_come_in_their_proportions_and_reach_every_row() {
        let mix = Mix { reads_per_100_rows: 250, updates_per_100_rows: 20 };
        let mut mixer = Mixer::new(mix);
        let (mut reads, mut updates, mut seen) = (0, 0, std::collections::BTreeSet::new());
        for row in 0..1000_u32 {
            mixer.inserted(row);
            while let Some((operation, key)) = mixer.due() {
                assert!(key <= row);
                seen.insert(key / 100);
                match operation {
                    Operation::Read => reads += 1,
                    Operation::Update => updates += 1,
                }
            }
        }
        assert_eq!((reads, updates, seen.len()), (2500, 200, 10));
    }

    #[test]
    fn without_a_mix_nothing_is_due_and_no_key_is_kept() {
        let mut mixer = Mixer::new(Mix::default());
        mixer.inserted(1);
        assert_eq!(mixer.due(), None);
        assert!(mixer.keys.is_empty());
    }
}
