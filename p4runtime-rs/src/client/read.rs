use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_stream::{Stream, StreamExt};
use tonic::Streaming;

use super::{Error, Session};
use crate::proto::p4::v1::{Entity, ReadRequest, ReadResponse};

const CALL: &str = "Read";

impl Session {
    /// Reads what the filters match, all of it. A key left out of a filter, or a part of it, matches any:
    /// `TableEntry { table_id: 7, ..Default::default() }` reads the whole table.
    ///
    /// # Errors
    /// The server refuses the call or some filters, or keeps silent for longer than the call deadline.
    pub async fn read(&self, filters: Vec<Entity>) -> Result<Vec<Entity>, Error> {
        let mut stream = self.read_stream(filters).await?;
        let mut entities = Vec::new();
        while let Some(part) = stream.next().await {
            entities.append(&mut part?);
        }
        Ok(entities)
    }

    /// Reads what the filters match, in the parts in which the server sends it.
    ///
    /// # Errors
    /// The server refuses the call or does not answer in time. Filters that it refuses are an error at the
    /// end of the stream.
    pub async fn read_stream(&self, filters: Vec<Entity>) -> Result<Entities, Error> {
        let mut client = self.client(CALL)?;
        let after = self.options().call_deadline;
        let filters_sent = filters.len();
        let request =
            ReadRequest { device_id: self.options().device_id, entities: filters, ..Default::default() };
        match timeout(after, client.read(request)).await {
            Err(_) => Err(Error::Deadline { call: CALL, after }),
            Ok(Err(status)) => Err(Error::of_batch(CALL, &status, filters_sent)),
            Ok(Ok(answer)) => Ok(Entities {
                stream: answer.into_inner(),
                filters: filters_sent,
                after,
                silence: Box::pin(sleep(after)),
                ended: false,
            }),
        }
    }
}

/// A read under way. Ends after an error.
#[derive(Debug)]
pub struct Entities {
    stream: Streaming<ReadResponse>,
    filters: usize,
    after: Duration,
    silence: Pin<Box<Sleep>>,
    ended: bool,
}

impl Stream for Entities {
    type Item = Result<Vec<Entity>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.stream).poll_next(cx) {
            Poll::Ready(Some(Ok(response))) => {
                let deadline = Instant::now() + self.after;
                self.silence.as_mut().reset(deadline);
                Poll::Ready(Some(Ok(response.entities)))
            }
            Poll::Ready(Some(Err(status))) => {
                self.ended = true;
                Poll::Ready(Some(Err(Error::of_batch(CALL, &status, self.filters))))
            }
            Poll::Ready(None) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Pending => {
                if self.silence.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.ended = true;
                Poll::Ready(Some(Err(Error::Deadline { call: CALL, after: self.after })))
            }
        }
    }
}
