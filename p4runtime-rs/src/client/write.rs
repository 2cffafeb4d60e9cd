use std::ops::Range;

use prost::Message;
use tokio::time::timeout;

use super::{Atomicity, Error, Session, Stopped, WriteError};
use crate::fault::Rejection;
use crate::proto::p4::v1::{Update, WriteRequest};

const CALL: &str = "Write";

/// Bytes that an update's tag and length may take in the request.
const UPDATE_OVERHEAD: usize = 6;

impl Session {
    /// Writes updates in order, in as few requests as the options' batch size allows, each sent when the
    /// one before is answered. Within a request the server may choose any order: put updates that depend
    /// on each other into separate writes.
    ///
    /// With [`Atomicity::ContinueOnError`] every update is tried. With the others, all or none, and all
    /// must fit one request.
    ///
    /// # Errors
    /// Which updates were rejected and why, and where the write stopped if a request failed as a whole.
    pub async fn write(&self, updates: Vec<Update>, atomicity: Atomicity) -> Result<(), WriteError> {
        let total = updates.len();
        let mut failed = WriteError { updates: total, rejections: Vec::new(), stopped: None };
        let (limit, limit_bytes) = (self.options().batch.max(1), self.options().batch_bytes);
        let sizes: Vec<usize> = updates.iter().map(|u| u.encoded_len() + UPDATE_OVERHEAD).collect();
        let batches = batches(&sizes, limit, limit_bytes);
        if atomicity != Atomicity::ContinueOnError && batches.len() > 1 {
            let bytes = sizes.iter().sum();
            let cause = Error::TooLargeForAtomic { updates: total, bytes, limit, limit_bytes };
            failed.stopped = Some(Stopped { batch: 0..total, cause });
            return Err(failed);
        }
        let mut updates = updates.into_iter();
        for batch in batches {
            let request = WriteRequest {
                device_id: self.options().device_id,
                election_id: self.election_id().map(Into::into),
                updates: updates.by_ref().take(batch.len()).collect(),
                atomicity: atomicity.into(),
                ..Default::default()
            };
            match self.write_batch(request, batch.len()).await {
                Ok(()) => {}
                Err(Error::Rejected { rejections, .. }) => {
                    failed.rejections.extend(
                        rejections
                            .into_iter()
                            .map(|r| Rejection { index: batch.start + r.index, fault: r.fault }),
                    );
                }
                Err(cause) => {
                    failed.stopped = Some(Stopped { batch, cause });
                    return Err(failed);
                }
            }
        }
        if failed.rejections.is_empty() { Ok(()) } else { Err(failed) }
    }

    async fn write_batch(&self, request: WriteRequest, items: usize) -> Result<(), Error> {
        let mut client = self.client(CALL)?;
        let after = self.options().call_deadline;
        match timeout(after, client.write(request)).await {
            Err(_) => Err(Error::Deadline { call: CALL, after }),
            Ok(Err(status)) => Err(Error::of_batch(CALL, &status, items)),
            Ok(Ok(_)) => Ok(()),
        }
    }
}

/// Cuts items of these sizes into runs of at most `limit` items and `limit_bytes` bytes. An item larger
/// than that goes alone.
fn batches(sizes: &[usize], limit: usize, limit_bytes: usize) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, size) in sizes.iter().enumerate() {
        if index > start && (index - start == limit || bytes + size > limit_bytes) {
            batches.push(start..index);
            (start, bytes) = (index, 0);
        }
        bytes += size;
    }
    if start < sizes.len() {
        batches.push(start..sizes.len());
    }
    batches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn batches_end_at_the_count_or_at_the_bytes() {
        assert!(batches(&[], 3, 10).is_empty());
        assert_eq!(batches(&[1; 7], 3, 10), [0..3, 3..6, 6..7]);
        assert_eq!(batches(&[1; 6], 3, 10), [0..3, 3..6]);
        assert_eq!(batches(&[4, 4, 4, 2], 9, 10), [0..2, 2..4]);
        assert_eq!(batches(&[1, 50, 1], 9, 10), [0..1, 1..2, 2..3]);
    }

    proptest! {
        #[test]
        fn batches_cover_every_item_once_within_the_limits(
            sizes in proptest::collection::vec(1usize..20, 0..50),
            limit in 1usize..10,
            limit_bytes in 1usize..60,
        ) {
            let batches = batches(&sizes, limit, limit_bytes);
            let covered: Vec<usize> = batches.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..sizes.len()).collect::<Vec<_>>());
            for batch in batches {
                let bytes: usize = sizes[batch.clone()].iter().sum();
                prop_assert!(batch.len() == 1 || (batch.len() <= limit && bytes <= limit_bytes));
            }
        }
    }
}
