// How far Tofino 1 parses (`dataplane/src/target.rs`, TOFINO1): its parser has 256 rows, and what it skips it cannot send
// out again. v1model has the same limits where TOFINO1_LIMITS is defined, so that the interpreter can compare them with
// `swpipe --profile tofino1`.

#ifndef SLUICE_LIMITS
#define SLUICE_LIMITS

// Only extension headers of eight bytes are walked: a longer one ends the walk at its own number, as one that is cut does.
#define ARCH_WALK_EXTENSION(whole) \
    transition select(pkt.lookahead<bit<16>>()) { \
        0x0000 &&& 0x00ff: whole; \
        default: accept; \
    }

// Of an inner header with options, addresses and protocol stand, and nothing behind them is looked at; an inner header's
// extension headers are not walked.
#define ARCH_INNER_OPTION_CASES \
    (4, 6 &&& 14): inner_v4_bare; \
    (4, 8 &&& 8): inner_v4_bare;
#define ARCH_INNER_OPTION_STATES \
    state inner_v4_bare { \
        meta.parsed.inner_v4 = 1; \
        transition accept; \
    }
#define ARCH_INNER_EXTENSION_CASES NO_EXTENSION_CASES
#define ARCH_INNER_WALK_STATES

#endif
