# Everything that a user or CI runs. `make demo` and `make test` need nothing but Debian 12 with Rust and root.

SHELL := /bin/bash
CARGO ?= cargo
RELEASE := target/release

.PHONY: help setup build demo test unit scenarios differential lint fmt bench bench-check p4 clean

help:
	@echo "make demo    build, set up two links, three appliances and five pairs, and show the main job"
	@echo "make test    every test: units, vectors, third-party clients, scenarios in network namespaces"
	@echo "make differential   300,000 frames through the compiled P4 program and the software pipeline"
	@echo "make lint    format, clippy, licences and duplicate versions of the crates"
	@echo "make bench   the frame path in memory, then over virtual cables beside other systems"
	@echo "make bench-check   the frame path in memory against the figures that were kept"
	@echo "make p4      compile the P4 program into p4/build (needs p4c on PATH)"

# What the system must have; installs it as root, else names it and stops.
setup:
	@testbed/setup.sh

build: setup
	$(CARGO) build --release -p swpipe -p controller -p cli -p testbed

demo: build
	$(RELEASE)/testbed demo --slack 50

test: unit scenarios differential

unit: setup
	$(CARGO) test --workspace

# The binaries of the test profile, so that nothing is built twice. Timed checks get slack, since whoever runs the
# tests may do something else meanwhile; `target/release/testbed all` is strict.
scenarios: setup
	$(CARGO) build --workspace --bins
	target/debug/testbed all --slack 250

# The compiled P4 program against the software pipeline, frame by frame; then a whole site on it.
differential: setup
	$(CARGO) build --workspace --bins
	target/debug/testbed differential --frames 300000
	target/debug/testbed vectors dataplane/vectors/frames/*.json --target p4ref
	target/debug/testbed run demo --scenario baseline --target p4ref --slack 500

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@testbed/setup.sh cargo-deny
	$(CARGO) deny --log-level error check licenses bans sources

fmt:
	$(CARGO) fmt --all

# In memory first, then over virtual cables, with other systems on the same ones (a quarter of an hour, as root). The
# figures go into docs/performance.md.
bench: setup
	$(CARGO) bench -p swpipe --bench pipeline
	@testbed/setup.sh openvswitch
	$(CARGO) build --release -p swpipe -p testbed
	-$(RELEASE)/testbed bench-check --page docs/performance.md
	$(RELEASE)/testbed bench --json target/bench.json --page docs/performance.md

# The figures in memory against those that were kept (swpipe/benches/baseline.json).
bench-check: setup
	$(CARGO) bench -p swpipe --bench pipeline
	$(CARGO) build --release -p testbed
	$(RELEASE)/testbed bench-check

p4:
	@p4/build.sh

clean:
	$(CARGO) clean
