#!/bin/sh
# Compiles the P4 program into p4/build; called by `make p4`, from the project's root.
set -eu

if ! command -v p4c-bm2-ss >/dev/null; then
    echo "make p4: p4c-bm2-ss is not on PATH. It is part of p4c (https://github.com/p4lang/p4c), built with" >&2
    echo "ENABLE_BMV2=ON. Only a change below p4/ needs it: what it made of the present source is in p4/build." >&2
    exit 1
fi
out=p4/build
mkdir -p "$out/tofino1-limits"
p4c-bm2-ss --std p4-16 p4/v1model/sluice.p4 -o "$out/sluice.bmv2.json" --p4runtime-files "$out/sluice.p4info.txtpb"
# The same as far as Tofino 1 parses: for `testbed differential --profile tofino1`.
p4c-bm2-ss --std p4-16 -DTOFINO1_LIMITS p4/v1model/sluice.p4 -o "$out/tofino1-limits/sluice.bmv2.json" \
    --p4runtime-files "$out/tofino1-limits/sluice.p4info.txtpb"
# What it was made from: tests compare.
sha256sum p4/core/*.p4 p4/v1model/*.p4 p4/tna/*.p4 >"$out/SOURCE"
echo "make p4: $out/sluice.bmv2.json, $out/sluice.p4info.txtpb"
