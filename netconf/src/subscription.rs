//! Notifications that a session asked for (RFC 5277).

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::backend::Notification;
use crate::filter::Siblings;
use crate::name::NOTIFICATION;
use crate::retrieval::{self, Defaults};
use crate::time::date_and_time;
use crate::writer::Writer;

/// The one stream that there is (3.2.3).
pub(crate) const STREAM: &str = "NETCONF";

/// A session's subscription.
pub(crate) struct Subscription {
    pub(crate) events: broadcast::Receiver<Notification>,
    pub(crate) filter: Option<Arc<Siblings>>,
}

impl Subscription {
    /// The message, unless the filter keeps it back.
    pub(crate) fn write(&self, event: &Notification) -> Option<String> {
        let mut out = Writer::default();
        out.open_in("notification", NOTIFICATION);
        out.leaf("eventTime", &date_and_time(event.time));
        let before = out.len();
        retrieval::write(&mut out, &event.body, self.filter.as_deref(), Defaults::Explicit);
        if out.len() == before {
            return None;
        }
        out.close("notification");
        Some(out.finish())
    }
}
