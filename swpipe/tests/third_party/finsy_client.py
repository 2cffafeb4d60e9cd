"""finsy against the server at argv[1], which has a pipeline and sends keep-alives."""

import asyncio
import sys

import finsy as fy

ADDRESS = sys.argv[1]


def rule(priority):
    return fy.P4TableEntry(
        "rules_v4",
        match=fy.Match(ip_version=(4, 0xF), ip_proto=(6, 0xFF)),
        action=fy.Action("rule_to_unit", unit=3),
        priority=priority,
        metadata=b"web",
    )


async def primary(switch):
    assert switch.is_primary
    tables = [table.alias for table in switch.p4info.tables]
    assert len(tables) == 10 and "buckets" in tables, tables
    print("primary, P4Info read:", ", ".join(sorted(tables)))

    # A packet-in first: what the queue holds later does not matter.
    async for packet in switch.read_packets(eth_types={0x88B5}):
        assert packet["ingress_port"] == 6 and packet["receive_time"] > 0, packet
        print("keep-alive received by port", packet["ingress_port"])
        break

    await switch.insert([rule(20)])
    found = [entry async for entry in switch.read(fy.P4TableEntry("rules_v4")) if entry.priority == 20]
    assert len(found) == 1 and found[0].metadata == b"web", found
    assert found[0].match["ip_proto"] == (6, 0xFF), found
    print("rule written and read")

    try:
        await switch.insert([rule(20)])
        raise AssertionError("a rule was inserted twice")
    except fy.P4ClientError as error:
        assert error.details[0].canonical_code == fy.GRPCStatusCode.ALREADY_EXISTS, error

    for _ in range(600):
        counters = [
            counter
            async for counter in switch.read(
                fy.P4DirectCounterEntry("rules_v4_counter", table_entry=rule(20))
            )
        ]
        assert len(counters) == 1, counters
        if counters[0].packet_count > 0:
            break
        await asyncio.sleep(0.05)
    else:
        raise AssertionError("the rule counts nothing")
    assert counters[0].byte_count == 60 * counters[0].packet_count, counters
    cells = [cell async for cell in switch.read(fy.P4CounterEntry("verdicts"))]
    assert len(cells) == 32 and sum(cell.packet_count for cell in cells) > 0, cells
    print("rule counts:", counters[0].packet_count)


async def backup(switch):
    assert not switch.is_primary
    found = [entry async for entry in switch.read(fy.P4TableEntry("rules_v4")) if entry.priority == 20]
    assert len(found) == 1, found
    try:
        await switch.insert([rule(21)])
        raise AssertionError("a backup has written")
    except fy.P4ClientError as error:
        assert error.code == fy.GRPCStatusCode.PERMISSION_DENIED, error
    print("the backup reads and may not write")


async def main():
    options = fy.SwitchOptions(initial_election_id=1 << 64)
    async with fy.Switch("first", ADDRESS, options) as first:
        await primary(first)
        async with fy.Switch("second", ADDRESS, options(initial_election_id=7)) as second:
            await backup(second)
        await first.delete([rule(20)])
        left = [entry async for entry in first.read(fy.P4TableEntry("rules_v4")) if entry.priority == 20]
        assert not left, left


asyncio.run(asyncio.wait_for(main(), 60))
print("done")
