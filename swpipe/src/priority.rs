//! Who goes first on a busy machine: what takes a failing pair out, before what carries frames.

use rustix::process::setpriority_process;

/// Nice value of threads that probe pairs and write tables: little work, never to wait for frames.
const URGENT: i32 = -15;
/// Nice value of workers.
const ORDINARY: i32 = 0;

/// The calling thread, and those that it starts, go before frames. Without the right to (CAP_SYS_NICE) nothing
/// changes: then a busy machine finds failing pairs some milliseconds later.
pub fn urgent() {
    set(URGENT);
}

/// The calling thread carries frames.
pub fn ordinary() {
    set(ORDINARY);
}

/// On Linux a nice value is a thread's own (setpriority(2), "C library/kernel differences").
fn set(nice: i32) {
    if let Err(error) = setpriority_process(None, nice) {
        tracing::debug!(nice, %error, "scheduling priority stays as it is");
    }
}
