//! Where one sequence stands, and the numbers that may be given before that must be written again.
//!
//! Invariant: a number is given only below a mark that is durable: whoever starts from the mark gives none twice.

use onrush::{Row, SequenceDefinition, Value};

/// How many values PostgreSQL logs ahead, which the column `log_cnt` of a sequence counts down.
const LOGGED_AHEAD: u64 = 32;
/// How many values the first mark is ahead, and at most how many a later one.
const AHEAD_FIRST: u64 = 32;
const AHEAD_MAX: u64 = 4096;

/// Where a sequence stands: its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) last: i64,
    /// Whether the last value was given.
    pub(crate) is_called: bool,
    /// As PostgreSQL counts it; nothing depends on it here.
    pub(crate) logged: u64,
}

/// Values that somebody was given: all from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Position {
    /// That of a sequence before its first value, or before this one.
    pub(crate) fn before(value: i64) -> Position {
        Position { last: value, is_called: false, logged: 0 }
    }

    pub(super) fn of_row(row: &Row) -> Option<Position> {
        let logged = u64::try_from(row.get(1)?.as_i64()?).unwrap_or(0);
        Some(Position {
            last: row.first()?.as_i64()?,
            is_called: row.get(2)? == &Value::Boolean(true),
            logged,
        })
    }

    /// The row of the sequence's table.
    pub(crate) fn row(self) -> [Value<'static>; 4] {
        let Position { last, is_called, logged } = self;
        let logged = i64::try_from(logged).unwrap_or(i64::MAX);
        [Value::Int64(last), Value::Int64(logged), Value::Boolean(is_called), KEY]
    }

    /// Takes `count` values, fewer where there is an end before; how many, too. None at the end.
    pub(super) fn take(
        &mut self,
        sequence: &SequenceDefinition,
        count: u64,
    ) -> Option<(Taken, u64)> {
        let first = if self.is_called { sequence.after(self.last)? } else { self.last };
        let left = sequence.left_after(first);
        let more = count.saturating_sub(1).min(left);
        let last = sequence.so_many_after(first, more);
        let given = u64::from(!self.is_called);
        // What PostgreSQL fetches, and what of it was logged before.
        let mut fetched = count.saturating_sub(given);
        let mut logged = self.logged;
        if logged < fetched || !self.is_called {
            fetched += LOGGED_AHEAD;
            logged = fetched;
        }
        let steps = left.saturating_add(1 - given);
        logged = logged.saturating_sub(more + 1 - given);
        logged = logged.saturating_sub(fetched.saturating_sub(steps));
        *self = Position { last, is_called: true, logged };
        Some((Taken { first, last }, more + 1))
    }
}

/// The key of the only row.
pub(super) const KEY: Value<'static> = Value::Int64(1);

/// What came of asking for values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Given(Taken),
    /// A mark has to be made durable first.
    NeedsMark,
    AtEnd,
}

/// What everyone knows of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) position: Position,
    /// Of the definition that it is about.
    pub(super) generation: u32,
    /// How many values may be given before the next mark.
    ahead: u64,
    /// Where the sequence is to go on after a crash.
    mark: Position,
    /// How far the next mark is to be ahead.
    step: u64,
}

impl Numbers {
    /// Of a sequence whose row says this.
    pub(super) fn at(position: Position, generation: u32) -> Numbers {
        Numbers { position, generation, ahead: 0, mark: position, step: AHEAD_FIRST }
    }

    /// Takes as many values as a session takes at a time.
    pub(super) fn take(&mut self, sequence: &SequenceDefinition) -> Asked {
        let mut position = self.position;
        let Some((taken, count)) = position.take(sequence, sequence.cache.unsigned_abs()) else {
            return Asked::AtEnd;
        };
        if count > self.ahead {
            return Asked::NeedsMark;
        }
        (self.position, self.ahead) = (position, self.ahead - count);
        Asked::Given(taken)
    }

