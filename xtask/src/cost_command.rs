//! `cargo xtask statistics-cost`: what statistics cost an insert.
//!
//! Builds the `measure` example with and without the feature `statistics` and runs both in turn, each
//! round in the other order, so that a machine that drifts favours neither. A round gives one ratio; the
//! median of the ratios counts, with its 95 % interval, which assumes nothing about how they spread (by
//! the sign test). `--rounds N` takes more or fewer; fewer than 6 give no interval. Where `perf` can
//! count, `perf stat -e instructions:u` before either program is steadier still.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Rounds, unless told otherwise; odd, so that there is a middle one. Many short ones: a machine that
/// drifts drifts little in one.
const ROUNDS: usize = 61;
/// Key, threads and rows of a run. One thread, so that on two processors it does not wait for the log's.
const LOAD: [&str; 3] = ["session-offset", "1", "3000000"];
/// Memory for leaves in MiB, which is touched before each run: all rows fit in.
const LEAF_MEMORY_MIB: &str = "1024";

/// Builds, runs and compares.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let rounds = rounds(arguments)?;
    let folder = root.join("target/statistics-cost");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let without = build(root, &folder, "without", &["--no-default-features"])?;
    let with = build(root, &folder, "with", &[])?;
    let (mut rates, mut costs) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 1..=rounds {
        let mut of_round = [0.0; 2];
        let order = if round % 2 == 0 { [1, 0] } else { [0, 1] };
        for build in order {
            of_round[build] = measure(&folder, [&with, &without][build])?;
            rates[build].push(of_round[build]);
        }
        let [with, without] = of_round;
        let cost = (1.0 - with / without) * 100.0;
        println!(
            "round {round} of {rounds}: with {with:.3}, without {without:.3} M rows/s: {cost:+.2} %"
        );
        costs.push(cost);
    }
    let [with, without] = rates.map(|mut rates| median(&mut rates));
    println!("median with statistics {with:.3}, without {without:.3} M rows/s");
    let middle = median(&mut costs);
    match interval(&costs) {
        Some((low, high)) => println!(
            "statistics cost {middle:+.2} % of the inserts; 95 % interval of the median: {low:+.2} to \
             {high:+.2} %"
        ),
        None => println!("statistics cost {middle:+.2} %; --rounds 6 or more give an interval"),
    }
    Ok(())
}

fn rounds(arguments: &[String]) -> Result<usize, String> {
    match arguments {
        [] => Ok(ROUNDS),
        [flag, rounds] if flag == "--rounds" => match rounds.parse() {
            Ok(rounds @ 1..=1000) => Ok(rounds),
            _ => Err(format!("--rounds is 1 to 1000, and {rounds} was given")),
        },
        other => Err(format!("{}: statistics-cost takes --rounds N only", other.join(" "))),
    }
}

fn name(program: &Path) -> String {
    program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn build(root: &Path, folder: &Path, name: &str, features: &[&str]) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = folder.join("build");
    let built = Command::new(cargo)
        .args(["build", "--release", "--package", "onrush", "--example", "measure"])
        .args(features)
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err(format!("the build {name} statistics failed, see above"));
    }
    let program = folder.join(name);
    std::fs::copy(target.join("release/examples/measure"), &program)
        .map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(program)
}

/// Millions of rows a second of one run.
fn measure(folder: &Path, program: &Path) -> Result<f64, String> {
    let output = Command::new(program)
        .args(LOAD)
        .env("DIR", folder.join("database"))
        .env("MEM", LEAF_MEMORY_MIB)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    rate(&text).ok_or_else(|| {
        format!("{} said no rate: {text}{}", name(program), String::from_utf8_lossy(&output.stderr))
    })
}

/// The number before the unit.
fn rate(text: &str) -> Option<f64> {
    let (before, _) = text.split_once(" M rows/s")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Sorts the values, and returns the one in the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Where the median lies with at least 95 % confidence, of ascending values: as many are cut off at
/// either end as tosses of a fair coin fall below with a chance of at most 2.5 %.
fn interval(ascending: &[f64]) -> Option<(f64, f64)> {
    let count = ascending.len();
    let (mut chance, mut below, mut cut) = (0.5_f64.powi(i32::try_from(count).ok()?), 0.0, 0);
    for tosses in 0..count / 2 {
        below += chance;
        if below > 0.025 {
            break;
        }
        cut = tosses + 1;
        chance *= (count - tosses) as f64 / (tosses + 1) as f64;
    }
    let low = ascending.get(cut.checked_sub(1)?)?;
    Some((*low, *ascending.get(count - cut)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rate_of_the_output_counts() {
        let text = "identity 2 threads: 9.060 M rows/s in 1.1 s, log\nsustained 4.65 M rows/s\n";
        assert_eq!(rate(text), Some(9.06));
        assert_eq!(rate("nothing"), None);
    }

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        let ascending = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval(&ascending(5)), None);
        assert_eq!(interval(&ascending(6)), Some((1.0, 6.0)));
        assert_eq!(interval(&ascending(15)), Some((4.0, 12.0)));
        assert_eq!(interval(&ascending(25)), Some((8.0, 18.0)));
    }

    #[test]
    fn rounds_out_of_range_are_refused() {
        let told =
            |words: &[&str]| rounds(&words.iter().map(|word| (*word).into()).collect::<Vec<_>>());
        assert_eq!(told(&[]), Ok(ROUNDS));
        assert_eq!(told(&["--rounds", "31"]), Ok(31));
        assert!(told(&["--rounds", "0"]).unwrap_err().contains("1 to 1000"));
        assert!(told(&["--quick"]).is_err());
    }
}
