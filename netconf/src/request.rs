//! What a message asks for, and the reply to it (RFC 6241, 4 and 7).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use roxmltree::{Document, Node};
use tree::{Kind, Path, Tree};

use crate::backend::{Access, Action, Backend, Caller, Commit, Confirmed, Datastore, Ending};
use crate::document::{self, elements, malformed, namespace};
use crate::edit::{self, AfterError, Operation};
use crate::error::{self, Info, Layer, Refusal, RpcError, Tag};
use crate::filter::Siblings;
use crate::framing::{Framing, FramingFault};
use crate::name::{BASE, MONITORING, NOTIFICATION, XMLNS};
use crate::own;
use crate::parameters::{Parameters, Place, invalid, missing};
use crate::retrieval::{self, Defaults};
use crate::server::{Inner, Live};
use crate::session::LONG;
use crate::subscription::{STREAM, Subscription};
use crate::writer::Writer;

/// Time in which a commit is to be confirmed where the client names none (RFC 6241, 8.4.5).
const CONFIRM_TIMEOUT: u32 = 600;

/// A message in reply.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// The session ends with it.
    pub(crate) last: bool,
}

/// What goes into an `<rpc-reply>`.
enum Reply {
    Ok,
    /// `<ok/>`, and the session is over.
    Close,
    /// XML.
    Content(String),
}

/// The last thing said to a client that has lost step.
pub(crate) fn framing_fault(fault: &FramingFault) -> String {
    let tag = match fault {
        FramingFault::TooLong { .. } => Tag::TooBig,
        _ => Tag::MalformedMessage,
    };
    error::reply("", &RpcError::rpc(tag, fault.to_string()).into())
}

/// Does what a message asks for. Whatever is in it, there is an answer.
pub(crate) async fn answer<B: Backend>(
    inner: &Inner<B>,
    live: &Live,
    subscription: &mut Option<Subscription>,
    framing: Framing,
    message: Vec<u8>,
) -> Answer {
    let long = message.len() > LONG;
    // Given back before the reply is written, so that a slow reader keeps nobody else waiting.
    let _turn = if long { inner.long_messages.acquire().await.ok() } else { None };
    let settings = inner.settings();
    let text = String::from_utf8(message).map_err(|_| malformed("it is not UTF-8"));
    // The declaration must be the first thing of a document; RFC 6242 (4.2) has a line feed before it in places.
    let parsed = match &text {
        Ok(text) => working(long, || document::parse(text.trim_start(), &settings.xml)),
        Err(error) => Err(error.clone()),
    };
    let document = match parsed {
        Ok(document) => document,
        Err(mut error) => {
            count(inner, live, |counts| &counts.in_bad_rpcs);
            // RFC 6241, appendix A: who speaks base:1.0 does not know malformed-message.
            if error.tag == Tag::MalformedMessage && framing == Framing::EndOfMessage {
                error.tag = Tag::OperationFailed;
            }
            return refused(inner, live, "", error.into());
        }
    };
    let attributes = echoed(&document);
    let operation = match operation(&document) {
        Ok(operation) => operation,
        Err(error) => {
            count(inner, live, |counts| &counts.in_bad_rpcs);
            return refused(inner, live, &attributes, error.into());
        }
    };
    count(inner, live, |counts| &counts.in_rpcs);
    let request = Request { inner, live, caller: &live.caller, long };
    match request.answer(operation, subscription).await {
        Ok(reply) => {
            let mut out = Writer::default();
            out.raw(&format!("<rpc-reply xmlns=\"{BASE}\"{attributes}>"));
            match &reply {
                Reply::Ok | Reply::Close => out.empty("ok"),
                Reply::Content(content) => out.raw(content),
            }
            out.close("rpc-reply");
            Answer { text: out.finish(), last: matches!(reply, Reply::Close) }
        }
        Err(refusal) => refused(inner, live, &attributes, refusal),
    }
}

fn refused<B>(inner: &Inner<B>, live: &Live, attributes: &str, refusal: Refusal) -> Answer {
    count(inner, live, |counts| &counts.out_rpc_errors);
    tracing::debug!(session = live.caller.session, %refusal, "netconf request refused");
    Answer { text: error::reply(attributes, &refusal), last: false }
}

