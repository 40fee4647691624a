//! How many processors there are for us.

/// Processors that this process may use at a time, by affinity mask and container quota; at least
/// 1.
pub fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
