# Makes the namespaces that it is started in a machine: file systems of its own where programs write, interfaces with
# cables, and programs by name. Says "ready" and stays. BINARIES and REPOSITORY are folders.
set -euo pipefail

# --- file systems
mount -t tmpfs tmpfs /run
mount -t sysfs sysfs /sys
mkdir -p /run/etc /run/bin /run/home/root /run/netns /run/sshd /run/var-lib
cp -a /etc/. /run/etc 2>/dev/null || true
rm -rf /run/etc/sluice
mkdir -p /run/etc/sluice
mount --bind /run/etc /etc
mount --bind /run/var-lib /var/lib
sed -i 's|^root:.*|root:x:0:0:root:/run/home/root:/bin/bash|' /etc/passwd
ln -s "$REPOSITORY/configs" /run/home/root/configs
hostname device

# --- programs
ln -s "$BINARIES/sluiced" "$BINARIES/swpipe" /run/bin
# Users other than root run it as well, who may not see where it was built.
cp "$BINARIES/sluice" /run/bin
# There is no systemd here: the verbs that pages use, for the one unit, by its unit file. The pipeline runs in sluiced.
cat > /run/bin/systemctl <<'END'
#!/bin/bash
set -eu
start() {
    command=$(sed -n 's|^ExecStart=/usr/bin/||p' /run/unit | sed 's| --target [^ ]*||')
    setsid $command >> /run/sluiced.log 2>&1 < /dev/null &
    echo $! > /run/sluiced.pid
    for _ in $(seq 600); do
        sluice -c "show version" > /dev/null 2>&1 && return
        kill -0 "$(cat /run/sluiced.pid)" 2>/dev/null || break
        sleep 0.05
    done
    tail -n 5 /run/sluiced.log >&2
    return 1
}
stop() {
    kill -s "$1" "$(cat /run/sluiced.pid)" 2>/dev/null || true
    while kill -0 "$(cat /run/sluiced.pid)" 2>/dev/null; do sleep 0.02; done
}
case "$*" in
    "start sluiced") start ;;
    "stop sluiced") stop TERM ;;
    "restart sluiced") stop TERM; start ;;
    "reload sluiced") kill -HUP "$(cat /run/sluiced.pid)" ;;
    # Restart=always
    "kill --signal=KILL sluiced") stop KILL; start ;;
    *) echo "systemctl $*: not here" >&2; exit 1 ;;
esac
END
# What differs after a start of the machine: the number of the kernel's run, and that /run is empty.
cat > /run/bin/reboot <<'END'
#!/bin/bash
set -eu
systemctl stop sluiced
cat /proc/sys/kernel/random/uuid > /run/boot_id
mountpoint -q /proc/sys/kernel/random/boot_id || mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
systemctl start sluiced
END
chmod +x /run/bin/systemctl /run/bin/reboot
cp "$REPOSITORY/configs/systemd/sluiced.service" /run/unit

# --- interfaces: links' ends at hosts, pairs' ends joined by a cable inside the appliance
ip link set lo up
for name in lan wan appliances office; do
    ip netns add "$name"
    ip -n "$name" link set lo up
    ip netns exec "$name" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
done
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
cable() { # interface, its other end, where that is
    ip link add "$1" mtu 9216 type veth peer name "$2" mtu 9216 netns "$3"
    ip link set "$1" up
    ip -n "$3" link set "$2" up
}
for link in 1 2; do
    cable "eth$((2 * link - 1))" "link$link" lan
    cable "eth$((2 * link))" "link$link" wan
    ip -n lan address add "10.0.$link.1/24" dev "link$link"
    ip -n wan address add "10.0.$link.2/24" dev "link$link"
done
cable mgmt0 eth0 office
ip address add 192.0.2.1/24 dev mgmt0
ip -n office address add 192.0.2.2/24 dev eth0
for pair in 1 2 3; do
    ip -n appliances link add "pair$pair" mtu 9216 type bridge stp_state 0
    for side in 1 2; do
        cable "eth$((2 * pair + 2 + side))" "c$pair$side" appliances
        ip -n appliances link set "c$pair$side" master "pair$pair"
        # Keep-alives of both directions have one source address.
        ip -n appliances link set "c$pair$side" type bridge_slave learning off
    done
    ip -n appliances link set "pair$pair" up
done

export PATH=/run/bin:$PATH
systemctl start sluiced
# Something to count.
for link in 1 2; do
    ip netns exec lan ping -q -i 0.2 "10.0.$link.2" > /dev/null 2>&1 &
done
echo ready
# As the first process it takes leave of those whose parents are gone.
while :; do
    sleep infinity &
    wait $! || true
done
