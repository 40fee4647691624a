//! The heap of the process.

/// The system's own threshold before it has adapted itself.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_FROM_BYTES: libc::c_int = 128 << 10;

/// From now on large pieces go back to the system when they are freed. The C library of GNU raises the size from which
/// it does that with every large piece that is freed, up to 32 MiB, and keeps what is smaller in a heap for each
/// thread: with the buffers of flushes and compactions a process came to a seventh more than its setting. Who has set
/// `MALLOC_MMAP_THRESHOLD_` or `GLIBC_TUNABLES` in the environment keeps what they say. Called before there is a
/// second thread.
pub fn give_large_pieces_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if ["MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"]
        .iter()
        .all(|name| std::env::var_os(name).is_none())
    {
        // SAFETY: it sets a number of the allocator, and no other thread is there that allocates. Covered by every
        // test that starts a command.
        let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_FROM_BYTES) };
    }
}
