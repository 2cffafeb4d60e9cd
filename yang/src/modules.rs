//! The texts of the modules.

/// A module as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleText {
    /// Its name.
    pub name: &'static str,
    /// Its newest revision, YYYY-MM-DD.
    pub revision: &'static str,
    /// Its XML namespace.
    pub namespace: &'static str,
    /// YANG 1.1.
    pub text: &'static str,
}

/// All modules, imported ones before those that import them.
pub const MODULES: &[ModuleText] = &[
    ModuleText {
        name: "sluice-types",
        revision: "2026-11-30",
        namespace: "urn:sluice:yang:sluice-types",
        text: include_str!("../../configs/yang/sluice-types.yang"),
    },
    ModuleText {
        name: "sluice",
        revision: "2026-11-30",
        namespace: "urn:sluice:yang:sluice",
        text: include_str!("../../configs/yang/sluice.yang"),
    },
];
