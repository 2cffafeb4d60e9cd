//! How a frame ends: exactly one verdict, with a reason where it is a bypass or a drop.

use std::fmt;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Sent to an appliance behind the steering header.
    ToEcofilter,
    /// Came back from an appliance and left through its link.
    Return,
    /// A keep-alive from a pair port, handed to the controller.
    ToController,
    /// Left through the peer port of its link, unchanged.
    Bypass,
    /// Not forwarded.
    Drop,
}

impl Verdict {
    /// The name in `replay` and in `show counters drops`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::ToEcofilter => "to-ecofilter",
            Verdict::Return => "return",
            Verdict::ToController => "to-controller",
            Verdict::Bypass => "bypass",
            Verdict::Drop => "drop",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Slots of a counter that is indexed by [`Reason`].
pub const REASON_SLOTS: usize = 32;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $verdict:ident, $text:expr;)*) => {
        /// The one counter that a frame ends in. The numbers are counter indices and never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $name = $number,)*
        }

        impl Reason {
            /// All reasons, in the order of their numbers.
            pub const ALL: &'static [Reason] = &[$(Reason::$name),*];

            /// The verdict that this is a reason of.
            #[inline]
            #[must_use]
            pub const fn verdict(self) -> Verdict {
                match self { $(Reason::$name => Verdict::$verdict,)* }
            }

            /// The reason's name; `None` where the verdict alone says it.
            #[must_use]
            pub const fn as_str(self) -> Option<&'static str> {
                match self { $(Reason::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// Sent to an appliance.
    Forwarded = 0, ToEcofilter, None;
    /// Returned to its link.
    Returned = 1, Return, None;
    /// Keep-alive from a pair port, plain or steered.
    KeepAlive = 2, ToController, None;
    /// A flow rule says `bypass`.
    FlowBypass = 3, Bypass, Some("flow");
    /// No flow rule matches.
    NoFlow = 4, Bypass, Some("no-flow");
    /// To be balanced, but no IP header was found.
    NotIp = 5, Bypass, Some("not-ip");
    /// To be balanced, but a fourth VLAN tag.
    VlanTooDeep = 6, Bypass, Some("vlan-too-deep");
    /// To be balanced, but a seventh MPLS label.
    MplsTooDeep = 7, Bypass, Some("mpls-too-deep");
    /// The unit is in bypass, by hand or for too few pairs.
    UnitBypass = 8, Bypass, Some("unit-bypass");
    /// The bucket's pair is down and the unit fails open.
    PairDownBypass = 9, Bypass, Some("pair-down");
    /// A copy went to the appliance; the frame itself took the peer port.
    Copy = 10, Bypass, Some("copy");
    /// The bucket has no entry (yet): fail open.
    NoBucket = 11, Bypass, Some("no-bucket");
    /// The bucket's worker core is down and the unit fails open.
    CoreDownBypass = 12, Bypass, Some("core-down");
    /// The bucket is shed: what the appliance cannot carry takes the peer port.
    Shed = 13, Bypass, Some("shed");
    /// A flow rule says `drop`.
    FlowDrop = 16, Drop, Some("flow");
    /// Longer than the MTU of the port it would leave by.
    MtuExceeded = 17, Drop, Some("mtu-exceeded");
    /// The bucket's pair is down and the unit's `fail-action` is drop.
    PairDownDrop = 18, Drop, Some("pair-down");
    /// From a pair port without a steering header.
    NoSteeringHeader = 19, Drop, Some("no-steering-header");
    /// From a pair port, naming a link that does not exist.
    UnknownLink = 20, Drop, Some("unknown-link");
    /// From a pair port of a unit that only gets copies.
    CopyReturn = 21, Drop, Some("copy-return");
    /// From a port that is neither a link's nor a pair's.
    UnknownPort = 22, Drop, Some("unknown-port");
    /// The port it would leave by has no room or no carrier.
    PortFull = 23, Drop, Some("port-full");
    /// The bucket's worker core is down and the unit's `fail-action` is drop.
    CoreDownDrop = 24, Drop, Some("core-down");
}

impl Reason {
    /// The counter index.
    #[inline]
    #[must_use]
    pub const fn slot(self) -> usize {
        self as usize
    }
}