fn count<B>(
    inner: &Inner<B>,
    live: &Live,
    which: impl Fn(&crate::server::RpcCounts) -> &std::sync::atomic::AtomicU32,
) {
    which(&live.counts).fetch_add(1, Relaxed);
    which(&inner.counts.rpcs).fetch_add(1, Relaxed);
}

/// Runs what may take long without keeping other tasks from this thread, where there are other threads.
fn working<T>(long: bool, work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current() {
        Ok(handle) if long && handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(work)
        }
        _ => work(),
    }
}

/// The attributes of `<rpc>`, which the reply has too (RFC 6241, 4.1), and the prefixes in them.
fn echoed(document: &Document<'_>) -> String {
    let rpc = document.root_element();
    if (namespace(rpc), rpc.tag_name().name()) != (BASE, "rpc") {
        return String::new();
    }
    let mut out = Writer::default();
    for declared in rpc.namespaces() {
        if let Some(prefix) = declared.name().filter(|prefix| *prefix != "xml") {
            out.attribute(&format!("xmlns:{prefix}"), declared.uri());
        }
    }
    for attribute in rpc.attributes() {
        let prefix = match attribute.namespace() {
            None => None,
            Some(XMLNS) => continue,
            Some("http://www.w3.org/XML/1998/namespace") => Some("xml"),
            // The one prefix that there can be for it, or one as good.
            Some(uri) => match rpc.namespaces().find(|known| known.uri() == uri && known.name().is_some()) {
                Some(known) => known.name(),
                None => continue,
            },
        };
        match prefix {
            Some(prefix) => out.attribute(&format!("{prefix}:{}", attribute.name()), attribute.value()),
            None => out.attribute(attribute.name(), attribute.value()),
        }
    }
    out.finish()
}

/// The one element in `<rpc>`.
fn operation<'doc, 'text>(document: &'doc Document<'text>) -> Result<Node<'doc, 'text>, RpcError> {
    let rpc = document.root_element();
    let name = rpc.tag_name().name();
    if name != "rpc" || namespace(rpc) != BASE {
        let message = format!("a message is an rpc of {BASE}, not {name} of {:?}", namespace(rpc));
        return Err(RpcError { layer: Layer::Rpc, ..RpcError::unknown_element(name, message) });
    }
    if rpc.attribute("message-id").is_none() {
        let error = RpcError::rpc(Tag::MissingAttribute, "an rpc needs the attribute message-id");
        return Err(error
            .with(Info::BadAttribute("message-id".to_owned()))
            .with(Info::BadElement("rpc".to_owned())));
    }
    let mut inside = elements(rpc);
    let Some(operation) = inside.next() else {
        return Err(RpcError { layer: Layer::Rpc, ..missing("an rpc", "operation") });
    };
    if let Some(second) = inside.next() {
        let name = second.tag_name().name();
        let message = format!("an rpc has one operation; {name} is another");
        return Err(RpcError { layer: Layer::Rpc, ..RpcError::bad_element(name, message) });
    }
    Ok(operation)
}

/// What a retrieval takes of the data.
enum Filter<'doc, 'text> {
    None,
    Subtree(Node<'doc, 'text>),
    XPath(String, BTreeMap<String, String>),
}

struct Request<'a, B> {
    inner: &'a Inner<B>,
    live: &'a Live,
    caller: &'a Caller,
    long: bool,
}

