// The symmetric hash (contract, "Hash"): CRC-32 as in IEEE 802.3 over word-wise minimum and maximum. All four methods
// are computed beside the rules, which say later which one counts.

#ifndef SLUICE_HASH
#define SLUICE_HASH

control SessionHash(inout meta_t meta) {
    ARCH_CRC32(v4_layer_3)
    ARCH_CRC32(v4_layer_4)
    ARCH_CRC32(v4_src)
    ARCH_CRC32(v4_dst)
    ARCH_CRC32(v6_layer_3)
    ARCH_CRC32(v6_layer_4)
    ARCH_CRC32(v6_src)
    ARCH_CRC32(v6_dst)

    // On Tofino an action takes 32 bits from hash units: two hashes each.
    @hidden action v4_both() {
        ARCH_HASH(v4_layer_3, meta.hash_layer_3, meta.low0, meta.high0, meta.protocol);
        ARCH_HASH(v4_layer_4, meta.hash_layer_4,
                  meta.low0, meta.high0, meta.protocol, meta.low_port, meta.high_port);
    }

    @hidden action v4_one() {
        ARCH_HASH(v4_src, meta.hash_src, meta.src_v4);
        ARCH_HASH(v4_dst, meta.hash_dst, meta.dst_v4);
    }

    @hidden action v6_both() {
        ARCH_HASH(v6_layer_3, meta.hash_layer_3,
                  meta.low0, meta.low1, meta.low2, meta.low3,
                  meta.high0, meta.high1, meta.high2, meta.high3, meta.protocol);
        ARCH_HASH(v6_layer_4, meta.hash_layer_4,
                  meta.low0, meta.low1, meta.low2, meta.low3,
                  meta.high0, meta.high1, meta.high2, meta.high3,
                  meta.protocol, meta.low_port, meta.high_port);
    }

    @hidden action v6_one() {
        ARCH_HASH(v6_src, meta.hash_src, meta.src_v6);
        ARCH_HASH(v6_dst, meta.hash_dst, meta.dst_v6);
    }

    apply {
        if (meta.ip_version == 4) {
            v4_both();
            v4_one();
        } else if (meta.ip_version == 6) {
            v6_both();
            v6_one();
        }
    }
}

#endif
