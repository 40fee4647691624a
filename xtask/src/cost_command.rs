//! `cargo xtask statistics-cost`: what statistics cost an insert.
//!
//! Builds the `measure` example with and without the feature `statistics` and runs both in turn, so
//! that a machine that drifts favours neither. Of each the median counts. Where `perf` can count,
//! `perf stat -e instructions:u` before either program is steadier still.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs of each build; odd, so that there is a middle one.
const RUNS: usize = 7;
/// Key, threads and rows of a run.
const LOAD: [&str; 3] = ["session-offset", "2", "10000000"];

/// Builds, runs and compares.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let folder = root.join("target/statistics-cost");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let without = build(root, &folder, "without", &["--no-default-features"])?;
    let with = build(root, &folder, "with", &[])?;
    let mut rates = [Vec::new(), Vec::new()];
    for run in 1..=RUNS {
        for (program, rates) in [&with, &without].into_iter().zip(&mut rates) {
            let rate = measure(&folder, program)?;
            println!("run {run} of {RUNS}, {}: {rate:.3} M rows/s", name(program));
            rates.push(rate);
        }
    }
    let [with, without] = rates.map(median);
    println!(
        "median with statistics {with:.3}, without {without:.3} M rows/s: they cost {:.2} %",
        (1.0 - with / without) * 100.0
    );
    Ok(())
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
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
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
