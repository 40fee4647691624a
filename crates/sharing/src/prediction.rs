//! What machines with many processors can reach, from counts and from published times.
//!
//! A row costs the time that it takes where nothing is shared, and for each line that moves the time of its way.
//! Whatever else, rows pass the busiest line one after the other. Both are upper bounds: memory, log device and
//! checkpoints are not in them.

use crate::count::Sharing;

/// A machine whose times between processors are published.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// What it is.
    pub name: &'static str,
    /// Its cores.
    pub processors: u32,
    /// The median time in nanoseconds that a line takes from one core to another.
    pub move_ns: f64,
}

/// Medians of <https://github.com/nviennot/core-to-core-latency>. Of machines with groups of cores it is the time
/// between groups, of those with two sockets the time between sockets: most pairs of cores are such.
pub const MACHINES: [Machine; 4] = [
    Machine { name: "Intel Xeon Gold 6242", processors: 16, move_ns: 48.0 },
    Machine { name: "AMD EPYC 7R13", processors: 48, move_ns: 107.0 },
    Machine { name: "AWS Graviton3", processors: 64, move_ns: 46.0 },
    Machine { name: "two AMD EPYC 7R13", processors: 96, move_ns: 197.0 },
];

/// Upper bounds of the rate of inserts, in rows a second.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// All processors work, and wait for the lines that move.
    pub processors: f64,
    /// The busiest line goes from one to the next.
    pub busiest_line: f64,
}

impl Bounds {
    /// Of a row that takes `row_ns` of a processor where nothing is shared.
    pub fn of(sharing: &Sharing, row_ns: f64, machine: &Machine) -> Self {
        let moves = sharing.owner_changes_per_row + sharing.fetches_per_row;
        let each_row_ns = row_ns + moves * machine.move_ns;
        Self {
            processors: f64::from(machine.processors) / each_row_ns * 1e9,
            busiest_line: 1e9 / (sharing.busiest_line_per_row * machine.move_ns),
        }
    }

    /// The lower of both.
    pub fn least(self) -> f64 {
        self.processors.min(self.busiest_line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_bound_counts() {
        let sharing = Sharing {
            sessions: 2,
            rows: 1,
            instructions_per_row: 1.0,
            owner_changes_per_row: 3.0,
            fetches_per_row: 1.0,
            shared_modifies_per_row: 1.0,
            busiest_line_per_row: 2.0,
            places: Vec::new(),
            lines: Vec::new(),
        };
        let machine = |processors| Machine { name: "", processors, move_ns: 50.0 };
        let few = Bounds::of(&sharing, 200.0, &machine(2));
        assert_eq!((few.processors, few.busiest_line), (5e6, 1e7));
        assert_eq!(few.least(), 5e6);
        assert_eq!(Bounds::of(&sharing, 200.0, &machine(100)).least(), 1e7);
    }
}
