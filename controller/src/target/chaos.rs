//! A target that fails: every operation with a given probability, before it is done or after.

use dataplane::PortId;
use dataplane::entry::{Entry, P4Id, Update};
use dataplane::target::TargetProfile;
use swpipe::counters::Count;
use tokio::sync::watch;

use super::{Standing, Target, TargetError};

/// Wraps a target and fails its operations. With probability 0 it adds nothing.
pub struct Chaos<T> {
    inner: T,
    /// 0.0..=1.0.
    probability: f64,
}

impl<T: Target> Chaos<T> {
    /// `probability` is clamped to 0.0..=1.0.
    pub fn new(inner: T, probability: f64) -> Self {
        Chaos { inner, probability: probability.clamp(0.0, 1.0) }
    }

    /// The target itself.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    fn strikes(&self) -> bool {
        self.probability > 0.0 && rand::random_bool(self.probability)
    }

    /// Fails half of the strikes before the operation and half after it, as a broken connection would.
    async fn perhaps<R>(
        &self,
        what: &str,
        operation: impl Future<Output = Result<R, TargetError>>,
    ) -> Result<R, TargetError> {
        let fault = || TargetError::Unanswered {
            address: self.inner.address(),
            what: what.to_owned(),
            reason: "chaos".to_owned(),
        };
        if !self.strikes() {
            return operation.await;
        }
        if rand::random_bool(0.5) {
            operation.await?;
        }
        Err(fault())
    }
}

impl<T: Target> Target for Chaos<T> {
    fn address(&self) -> String {
        self.inner.address()
    }

    fn profile(&self) -> &'static TargetProfile {
        self.inner.profile()
    }

    fn pipeline(&self) -> String {
        self.inner.pipeline()
    }

    fn standing(&self) -> watch::Receiver<Standing> {
        self.inner.standing()
    }

    async fn prepare(&self) -> Result<bool, TargetError> {
        self.inner.prepare().await
    }

    async fn write(&self, updates: Vec<Update>) -> Result<(), TargetError> {
        self.perhaps("a write", self.inner.write(updates)).await
    }

    async fn entries(&self) -> Result<Vec<Entry>, TargetError> {
        self.perhaps("a read", self.inner.entries()).await
    }

    async fn counters(&self, cells: Vec<(P4Id, usize)>) -> Result<Vec<Count>, TargetError> {
        self.perhaps("a read of counters", self.inner.counters(cells)).await
    }

    async fn rule_counters(&self) -> Result<Vec<(Entry, Count)>, TargetError> {
        self.perhaps("a read of counters", self.inner.rule_counters()).await
    }

    async fn send(&self, port: PortId, frame: Vec<u8>) -> Result<(), TargetError> {
        self.inner.send(port, frame).await
    }
}
