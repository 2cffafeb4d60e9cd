//! A TCP connection that ends when it is told to, or when the other side takes nothing for too long.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// The connection. russh's session is a task of its own that cannot be aborted; it ends by an error of this.
pub(crate) struct Socket<S> {
    stream: S,
    /// Answered, or dropped, when the connection shall end.
    end: oneshot::Receiver<()>,
    write_timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Socket<S> {
    pub(crate) fn new(stream: S, end: oneshot::Receiver<()>, write_timeout: Duration) -> Self {
        Self { stream, end, write_timeout, stalled: None }
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.end.is_terminated() || Pin::new(&mut self.end).poll(context).is_ready() {
            return Err(io::Error::new(ErrorKind::ConnectionAborted, "the connection was ended here"));
        }
        Ok(())
    }

    /// Passes on what a write said, unless it has said "not now" for too long.
    fn in_time<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        if stalled.as_mut().poll(context).is_ready() {
            let reason = format!("the other side took nothing for {} s", limit.as_secs());
            return Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, reason)));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_end(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_end(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(context)?;
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(shut, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_ends_by_itself() {
        let (ours, _theirs) = tokio::io::duplex(100);
        let (_keep, end) = oneshot::channel();
        let mut socket = Socket::new(ours, end, Duration::from_secs(30));
        socket.write_all(&[0; 100]).await.unwrap();
        let error = socket.write_all(&[0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_read_ends_when_it_is_told_to() {
        let (ours, _theirs) = tokio::io::duplex(100);
        let (tell, end) = oneshot::channel();
        let mut socket = Socket::new(ours, end, Duration::from_secs(30));
        let reading = tokio::spawn(async move {
            let first = socket.read(&mut [0; 1]).await.map_err(|error| error.kind());
            let again = socket.read(&mut [0; 1]).await.map_err(|error| error.kind());
            (first, again)
        });
        tell.send(()).unwrap();
        let ended = Err(ErrorKind::ConnectionAborted);
        assert_eq!(reading.await.unwrap(), (ended, ended));
    }
}
