//! TCP listeners that follow the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use api::{EventKind, Severity};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::event::{Events, News};

/// Between tries to listen on an address that is not to be had.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

/// Tells when what it was given to shall end.
#[derive(Clone)]
pub(super) struct Closing(watch::Receiver<()>);

impl Closing {
    /// Waits until it shall end.
    pub(super) async fn closed(mut self) {
        // Nothing is ever sent: the sender goes.
        while self.0.changed().await.is_ok() {}
    }
}

struct Open {
    task: JoinHandle<()>,
    _open: watch::Sender<()>,
}

/// Where one service listens.
pub(super) struct Listeners {
    service: &'static str,
    open: BTreeMap<SocketAddr, Open>,
    /// Addresses that are not to be had, which has been said.
    failing: BTreeSet<SocketAddr>,
}

impl Listeners {
    /// None yet, of a service with this name.
    pub(super) fn new(service: &'static str) -> Self {
        Listeners { service, open: BTreeMap::new(), failing: BTreeSet::new() }
    }

    /// Listens where it is wanted and nowhere else; whether an address is not to be had now. `serve` serves a new
    /// listener until it is told to end.
    pub(super) async fn follow<F>(
        &mut self,
        wanted: &[SocketAddr],
        events: &Events,
        serve: impl Fn(TcpListener, Closing) -> F,
    ) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let gone = |address: &SocketAddr, open: &Open| !wanted.contains(address) || open.task.is_finished();
        let ending: Vec<SocketAddr> = self
            .open
            .iter()
            .filter(|(address, open)| gone(address, open))
            .map(|(address, _)| *address)
            .collect();
        for address in ending {
            self.close(address).await;
        }
        self.failing.retain(|address| wanted.contains(address));
        for address in wanted {
            if self.open.contains_key(address) {
                continue;
            }
            match TcpListener::bind(address).await {
                Ok(listener) => {
                    let (open, closing) = watch::channel(());
                    let task = tokio::spawn(serve(listener, Closing(closing)));
                    self.open.insert(*address, Open { task, _open: open });
                    self.failing.remove(address);
                    self.tell(events, Severity::Info, format!("listens on {address}"));
                }
                Err(error) => {
                    if self.failing.insert(*address) {
                        self.tell(
                            events,
                            Severity::Error,
                            format!("cannot listen on {address}: {error}; trying again"),
                        );
                    }
                }
            }
        }
        !self.failing.is_empty()
    }

    /// Listens nowhere any more, and ends what is connected.
    pub(super) async fn close_all(&mut self) {
        self.failing.clear();
        while let Some(address) = self.open.keys().next().copied() {
            self.close(address).await;
        }
    }

    /// The address is free afterwards.
    async fn close(&mut self, address: SocketAddr) {
        if let Some(Open { task, _open }) = self.open.remove(&address) {
            drop(_open);
            // A panic in it has been logged.
            let _ = task.await;
        }
    }

    fn tell(&self, events: &Events, severity: Severity, reason: String) {
        events.log(News::now(severity, EventKind::Configuration, self.service, reason));
    }
}

/// Addresses as configured, of which the modules let addresses alone through; the loopback where there are none.
pub(super) fn addresses(configured: &[String], port: u16) -> Vec<SocketAddr> {
    if configured.is_empty() {
        return vec![SocketAddr::from(([127, 0, 0, 1], port))];
    }
    configured.iter().filter_map(|address| Some(SocketAddr::new(address.parse().ok()?, port))).collect()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    async fn serve(listener: TcpListener, closing: Closing) {
        let accept = async {
            while let Ok((stream, _)) = listener.accept().await {
                drop(stream);
            }
        };
        tokio::select! {
            () = accept => {}
            () = closing.closed() => {}
        }
    }

    #[tokio::test]
    async fn listeners_are_where_they_are_wanted_and_a_lack_is_said_once() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let free = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap()
        };
        let events = Events::new(1);
        let mut listeners = Listeners::new("test");
        let wanted = [taken.local_addr().unwrap(), free];
        for _ in 0..3 {
            assert!(listeners.follow(&wanted, &events, serve).await);
        }
        TcpStream::connect(free).await.unwrap();
        let said: Vec<String> = events.list(0, None).into_iter().map(|event| event.reason).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("cannot listen on") && said[1].starts_with("listens on"), "{said:?}");

        drop(taken);
        assert!(!listeners.follow(&wanted, &events, serve).await);
        TcpStream::connect(wanted[0]).await.unwrap();

        // Closed and opened again at once.
        listeners.close_all().await;
        assert!(TcpStream::connect(free).await.is_err());
        assert!(!listeners.follow(&wanted, &events, serve).await);
        assert!(!listeners.follow(&wanted[..1], &events, serve).await);
        assert!(TcpStream::connect(free).await.is_err());
    }
}
