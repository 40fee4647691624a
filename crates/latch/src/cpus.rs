//! How many processors there are for us, and which.

/// Processors that this process may use at a time, by affinity mask and container quota; at least
/// 1.
pub fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The numbers of the processors that threads of this process can be put on, ascending; none where the
/// system does not tell.
#[cfg(target_os = "linux")]
pub fn usable_cpus() -> Option<Vec<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    // The calling thread may be on fewer: one that asks for all is given those that there are.
    let ask_for_all = || {
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
        sched_setaffinity(None, &all).ok()?;
        sched_getaffinity(None).ok()
    };
    let given = std::thread::spawn(ask_for_all).join().ok()??;
    Some((0..CpuSet::MAX_CPU).filter(|cpu| given.is_set(*cpu)).collect())
}

/// The numbers of the processors that threads of this process can be put on, ascending; none where the
/// system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn usable_cpus() -> Option<Vec<usize>> {
    None
}
