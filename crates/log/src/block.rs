//! skeleton
use crate::options::LogOptions;
pub(crate) const HEADER_BYTES: usize = 128;
pub(crate) fn payload_bytes_max(options: &LogOptions) -> usize {
    options.padded_block_bytes_max() - HEADER_BYTES
}
