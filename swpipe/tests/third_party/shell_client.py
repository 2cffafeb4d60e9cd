"""p4runtime-shell against the server at argv[1], which has a pipeline and sends keep-alives."""

import sys
import time

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeClient
from p4runtime_sh.p4runtime import P4RuntimeWriteException

ADDRESS = sys.argv[1]
DEADLINE = time.monotonic() + 30


def rule(priority):
    entry = sh.TableEntry("rules_v4")(action="rule_to_unit")
    entry.match["ip_version"] = "4&&&0xf"
    entry.match["ip_proto"] = "6&&&0xff"
    entry.action["unit"] = "3"
    entry.priority = priority
    return entry


sh.setup(device_id=1, grpc_addr=ADDRESS, election_id=(1, 0), verbose=False)
try:
    assert sh.client.api_version().startswith("1."), sh.client.api_version()
    tables = [table.name for table in sh.P4Objects(sh.P4Type.table)]
    assert len(tables) == 10 and "buckets" in tables, tables
    counters = {counter.name: counter.preamble.id for counter in sh.P4Objects(sh.P4Type.counter)}
    assert "verdicts" in counters, counters
    print("primary, P4Info read:", ", ".join(sorted(tables)))

    rule(10).insert()
    found = [entry for entry in sh.TableEntry("rules_v4").read() if entry.priority == 10]
    assert len(found) == 1, found
    assert "rule_to_unit" in str(found[0]), found[0]
    print("rule written and read")

    try:
        rule(10).insert()
        raise AssertionError("a rule was inserted twice")
    except P4RuntimeWriteException as error:
        assert "ALREADY_EXISTS" in str(error), error

    while True:
        counter = sh.DirectCounterEntry("rules_v4_counter")
        counter.table_entry = rule(10)
        values = list(counter.read())
        assert len(values) == 1, values
        if values[0].packet_count > 0:
            assert values[0].byte_count == 60 * values[0].packet_count, values[0]
            break
        assert time.monotonic() < DEADLINE, "the rule counts nothing"
        time.sleep(0.05)
    cells = list(sh.CounterEntry("verdicts").read())
    assert len(cells) == 32 and sum(cell.packet_count for cell in cells) > 0, cells
    print("rule counts:", values[0].packet_count)

    session = sh.CloneSessionEntry(201)
    session.add(200, 1)
    session.insert()
    found = [(entry.session_id, entry.replicas) for entry in sh.CloneSessionEntry(201).read()]
    assert len(found) == 1 and found[0][0] == 201 and len(found[0][1]) == 1, found
    session.delete()
    print("clone session written, read and deleted")

    packets = list(sh.PacketIn().sniff(timeout=1))
    assert packets, "no packet-in"
    packet = packets[0].packet
    assert packet.payload[12:14] == b"\x88\xb5", packet
    metadata = {field.metadata_id: int.from_bytes(field.value, "big") for field in packet.metadata}
    assert metadata[1] == 6 and metadata[2] > 0, metadata
    print("keep-alive received by port", metadata[1])

    backup = P4RuntimeClient(1, ADDRESS, (0, 7))
    try:
        primary, sh.client = sh.client, backup
        assert len([entry for entry in sh.TableEntry("rules_v4").read() if entry.priority == 10]) == 1
        try:
            rule(11).insert()
            raise AssertionError("a backup has written")
        except P4RuntimeWriteException as error:
            raise AssertionError(f"refused update by update, not as a whole: {error}")
        except Exception as error:
            assert "PERMISSION_DENIED" in str(error), error
        finally:
            sh.client = primary
    finally:
        backup.tear_down()
    print("the backup reads and may not write")

    rule(10).delete()
    assert not [entry for entry in sh.TableEntry("rules_v4").read() if entry.priority == 10]
finally:
    sh.teardown()
print("done")
