//! The threads that serve clients: one for each processor, and each client stays with one of them.
//!
//! In one pool an idle thread takes tasks of a busy one: statements of a client run here and there, and its wake-ups
//! cross processors, which costs as much as a short statement. The system moves a thread's clients near it if they are
//! always the same ([0041](../../../docs/decisions/0041-clients-stay-with-a-thread.md)).
//!
//! Invariant: whoever waits for another client, or works for longer than some milliseconds, says so by
//! `block_in_place`, and the clients of its thread go on with another one. So each thread is a runtime of many threads
//! with one worker.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};

/// Of a thread that serves clients: the parser goes as deep as a statement is nested, up to 50 levels,
/// and takes 50 KB for one of joins in parentheses where the compiler does not optimise.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// See the module.
pub(crate) struct ClientThreads {
    runtimes: Vec<Runtime>,
    choice: ThreadChoice,
}

/// Finds each client its thread.
#[derive(Clone)]
pub(crate) struct ThreadChoice(Arc<[ClientThread]>);

/// A thread, and what each of its clients keeps as long as it is there.
#[derive(Clone)]
pub(crate) struct ClientThread {
    pub(crate) runtime: Handle,
    pub(crate) presence: Arc<()>,
}

impl ClientThreads {
    /// So many threads, and up to `blocking_max` more of each for clients that wait or work for long.
    pub(crate) fn start(count: usize, blocking_max: usize) -> io::Result<ClientThreads> {
        let start = |_| {
            Builder::new_multi_thread()
                .worker_threads(1)
                .max_blocking_threads(blocking_max)
                .thread_name("onrush-server")
                .thread_stack_size(STACK_BYTES)
                .enable_all()
                .build()
        };
        let runtimes = (0..count.max(1)).map(start).collect::<io::Result<Vec<_>>>()?;
        let thread = |runtime: &Runtime| {
            let runtime = runtime.handle().clone();
            ClientThread { runtime, presence: Arc::default() }
        };
        let choice = ThreadChoice(runtimes.iter().map(thread).collect());
        Ok(ClientThreads { runtimes, choice })
    }

    pub(crate) fn choice(&self) -> &ThreadChoice {
        &self.choice
    }

    /// The runtime of what is nobody's, as listening is.
    pub(crate) fn first(&self) -> &Runtime {
        &self.runtimes[0]
    }

    /// Ends the threads, and with them the clients that are left after `timeout`.
    pub(crate) fn shut_down(self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        for runtime in self.runtimes {
            runtime.shutdown_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    }
}

impl ThreadChoice {
    /// The thread with the fewest clients, for one more.
    pub(crate) fn least_busy(&self) -> ClientThread {
        let clients = |thread: &&ClientThread| Arc::strong_count(&thread.presence);
        let least = self.0.iter().min_by_key(clients);
        least.unwrap_or(&self.0[0]).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_spread_and_who_comes_next_takes_the_thread_of_one_that_has_gone() {
        let threads = ClientThreads::start(3, 1).unwrap();
        let choice = threads.choice();
        let mut clients: Vec<ClientThread> = (0..6).map(|_| choice.least_busy()).collect();
        let counts = choice.0.iter().map(|thread| Arc::strong_count(&thread.presence) - 1);
        assert_eq!(counts.collect::<Vec<_>>(), [2, 2, 2]);
        let gone = clients.remove(4).runtime.id();
        assert_eq!(choice.least_busy().runtime.id(), gone);
    }

    #[test]
    fn clients_of_a_thread_go_on_while_one_of_them_waits_for_another() {
        let threads = ClientThreads::start(1, 2).unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let waits = threads.choice().least_busy().runtime;
        let waiting = waits.spawn(async move { tokio::task::block_in_place(|| receive.recv()) });
        threads.choice().least_busy().runtime.spawn(async move { send.send(7) });
        assert_eq!(threads.first().block_on(waiting).unwrap(), Ok(7));
    }
}
