//! Which task makes the next step: any, or by an order with two preemptions.

use super::random::Random;

/// How the next task is chosen.
pub(super) enum Schedule<'s> {
    /// Stay with a task for some steps, then any other.
    Random { stays: u64 },
    /// By this order, but for tasks that come first at two steps.
    Directed { preemptions: &'s [(usize, usize)], order: &'s [usize] },
}

impl Schedule<'_> {
    /// The task out of so many that makes this step, `current` having made the one before; none if none can go.
    pub(super) fn choose(
        &self,
        random: &mut Random,
        (step, current): (usize, usize),
        tasks: usize,
        can_go: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        match self {
            Schedule::Random { stays } => {
                if can_go(current) && !random.one_in(*stays) {
                    return Some(current);
                }
                let able = (0..tasks).filter(|task| can_go(*task)).count() as u64;
                let chosen = if able == 0 { return None } else { random.below(able) };
                (0..tasks).filter(|task| can_go(*task)).nth(chosen as usize)
            }
            Schedule::Directed { preemptions, order } => {
                let wanted = preemptions.iter().find(|(at, _)| *at == step).map(|(_, task)| *task);
                let first = wanted.into_iter().chain([current]).chain(order.iter().copied());
                first.filter(|task| *task < tasks).find(|task| can_go(*task))
            }
        }
    }
}

/// Two preemptions of a run of `length` steps by one of `tasks` each, and how often there are some. `None` for a number
/// that stands for none: the second is not behind the first, or both are of one task.
pub(super) struct Preemptions {
    length: usize,
    tasks: usize,
    limit: u64,
    random: Random,
}

impl Preemptions {
    /// All of them where `limit` allows it, else so many at random.
    pub(super) fn new(length: usize, tasks: usize, limit: u64) -> Preemptions {
        Preemptions { length, tasks, limit, random: Random::new(length as u64) }
    }

    fn all(&self) -> u64 {
        (self.length * self.length * self.tasks * self.tasks) as u64
    }

    pub(super) fn count(&self) -> u64 {
        self.all().min(self.limit)
    }

    pub(super) fn number(&mut self, index: u64) -> Option<[(usize, usize); 2]> {
        let all = self.all();
        let chosen = if all <= self.limit { index } else { self.random.below(all) } as usize;
        let choices = self.tasks * self.tasks;
        let (steps, tasks) = (chosen / choices, chosen % choices);
        let (first, second) = (steps / self.length + 1, steps % self.length + 1);
        if first >= second || tasks / self.tasks == tasks % self.tasks {
            return None;
        }
        Some([(first, tasks / self.tasks), (second, tasks % self.tasks)])
    }
}
