#!/usr/bin/env bash
# Makes sure that what builds, tests and the test bed need is there: installs it as root, else names it.
# `setup.sh` for the system's packages, `setup.sh cargo-deny` for the licence check, `setup.sh openvswitch` for the bench.
set -euo pipefail

if ! command -v cargo >/dev/null; then
    echo "setup: cargo is missing; install Rust (rustup, stable) and run this again" >&2
    exit 1
fi

if [ "${1:-}" = cargo-deny ]; then
    command -v cargo-deny >/dev/null && exit 0
    echo "setup: building cargo-deny (once, some minutes)"
    exec cargo install --locked --quiet cargo-deny
fi

# Open vSwitch to compare with: unpacked beside the build, so that no machine gets a service from here. What it links
# to and the system lacks is unpacked with it. Without it the bench leaves it out.
if [ "${1:-}" = openvswitch ]; then
    ovs="$(cd "$(dirname "$0")/.." && pwd)/target/openvswitch"
    [ -e /usr/lib/openvswitch-switch/ovs-vswitchd ] || [ -e "$ovs/usr/lib/openvswitch-switch/ovs-vswitchd" ] && exit 0
    mkdir -p "$ovs"
    echo "setup: unpacking Open vSwitch into $ovs"
    [ "$(id -u)" -ne 0 ] || apt-get update -qq || true
    packages="openvswitch-common openvswitch-switch"
    for library in $(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances $packages 2>/dev/null | grep '^lib' | sort -u); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$library" 2>/dev/null)" = installed ] || packages+=" $library"
    done
    if (cd "$ovs" && apt-get download -qq $packages 2>/dev/null); then
        for package in "$ovs"/*.deb; do dpkg-deb --extract "$package" "$ovs" && rm "$package"; done
    else
        echo "setup: Open vSwitch cannot be had; the bench will leave it out" >&2
    fi
    exit 0
fi

# Command and the Debian package that has it.
wanted="cc:gcc make:make ip:iproute2 ethtool:ethtool nft:nftables iperf3:iperf3 curl:curl ping:iputils-ping
python3:python3 setsid:util-linux cmake:cmake strace:strace"
missing=()
for pair in $wanted; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
# Debian's python3 has venv in a package of its own.
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
# libyang is built from its sources with it.
[ -e /usr/include/pcre2.h ] || missing+=(libpcre2-dev)

# OpenSSH's server for one test: unpacked beside the build, not installed, so that no machine gets a server from here.
unpack_sshd() {
    [ -e /usr/sbin/sshd ] || [ -e "$sshd/usr/sbin/sshd" ] && return
    mkdir -p "$sshd"
    download() { (cd "$sshd" && apt-get download -qq openssh-server libwrap0 2>/dev/null); }
    if download || { [ "$(id -u)" -eq 0 ] && apt-get update -qq && download; }; then
        for package in "$sshd"/*.deb; do dpkg-deb --extract "$package" "$sshd"; done
    else
        echo "setup: openssh-server cannot be had; the test of ssh logins will be skipped" >&2
    fi
}
sshd="$(cd "$(dirname "$0")/.." && pwd)/target/openssh"

if [ ${#missing[@]} -eq 0 ]; then
    unpack_sshd
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "setup: these Debian packages are missing: ${missing[*]} (apt-get install ${missing[*]})" >&2
    exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# iperf3's package would ask whether to run a server.
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
unpack_sshd
