//! What the safe binding leaves out: the compiled form of a module, all errors of a call, and an RPC's input checked
//! against other data.

use std::ffi::{CStr, c_char};
use std::ptr;

use yang5::context::Context;
use yang5::data::{Data, DataTree};
use yang5::ffi;
use yang5::schema::SchemaModule;

/// An error as libyang keeps it.
pub(crate) struct Raw {
    pub(crate) message: String,
    /// Instance identifier, with module names where they change.
    pub(crate) data_path: Option<String>,
    pub(crate) schema_path: Option<String>,
    pub(crate) app_tag: Option<String>,
}

/// Makes libyang keep every error of a call, not the last alone, and print none. For the whole process.
pub(crate) fn keep_all_errors() {
    // SAFETY: sets an atomic option of the library; no pointers are involved.
    unsafe { ffi::ly_log_options(ffi::LY_LOSTORE) };
}

/// The context's own pointer, by way of a module of it: libyang's own are always there.
fn raw(context: &Context) -> *const ffi::ly_ctx {
    match context.modules(false).next() {
        // SAFETY: the module belongs to the context and is alive as long as that.
        Some(module) => unsafe { (*module.as_raw()).ctx },
        None => ptr::null(),
    }
}

/// Forgets the errors that this thread has of a context: libyang never does so by itself.
pub(crate) fn clear_errors(context: &Context) {
    // SAFETY: the context is alive as long as the reference; a null item means all of this thread's, and no reference
    // to one outlives `errors`.
    unsafe { ffi::ly_err_clean(raw(context), ptr::null_mut()) };
}

/// The errors that this thread has of a context, oldest first, at most `limit`.
pub(crate) fn errors(context: &Context, limit: usize) -> Vec<Raw> {
    let mut found = Vec::new();
    // SAFETY: the context is alive as long as the reference; the list is this thread's own.
    let mut item = unsafe { ffi::ly_err_first(raw(context)) };
    // SAFETY: an item that is not null stays until `clear_errors` is called by this thread, which the loop does not.
    while let Some(error) = unsafe { item.as_ref() } {
        if found.len() == limit {
            break;
        }
        if error.level == ffi::LY_LOG_LEVEL::LY_LLERR {
            found.push(Raw {
                message: text(error.msg).unwrap_or_default(),
                data_path: text(error.data_path),
                schema_path: text(error.schema_path),
                app_tag: text(error.apptag),
            });
        }
        item = error.next;
    }
    found
}

/// Copies a text of an error item.
fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: texts of error items end with a zero and live as long as the item, which outlives this call.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A module as libyang compiled it: types resolved, groupings expanded. In the syntax of YANG, more or less.
pub(crate) fn compiled(module: &SchemaModule<'_>) -> Result<String, String> {
    let mut text: *mut c_char = ptr::null_mut();
    let format = ffi::LYS_OUTFORMAT::LYS_OUT_YANG_COMPILED;
    // SAFETY: the module is alive as long as the reference; libyang writes a new text's address to `text`.
    let result = unsafe { ffi::lys_print_mem(&mut text, module.as_raw(), format, 0) };
    if text.is_null() || result != ffi::LY_ERR::LY_SUCCESS {
        return Err(format!("cannot be printed (libyang's error {result})"));
    }
    // SAFETY: the text is not null, ends with a zero, and is nobody else's; it is freed once, by the allocator that
    // made it.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        ffi::free(text.cast());
        Ok(copy)
    }
}

/// Checks an RPC's input; what it refers to is looked up in `data`.
pub(crate) fn validate_rpc(input: &DataTree<'_>, data: &DataTree<'_>) -> bool {
    let kind = ffi::lyd_type::LYD_TYPE_RPC_YANG;
    // SAFETY: both trees are alive and of one context, and nobody else has the input's; `data` is only read. Of the
    // input, defaults are added below its root, which stays the same.
    let result = unsafe { ffi::lyd_validate_op(input.raw(), data.raw(), kind, ptr::null_mut()) };
    result == ffi::LY_ERR::LY_SUCCESS
}