impl<B: Backend> Request<'_, B> {
    async fn answer(
        &self,
        operation: Node<'_, '_>,
        subscription: &mut Option<Subscription>,
    ) -> Result<Reply, Refusal> {
        match (namespace(operation), operation.tag_name().name()) {
            (BASE, "get") => self.get(operation).await,
            (BASE, "get-config") => self.get_config(operation).await,
            (BASE, "edit-config") => self.edit_config(operation).await,
            (BASE, "copy-config") => self.copy_config(operation).await,
            (BASE, "delete-config") => self.delete_config(operation).await,
            (BASE, "lock") => self.lock(operation).await,
            (BASE, "unlock") => self.unlock(operation).await,
            (BASE, "validate") => self.validate(operation).await,
            (BASE, "commit") => self.commit(operation).await,
            (BASE, "cancel-commit") => self.cancel_commit(operation).await,
            (BASE, "discard-changes") => self.discard_changes(operation).await,
            (BASE, "close-session") => {
                Parameters::of(operation, &[])?;
                self.permit(operation, Access::Session, None)?;
                Ok(Reply::Close)
            }
            (BASE, "kill-session") => self.kill_session(operation).await,
            (MONITORING, "get-schema") => self.get_schema(operation),
            (NOTIFICATION, "create-subscription") => self.subscribe(operation, subscription),
            _ => self.call(operation).await,
        }
    }

    fn permit(
        &self,
        operation: Node<'_, '_>,
        access: Access,
        datastore: Option<Datastore>,
    ) -> Result<(), RpcError> {
        self.permit_action(&Action { name: operation.tag_name().name(), access, datastore, rpc: None })
    }

    fn permit_action(&self, action: &Action<'_>) -> Result<(), RpcError> {
        self.inner.backend.permit(self.caller, action).map_err(RpcError::access_denied)
    }

    // Retrieval.

    async fn get(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["filter", "with-defaults"])?;
        self.permit(operation, Access::Look, Some(Datastore::Running))?;
        let (filter, defaults) = (self.filter(&parameters)?, parameters.defaults()?);
        let data = self.inner.backend.read_state(self.caller).await?;
        let own = own::state(self.inner).map_err(|fault| {
            RpcError::new(Tag::OperationFailed, format!("the server's own state: {fault}"))
        })?;
        self.data(&[&data, &own], &filter, defaults)
    }

    async fn get_config(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["source", "filter", "with-defaults"])?;
        let source = parameters.datastore("source")?;
        self.permit(operation, Access::Look, Some(source))?;
        let (filter, defaults) = (self.filter(&parameters)?, parameters.defaults()?);
        let data = self.inner.backend.read(self.caller, source).await?;
        self.data(&[&data], &filter, defaults)
    }

    fn filter<'doc, 'text: 'doc>(
        &self,
        parameters: &Parameters<'doc, 'text>,
    ) -> Result<Filter<'doc, 'text>, RpcError> {
        let Some(filter) = parameters.element("filter") else { return Ok(Filter::None) };
        let attribute = |name: &str| filter.attribute(name).or_else(|| filter.attribute((BASE, name)));
        let about = |tag, attribute: &str, message: String| {
            RpcError::protocol(tag, message)
                .with(Info::BadAttribute(attribute.to_owned()))
                .with(Info::BadElement("filter".to_owned()))
        };
        match attribute("type") {
            None | Some("subtree") => Ok(Filter::Subtree(filter)),
            Some("xpath") if self.inner.backend.has_xpath() => {
                let select = attribute("select").ok_or_else(|| {
                    about(
                        Tag::MissingAttribute,
                        "select",
                        "an xpath filter needs the attribute select".into(),
                    )
                })?;
                let prefixes = filter
                    .namespaces()
                    .filter_map(|known| Some((known.name()?.to_owned(), known.uri().to_owned())))
                    .collect();
                Ok(Filter::XPath(select.to_owned(), prefixes))
            }
            Some("xpath") => {
                let message = "xpath filters are not supported (no capability xpath); use a subtree filter";
                Err(about(Tag::OperationNotSupported, "type", message.to_owned()))
            }
            Some(other) => {
                let message = format!("a filter's type is subtree or xpath, not {other}");
                Err(about(Tag::BadAttribute, "type", message))
            }
        }
    }

    /// A `<data>` with what the filter takes of some trees.
    fn data(&self, trees: &[&Tree], filter: &Filter<'_, '_>, defaults: Defaults) -> Result<Reply, Refusal> {
        let mut out = Writer::default();
        out.open("data");
        // The size of what is read is unknown, so it is taken for long.
        working(true, || -> Result<(), RpcError> {
            match filter {
                Filter::None => {
                    for tree in trees {
                        retrieval::write(&mut out, tree, None, defaults);
                    }
                }
                Filter::Subtree(filter) => {
                    for tree in trees {
                        let siblings = Siblings::of(tree.schema(), *filter)?;
                        retrieval::write(&mut out, tree, Some(&siblings), defaults);
                    }
                }
                Filter::XPath(expression, prefixes) => {
                    // The backend's is the first; the protocol's own state is no part of its schema.
                    for tree in trees.iter().take(1) {
                        if let Some(selected) = self.inner.backend.select(tree, expression, prefixes) {
                            retrieval::write(&mut out, &selected?, None, defaults);
                        }
                    }
                }
            }
            Ok(())
        })?;
        out.close("data");
        Ok(Reply::Content(out.finish()))
    }

    fn get_schema(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["identifier", "version", "format"])?;
        self.permit(operation, Access::Look, None)?;
        let identifier = parameters.text("identifier")?.ok_or_else(|| missing("get-schema", "identifier"))?;
        let version = parameters.text("version")?;
        if let Some(format) = parameters.text("format")?
            && format.rsplit(':').next() != Some("yang")
        {
            return Err(invalid("format", format!("schemas are there as yang, not {format}")).into());
        }
        let modules = self.inner.backend.modules();
        let fits = |module: &&crate::Module| {
            module.name == identifier
                && !module.text.is_empty()
                && version
                    .as_deref()
                    .is_none_or(|version| version == module.revision.as_deref().unwrap_or_default())
        };
        let mut found = modules.iter().filter(fits);
        let Some(module) = found.next() else {
            let version = version.map_or_else(String::new, |version| format!(" of {version}"));
            return Err(invalid("identifier", format!("there is no schema {identifier}{version}")).into());
        };
        if found.next().is_some() {
            // RFC 6022, 3.1.
            let error =
                RpcError::new(Tag::OperationFailed, format!("there are several schemas {identifier}"));
            return Err(error.app_tag("data-not-unique").into());
        }
        let mut out = Writer::default();
        out.open_in("data", MONITORING);
        out.text(&module.text);
        out.close("data");
        Ok(Reply::Content(out.finish()))
    }

    // Change.

    async fn edit_config(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let known = ["target", "default-operation", "test-option", "error-option", "config", "url"];
        let parameters = Parameters::of(operation, &known)?;
        let target = parameters.datastore("target")?;
        self.permit(operation, Access::Configure, Some(target))?;
        let words = [("merge", Operation::Merge), ("replace", Operation::Replace), ("none", Operation::None)];
        let default = parameters.word("default-operation", &words)?.unwrap_or(Operation::Merge);
        let words = [("test-then-set", (true, true)), ("set", (false, true)), ("test-only", (true, false))];
        // RFC 7950 (8.3.3) leaves the constraints of a candidate to validate and commit, so that it is tested where the
        // client asks for that in so many words; types are always checked.
        let (test, set) = parameters.word("test-option", &words)?.unwrap_or((false, true));
        let words = [
            ("stop-on-error", AfterError::Stop),
            ("continue-on-error", AfterError::Continue),
            ("rollback-on-error", AfterError::Stop),
        ];
        let after_error = parameters.word("error-option", &words)?.unwrap_or(AfterError::Stop);
        if parameters.element("url").is_some() {
            let message = "configurations at a URL are not supported (no capability url)";
            let error = RpcError::protocol(Tag::OperationNotSupported, message);
            return Err(error.with(Info::BadElement("url".to_owned())).into());
        }
        let config = parameters.required("config")?;
        if target != Datastore::Candidate {
            let message = format!(
                "{} cannot be edited (no capability writable-running): edit the candidate, then commit",
                target.word()
            );
            return Err(RpcError::protocol(Tag::OperationNotSupported, message)
                .with(Info::BadElement(target.word().to_owned()))
                .into());
        }
        self.free(target)?;
        let backend = &self.inner.backend;
        let before = backend.read(self.caller, target).await?;
        let (edited, done) = working(self.long, || {
            let (mut edited, default) = match default {
                // All of the configuration is replaced (RFC 6241, 7.2), also where nothing is in the place.
                Operation::Replace => (Tree::new(Arc::clone(before.schema())), Operation::Merge),
                default => (before.clone(), default),
            };
            let done = edit::edit(&mut edited, config, default, after_error);
            (edited, done)
        });
        if after_error == AfterError::Stop {
            done.clone()?;
        }
        if test {
            backend.validate(self.caller, &edited).await?;
        }
        if set {
            backend.write(self.caller, target, edited, Some(before)).await?;
        }
        done.map(|()| Reply::Ok)
    }

    async fn copy_config(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["target", "source", "with-defaults"])?;
        let target = parameters.datastore("target")?;
        self.permit(operation, Access::Configure, Some(target))?;
        let source = parameters.place("source")?;
        // What is copied is what someone set, whatever was to be told of defaults.
        parameters.defaults()?;
        if target == Datastore::Running {
            let message = "running cannot be written (no capability writable-running): write the candidate, then commit";
            return Err(RpcError::protocol(Tag::OperationNotSupported, message)
                .with(Info::BadElement("running".to_owned()))
                .into());
        }
        let backend = &self.inner.backend;
        let tree = match source {
            Place::Datastore(source) if source == target => {
                let message = format!("{} is source and target", source.word());
                return Err(invalid("source", message).into());
            }
            Place::Datastore(source) => backend.read(self.caller, source).await?,
            Place::Inline(config) => working(self.long, || edit::read(&backend.schema(), config))?,
        };
        let _changes = self.inner.changes.lock().await;
        self.free(target)?;
        backend.write(self.caller, target, tree, None).await?;
        Ok(Reply::Ok)
    }

    async fn delete_config(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["target"])?;
        let target = parameters.datastore("target")?;
        self.permit(operation, Access::Configure, Some(target))?;
        if target != Datastore::Startup {
            let message = format!("{} cannot be deleted, only startup can", target.word());
            return Err(RpcError::protocol(Tag::OperationNotSupported, message)
                .with(Info::BadElement(target.word().to_owned()))
                .into());
        }
        let _changes = self.inner.changes.lock().await;
        self.free(target)?;
        self.inner.backend.remove_startup(self.caller).await?;
        Ok(Reply::Ok)
    }

    async fn validate(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["source"])?;
        let source = parameters.place("source")?;
        let datastore = match &source {
            Place::Datastore(datastore) => Some(*datastore),
            Place::Inline(_) => None,
        };
        self.permit(operation, Access::Look, datastore)?;
        let backend = &self.inner.backend;
        let tree = match source {
            Place::Datastore(source) => backend.read(self.caller, source).await?,
            Place::Inline(config) => working(self.long, || edit::read(&backend.schema(), config))?,
        };
        backend.validate(self.caller, &tree).await?;
        Ok(Reply::Ok)
    }

    // Locks.

    /// Nobody else has locked it.
    fn free(&self, datastore: Datastore) -> Result<(), RpcError> {
        match self.inner.locks.other_holder(datastore, self.caller.session) {
            None => Ok(()),
            Some(held) => {
                let message = format!("{} is locked by session {}", datastore.word(), held.session);
                Err(RpcError::protocol(Tag::InUse, message).with(Info::SessionId(self.told(held.session))))
            }
        }
    }

    /// A session's number, 0 for one that is not of this protocol (RFC 6241, appendix A).
    fn told(&self, session: u32) -> u32 {
        self.inner.session(session).map_or(0, |live| live.caller.session)
    }

    async fn lock(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let target = Parameters::of(operation, &["target"])?.datastore("target")?;
        self.permit(operation, Access::Configure, Some(target))?;
        let _changes = self.inner.changes.lock().await;
        let backend = &self.inner.backend;
        let own = self.caller.session;
        // RFC 6241, 7.5: a candidate with changes, and a running that may yet go back, are not to be locked.
        if target == Datastore::Candidate && backend.changed(self.caller).await {
            let message = "the candidate has changes that are neither committed nor discarded";
            return Err(RpcError::lock_denied(own, message).into());
        }
        if target == Datastore::Running
            && let Some(pending) = backend.pending().await
            && pending.session != own
        {
            let message = "a commit of another session waits to be confirmed";
            return Err(RpcError::lock_denied(self.told(pending.session), message).into());
        }
        match self.inner.locks.lock(target, own) {
            Ok(()) => Ok(Reply::Ok),
            Err(held) => {
                let message = format!("{} is locked by session {}", target.word(), held.session);
                Err(RpcError::lock_denied(self.told(held.session), message).into())
            }
        }
    }

    async fn unlock(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let target = Parameters::of(operation, &["target"])?.datastore("target")?;
        self.permit(operation, Access::Configure, Some(target))?;
        match self.inner.locks.unlock(target, self.caller.session) {
            Ok(()) => Ok(Reply::Ok),
            Err(None) => {
                let message = format!("{} is not locked", target.word());
                Err(RpcError::protocol(Tag::OperationFailed, message).into())
            }
            Err(Some(held)) => {
                let message = format!("{} is locked by session {}", target.word(), held.session);
                let error = RpcError::protocol(Tag::OperationFailed, message);
                Err(error.with(Info::SessionId(self.told(held.session))).into())
            }
        }
    }

    // Commits (RFC 6241, 8.3 and 8.4).

    async fn commit(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let known = ["confirmed", "confirm-timeout", "persist", "persist-id"];
        let parameters = Parameters::of(operation, &known)?;
        self.permit(operation, Access::Configure, Some(Datastore::Running))?;
        let persist = parameters.text("persist")?.map(String::from);
        let timeout = parameters.number("confirm-timeout")?;
        let persist_id = parameters.text("persist-id")?.map(String::from);
        let confirmed = match parameters.text("confirmed")? {
            Some(text) if !text.is_empty() => {
                return Err(RpcError::bad_element("confirmed", "confirmed is empty").into());
            }
            Some(_) => {
                let timeout = Duration::from_secs(timeout.unwrap_or(CONFIRM_TIMEOUT).into());
                Some(Confirmed { timeout, persist })
            }
            None if persist.is_some() || timeout.is_some() => {
                let message = "confirm-timeout and persist are of a confirmed commit, which needs confirmed";
                return Err(RpcError::missing_element("confirmed", message).into());
            }
            None => None,
        };
        let _changes = self.inner.changes.lock().await;
        self.free(Datastore::Running)?;
        self.free(Datastore::Candidate)?;
        self.may_confirm(persist_id.as_deref()).await?;
        self.inner.backend.commit(self.caller, &Commit { confirmed, persist_id }).await?;
        Ok(Reply::Ok)
    }

    /// Whether a commit may follow the one that waits.
    async fn may_confirm(&self, persist_id: Option<&str>) -> Result<(), RpcError> {
        let Some(pending) = self.inner.backend.pending().await else {
            return match persist_id {
                None => Ok(()),
                Some(_) => Err(invalid("persist-id", "no commit waits to be confirmed".to_owned())),
            };
        };
        match (&pending.persist, persist_id) {
            (Some(persist), Some(id)) if persist == id => Ok(()),
            (Some(_), Some(_)) => {
                Err(invalid("persist-id", "persist-id is not that of the commit that waits".to_owned()))
            }
            (Some(_), None) => {
                let message = "a commit that persists waits to be confirmed, with its persist-id";
                Err(invalid("persist-id", message.to_owned()))
            }
            (None, Some(_)) => {
                Err(invalid("persist-id", "the commit that waits does not persist".to_owned()))
            }
            (None, None) if pending.session == self.caller.session => Ok(()),
            (None, None) => {
                let session = self.told(pending.session);
                let message = format!("a commit of session {} waits to be confirmed", pending.session);
                Err(RpcError::protocol(Tag::InUse, message).with(Info::SessionId(session)))
            }
        }
    }

    async fn cancel_commit(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["persist-id"])?;
        self.permit(operation, Access::Configure, Some(Datastore::Running))?;
        let persist_id = parameters.text("persist-id")?;
        let _changes = self.inner.changes.lock().await;
        if self.inner.backend.pending().await.is_none() {
            let message = "no commit waits to be confirmed";
            return Err(RpcError::protocol(Tag::OperationFailed, message).into());
        }
        self.may_confirm(persist_id.as_deref()).await?;
        self.inner.backend.cancel_commit(self.caller).await?;
        Ok(Reply::Ok)
    }

    async fn discard_changes(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        Parameters::of(operation, &[])?;
        self.permit(operation, Access::Configure, Some(Datastore::Candidate))?;
        self.free(Datastore::Candidate)?;
        self.inner.backend.discard(self.caller).await?;
        Ok(Reply::Ok)
    }

    // Sessions.

    async fn kill_session(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["session-id"])?;
        self.permit(operation, Access::Configure, None)?;
        let number = parameters.number("session-id")?.ok_or_else(|| missing("kill-session", "session-id"))?;
        if number == self.caller.session {
            let message = "this is the session itself: use close-session".to_owned();
            return Err(invalid("session-id", message).into());
        }
        let Some(live) = self.inner.session(number) else {
            return Err(invalid("session-id", format!("there is no session {number}")).into());
        };
        live.end(&Ending::Killed(self.caller.session));
        // Two sessions that kill one another both end.
        tokio::select! {
            () = live.gone() => {}
            _ = self.live.told() => {}
        }
        Ok(Reply::Ok)
    }

    fn subscribe(
        &self,
        operation: Node<'_, '_>,
        subscription: &mut Option<Subscription>,
    ) -> Result<Reply, Refusal> {
        let parameters = Parameters::of(operation, &["stream", "filter", "startTime", "stopTime"])?;
        self.permit(operation, Access::Look, None)?;
        if subscription.is_some() {
            let message = "the session has a subscription; it lasts as long as the session";
            return Err(RpcError::protocol(Tag::OperationFailed, message).into());
        }
        if let Some(stream) = parameters.text("stream")?
            && stream != STREAM
        {
            return Err(invalid("stream", format!("there is no stream {stream}, only {STREAM}")).into());
        }
        // RFC 5277, 2.1.1 and 3.2.5.1: a stream says whether it has a past.
        if parameters.element("startTime").is_some() {
            let message =
                "what happened earlier is not kept: subscribe without startTime (replaySupport false)";
            let error = RpcError::protocol(Tag::OperationNotSupported, message);
            return Err(error.with(Info::BadElement("startTime".to_owned())).into());
        }
        if parameters.element("stopTime").is_some() {
            return Err(RpcError::missing_element("startTime", "stopTime needs startTime").into());
        }
        let filter = match self.filter(&parameters)? {
            Filter::None => None,
            Filter::Subtree(filter) => Some(Arc::new(Siblings::of(&self.inner.backend.schema(), filter)?)),
            Filter::XPath(..) => {
                let message = "notifications are filtered by subtree filters";
                let error = RpcError::protocol(Tag::OperationNotSupported, message);
                return Err(error.with(Info::BadElement("filter".to_owned())).into());
            }
        };
        *subscription = Some(Subscription { events: self.inner.backend.subscribe(), filter });
        Ok(Reply::Ok)
    }

    // RPCs of the schema.

    async fn call(&self, operation: Node<'_, '_>) -> Result<Reply, Refusal> {
        let backend = &self.inner.backend;
        let schema = backend.schema();
        let name = operation.tag_name().name();
        let rpc = schema.below(None).find(|node| {
            node.kind == Kind::Rpc
                && node.name == name
                && schema.module_of(node).namespace == namespace(operation)
        });
        let Some(rpc) = rpc else {
            let message = format!("there is no operation {name} of {:?}", namespace(operation));
            let error = RpcError::protocol(Tag::OperationNotSupported, message);
            return Err(error.with(Info::BadElement(name.to_owned())).into());
        };
        self.permit_action(&Action { name, access: Access::Call, datastore: None, rpc: Some(rpc.id) })?;
        let input = working(self.long, || edit::input(&schema, rpc, operation))?;
        let Some(output) = backend.call(self.caller, rpc.id, input).await? else { return Ok(Reply::Ok) };
        let mut path = Path::default().child(rpc.id);
        if let Some(node) = schema.below(Some(rpc.id)).find(|node| node.kind == Kind::Output) {
            path = path.child(node.id);
        }
        let mut out = Writer::default();
        working(true, || retrieval::write_below(&mut out, &output, &path));
        let content = out.finish();
        Ok(if content.is_empty() { Reply::Ok } else { Reply::Content(content) })
    }
}
