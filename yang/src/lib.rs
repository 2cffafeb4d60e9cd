//! The YANG modules of Sluice, and what libyang makes of them: the [`tree::Schema`] that everything else reads,
//! validation of a whole configuration, validation of an RPC's input, XPath over data.
//!
//! libyang gets text that the crate `tree` wrote, never a client's: see [`Yang::validate`]. Each call works on data
//! of its own, so that one [`Yang`] serves any number of threads; it takes as long as the data is large, so call it
//! where blocking is fine.
#![deny(unsafe_code)]

mod compiled;
mod fault;
#[allow(unsafe_code, reason = "what libyang's safe binding leaves out")]
mod ffi;
mod instance;
mod modules;
mod statement;
mod validate;
mod xpath;

pub use fault::{Fault, FaultKind};
pub use modules::{MODULES, ModuleText};
pub use xpath::XpathError;

use std::sync::Arc;

use tree::Schema;
use yang5::context::{Context, ContextFlags};
use yang5::schema::{SchemaInputFormat, SchemaModule};

/// The modules as libyang compiled them.
pub struct Yang {
    context: Context,
    schema: Arc<Schema>,
}

/// Modules that cannot be used: a mistake in them or in libyang's build, not in anything that a user wrote.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// libyang could not be started.
    #[error("libyang cannot be started: {0}")]
    Start(String),
    /// libyang refuses a module.
    #[error("module {module} is refused: {reason}")]
    Refused {
        /// Its name.
        module: String,
        /// What libyang says.
        reason: String,
    },
    /// libyang took a module but printed something unexpected for it.
    #[error("module {module}, as libyang compiled it: {reason}")]
    Compiled {
        /// Its name.
        module: String,
        /// What was not understood.
        reason: String,
    },
}

impl Yang {
    /// Loads the modules that are built in.
    ///
    /// # Errors
    /// Which module, and why.
    pub fn load() -> Result<Self, LoadError> {
        let context = Context::new(ContextFlags::NO_YANGLIBRARY | ContextFlags::DISABLE_SEARCHDIRS)
            .map_err(|error| LoadError::Start(error.to_string()))?;
        ffi::keep_all_errors();
        let mut builder = compiled::Builder::default();
        for text in MODULES {
            ffi::clear_errors(&context);
            let refused = |error: yang5::Error| LoadError::Refused {
                module: text.name.to_owned(),
                reason: match &error.path {
                    Some(path) => format!("{error} ({path})"),
                    None => error.to_string(),
                },
            };
            let module =
                SchemaModule::parse_string(&context, text.text, SchemaInputFormat::YANG).map_err(refused)?;
            builder
                .module(&module)
                .map_err(|reason| LoadError::Compiled { module: text.name.to_owned(), reason })?;
        }
        let schema =
            builder.finish().map_err(|reason| LoadError::Compiled { module: "sluice".to_owned(), reason })?;
        Ok(Yang { context, schema: Arc::new(schema) })
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
}
