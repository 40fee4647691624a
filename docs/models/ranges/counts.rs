//! What runs did: a run that never splits a range proves nothing about splits.

use std::fmt::{self, Display, Formatter};

macro_rules! counts {
    ($($name:ident: $says:literal,)*) => {
        #[derive(Clone, Copy, Default, Debug)]
        pub(super) struct Counts {
            $(#[doc = $says] pub(super) $name: u64,)*
        }

        impl Counts {
            pub(super) fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
            }
        }

        impl Display for Counts {
            fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
                let all = [$((self.$name, $says),)*];
                let said = all.iter().filter(|(count, _)| *count > 0);
                let said: Vec<String> = said.map(|(count, says)| format!("{count} {says}")).collect();
                to.write_str(&said.join(", "))
            }
        }
    };
}

counts! {
    runs: "runs",
    steps: "steps",
    crashes: "crashes",
    crash_images: "looks at what a crash would leave",
    commits: "commits",
    refusals: "refusals",
    refused_looks: "looks that had to read the stock",
    stale_lookups: "lookups over a changed stock",
    locked_looks: "looks under the mutex of the range, after too many of these",
    stock_reads: "images read for a key",
    snapshot_reads: "reads by snapshots",
    flushes: "flushes",
    rewrites: "small fragments written anew",
    redo_flushes: "flushes within redo",
    merges: "merges",
    range_splits: "splits of ranges",
    range_joins: "joins of ranges",
    conversions: "leaves converted",
    large_commits: "commits of large transactions",
    large_aborts: "large transactions given up",
    pieces: "pieces",
    roll_backs: "roll-backs to savepoints",
    conflicts: "conflicts with large transactions",
    intents_flushed: "intents flushed",
    intents_imaged: "intents imaged",
    sweeps: "sweeps",
    forgotten: "outcomes forgotten",
    leaf_splits: "splits of leaves",
    leaf_joins: "joins of front leaves",
    images: "whole leaves imaged",
    checkpoints: "checkpoints",
    space_installs: "space installs",
    full: "times that the disk was full",
    stops: "stops with an error",
    damages: "filters damaged",
}
