//! The hellos (RFC 6241, 8.1), and what they say of the server.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::backend::{Backend, Module};
use crate::document::{self, XmlLimits, content, elements, namespace};
use crate::framing::Framing;
use crate::name::{BASE, MONITORING};
use crate::writer::Writer;

const BASE_1_0: &str = "urn:ietf:params:netconf:base:1.0";
const BASE_1_1: &str = "urn:ietf:params:netconf:base:1.1";

/// What the server can, whatever the modules.
const CAPABILITIES: [&str; 10] = [
    BASE_1_0,
    BASE_1_1,
    "urn:ietf:params:netconf:capability:candidate:1.0",
    "urn:ietf:params:netconf:capability:confirmed-commit:1.1",
    "urn:ietf:params:netconf:capability:rollback-on-error:1.0",
    "urn:ietf:params:netconf:capability:validate:1.1",
    "urn:ietf:params:netconf:capability:startup:1.0",
    "urn:ietf:params:netconf:capability:with-defaults:1.0?basic-mode=explicit&also-supported=report-all,report-all-tagged,trim",
    "urn:ietf:params:netconf:capability:notification:1.0",
    "urn:ietf:params:netconf:capability:interleave:1.0",
];

/// All that the server can.
pub(crate) fn capabilities<B: Backend>(backend: &B) -> Vec<String> {
    let mut capabilities: Vec<String> = CAPABILITIES.map(str::to_owned).to_vec();
    if backend.has_xpath() {
        capabilities.push("urn:ietf:params:netconf:capability:xpath:1.0".to_owned());
    }
    let modules = backend.modules();
    let set = module_set_id(&modules);
    capabilities.push(format!(
        "urn:ietf:params:netconf:capability:yang-library:1.0?revision=2016-06-21&module-set-id={set}"
    ));
    // RFC 7950, 5.6.4: modules of YANG 1.1 are told by ietf-yang-library.
    for module in modules.iter().filter(|module| module.implemented && !module.version_1_1) {
        capabilities.push(capability(module));
    }
    if !modules.iter().any(|module| module.namespace == MONITORING) {
        // RFC 6022, 2: what tells that get-schema is there.
        capabilities.push(format!("{MONITORING}?module=ietf-netconf-monitoring&revision=2010-10-04"));
    }
    capabilities
}

/// A module as RFC 6020 (5.6.4) tells of it.
fn capability(module: &Module) -> String {
    let mut text = format!("{}?module={}", module.namespace, module.name);
    if let Some(revision) = &module.revision {
        text.push_str(&format!("&revision={revision}"));
    }
    if !module.features.is_empty() {
        text.push_str(&format!("&features={}", module.features.join(",")));
    }
    text
}

/// Changes whenever the modules do (RFC 7895, 2.2).
pub(crate) fn module_set_id(modules: &[Module]) -> String {
    let mut hasher = DefaultHasher::new();
    for module in modules {
        (&module.name, &module.revision, &module.features, module.implemented).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// The server's hello.
pub(crate) fn write<B: Backend>(backend: &B, session: u32) -> String {
    let mut out = Writer::default();
    out.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    out.open_in("hello", BASE);
    out.open("capabilities");
    for capability in capabilities(backend) {
        out.leaf("capability", &capability);
    }
    out.close("capabilities");
    out.leaf("session-id", &session.to_string());
    out.close("hello");
    out.finish()
}

/// How to go on after the client's hello.
///
/// # Errors
/// Why there can be no session (RFC 6241, 8.1).
pub(crate) fn read(text: &str, limits: &XmlLimits) -> Result<Framing, String> {
    let document = document::parse(text.trim_start(), limits).map_err(|error| error.message)?;
    let hello = document.root_element();
    if (namespace(hello), hello.tag_name().name()) != (BASE, "hello") {
        return Err(format!("the first message is {} and no hello of {BASE}", hello.tag_name().name()));
    }
    let mut spoken = Vec::new();
    for element in elements(hello) {
        match element.tag_name().name() {
            "capabilities" => {
                let told = elements(element).filter(|told| told.tag_name().name() == "capability");
                spoken.extend(told.filter_map(content).map(|text| text.trim().to_owned()));
            }
            "session-id" => return Err("the client's hello has a session-id".to_owned()),
            _ => {}
        }
    }
    let speaks = |base: &str| spoken.iter().any(|told| told == base);
    if speaks(BASE_1_1) {
        Ok(Framing::Chunked)
    } else if speaks(BASE_1_0) {
        Ok(Framing::EndOfMessage)
    } else {
        Err(format!("the client speaks neither {BASE_1_0} nor {BASE_1_1}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(inner: &str) -> Result<Framing, String> {
        read(&format!("\n<h:hello xmlns:h=\"{BASE}\">{inner}</h:hello>"), &XmlLimits::default())
    }

    fn capability(text: &str) -> String {
        format!("<h:capabilities><h:capability>\n {text} </h:capability></h:capabilities>")
    }

    #[test]
    fn the_newest_common_version_is_spoken() {
        assert_eq!(hello(&capability(BASE_1_0)), Ok(Framing::EndOfMessage));
        assert_eq!(hello(&capability(BASE_1_1)), Ok(Framing::Chunked));
        assert_eq!(hello(&(capability(BASE_1_1) + &capability(BASE_1_0))), Ok(Framing::Chunked));
    }

    #[test]
    fn a_hello_that_rfc_6241_forbids_ends_the_session() {
        assert!(hello(&capability("urn:other")).unwrap_err().contains("neither"));
        assert!(hello(&(capability(BASE_1_1) + "<h:session-id>4</h:session-id>")).is_err());
        assert!(read("<hello/>", &XmlLimits::default()).unwrap_err().contains("no hello"));
        assert!(read("nothing", &XmlLimits::default()).is_err());
    }
}