    /// The next mark, and how many values it lets be given; none where there are no more.
    pub(super) fn next_mark(&self, sequence: &SequenceDefinition) -> Option<(Position, u64)> {
        let mut mark = self.mark;
        let (_, count) = mark.take(sequence, self.step.max(sequence.cache.unsigned_abs()))?;
        Some((Position { logged: 0, ..mark }, count))
    }

    /// The mark is durable.
    pub(super) fn go_on_to(&mut self, (mark, count): (Position, u64)) {
        self.mark = mark;
        self.ahead += count;
        self.step = (self.step * 2).min(AHEAD_MAX);
    }

    /// No value is given any more before the next mark, which goes on from here.
    pub(super) fn stop(&mut self) {
        (self.ahead, self.mark) = (0, self.position);
    }
}

#[cfg(test)]
mod tests {
    use onrush::DataType;
    use proptest::prelude::*;

    use super::*;

    fn sequence(increment: i64, cache: i64, cycles: bool) -> SequenceDefinition {
        SequenceDefinition {
            data_type: DataType::Int64,
            start: 1,
            increment,
            least: -500,
            greatest: 500,
            cache,
            cycles,
            generation: 0,
            owner: None,
        }
    }

    fn values(sequence: &SequenceDefinition, Taken { first, last }: Taken) -> Vec<i64> {
        let count = first.abs_diff(last) / sequence.increment.unsigned_abs();
        (0..=count).map(|at| sequence.so_many_after(first, at)).collect()
    }

    /// All values from the beginning until it ends, or until there are so many; with a crash wherever `crashes`
    /// says so, after that many values.
    fn given(sequence: &SequenceDefinition, crashes: &[usize], most: usize) -> Vec<i64> {
        let mut durable = Position::before(sequence.start);
        let mut numbers = Numbers::at(durable, 0);
        let mut all = Vec::new();
        let mut crashes = crashes.iter().peekable();
        while all.len() < most {
            if crashes.next_if(|at| **at <= all.len()).is_some() {
                numbers = Numbers::at(durable, 0);
            }
            match numbers.take(sequence) {
                Asked::Given(taken) => all.extend(values(sequence, taken)),
                Asked::AtEnd => break,
                Asked::NeedsMark => {
                    let next = numbers.next_mark(sequence).expect("there are values");
                    durable = next.0;
                    numbers.go_on_to(next);
                }
            }
        }
        all
    }

    #[test]
    fn log_cnt_counts_as_in_postgresql() {
        let sequence = sequence(1, 1, false);
        let mut position = Position::before(1);
        let mut logged = Vec::new();
        for _ in 0..35 {
            position.take(&sequence, 1).expect("a value");
            logged.push(position.logged);
        }
        assert_eq!(logged[..3], [32, 31, 30]);
        assert_eq!(logged[31..], [1, 0, 32, 31]);
    }

    proptest! {
        #[test]
        fn without_a_crash_no_value_is_left_out(
            increment in prop_oneof![-7i64..=-1, 1i64..=7],
            cache in 1i64..40,
        ) {
            let sequence = sequence(increment, cache, false);
            let mut expected = vec![1];
            while let Some(next) = sequence.after(*expected.last().expect("one")) {
                expected.push(next);
            }
            prop_assert_eq!(given(&sequence, &[], usize::MAX), expected);
        }

        #[test]
        fn after_crashes_no_value_comes_twice(
            increment in prop_oneof![-7i64..=-1, 1i64..=7],
            cache in 1i64..40,
            mut crashes in prop::collection::vec(0usize..400, 0..6),
        ) {
            crashes.sort_unstable();
            let mut all = given(&sequence(increment, cache, false), &crashes, usize::MAX);
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), count);
        }

        #[test]
        fn one_that_cycles_never_ends(
            increment in prop_oneof![-7i64..=-1, 1i64..=7],
            cache in 1i64..40,
        ) {
            let all = given(&sequence(increment, cache, true), &[], 3000);
            prop_assert!(all.len() >= 3000);
            prop_assert!(all.iter().all(|value| (-500..=500).contains(value)));
        }
    }
}
