"""The life of a configuration, as ncclient sees it: argv is port, key file, and what to do."""

import logging
import sys
import threading
import time

from ncclient import manager
from ncclient.operations import RPCError
from ncclient.xml_ import to_ele

NS = "urn:test:plant"
NC = "urn:ietf:params:xml:ns:netconf:base:1.0"
PORT, KEY = int(sys.argv[1]), sys.argv[2]


def connect(user="admin", **how):
    how = how or {"key_filename": KEY}
    return manager.connect(
        host="127.0.0.1", port=PORT, username=user, hostkey_verify=False, allow_agent=False,
        look_for_keys=False, timeout=120, device_params={"name": "default"}, **how)


def config(inner):
    return f'<nc:config xmlns:nc="{NC}" xmlns="{NS}">{inner}</nc:config>'


def port(name, number, extra=""):
    return f"<port><name>{name}</name><number>{number}</number>{extra}</port>"


def refused(tag, what, *args, **more):
    try:
        what(*args, **more)
    except RPCError as error:
        assert error.tag == tag, (error.tag, tag, error.message)
        return error
    raise AssertionError(f"{what} {args} was not refused")


def thin():
    with connect() as m:
        assert ":candidate" in m.server_capabilities and ":validate" in m.server_capabilities
        assert m.get_config("running").data_xml.count("<port") == 0
        m.edit_config(target="candidate", config=config(port("p1", 1)))
        assert "p1" in m.get_config("candidate").data_xml
        assert "p1" not in m.get_config("running").data_xml
        m.commit()
        assert "p1" in m.get_config("running").data_xml


def names(m, source):
    return [e.text for e in m.get_config(source).data.iter(f"{{{NS}}}name")]


def life():
    """One client through everything that a configuration goes through."""
    with connect() as m, connect() as other:
        # Locks.
        m.lock("candidate")
        error = refused("lock-denied", other.lock, "candidate")
        assert m.session_id in error.info, error.info
        refused("in-use", other.edit_config, target="candidate", config=config(port("x", 1)))
        m.edit_config(target="candidate", config=config(port("p1", 1) + port("p2", 2)), error_option="rollback-on-error")
        m.validate("candidate")
        m.commit()
        m.unlock("candidate")
        # Prefixed bodies, each operation.
        edit = (f'<nc:config xmlns:nc="{NC}" xmlns:s="{NS}"><s:port nc:operation="%s">'
                "<s:name>p1</s:name><s:lane>2</s:lane></s:port></nc:config>")
        error = refused("data-exists", m.edit_config, target="candidate", config=edit % "create")
        assert "p1" in error.path, error.path
        m.edit_config(target="candidate", config=edit % "replace")
        assert "<number>1" not in m.get_config("candidate").data_xml
        m.edit_config(target="candidate", config=edit % "delete")
        refused("data-missing", m.edit_config, target="candidate", config=edit % "delete")
        assert names(m, "candidate") == ["p2"] and names(m, "running") == ["p1", "p2"]
        m.discard_changes()
        assert names(m, "candidate") == ["p1", "p2"]
        # Errors.
        error = refused("invalid-value", m.edit_config, target="candidate", config=config(port("p1", 99)))
        assert error.severity == "error" and error.type == "application" and "1..65" in error.message, error
        m.edit_config(target="candidate", config=config("<link><name>l</name><lan-port>p9</lan-port></link>"))
        error = refused("data-missing", m.validate, "candidate")
        assert error.app_tag == "instance-required" and "lan-port" in error.path
        refused("data-missing", m.commit)
        m.discard_changes()
        refused("operation-not-supported", m.edit_config, target="running", config=config(port("p1", 1)))
        # Filters.
        subtree = f'<port xmlns="{NS}"><name>p2</name><number/></port>'
        data = m.get_config("running", filter=("subtree", subtree)).data_xml
        assert "p2" in data and "p1" not in data
        state = m.get(filter=("subtree", f'<port xmlns="{NS}"><state/></port>')).data_xml
        assert state.count("<speed>10g</speed>") == 2
        data = m.get_config("running", with_defaults="report-all").data_xml
        assert data.count("<mtu>9000</mtu>") == 2 and "layer-3" in data
        # Saved and deleted.
        m.copy_config(source="running", target="startup")
        assert names(m, "startup") == ["p1", "p2"]
        m.delete_config("startup")
        refused("data-missing", m.get_config, "startup")
        # Confirmed commits.
        m.edit_config(target="candidate", config=config(port("p3", 3)))
        m.commit(confirmed=True, timeout="60")
        assert "p3" in names(m, "running")
        refused("lock-denied", other.lock, "running")
        m.cancel_commit()
        assert "p3" not in names(m, "running")
        m.edit_config(target="candidate", config=config(port("p3", 3)))
        m.commit(confirmed=True, timeout="1")
        deadline = time.monotonic() + 30
        while "p3" in names(other, "running"):
            assert time.monotonic() < deadline
        m.edit_config(target="candidate", config=config(port("p3", 3)))
        m.commit(confirmed=True, timeout="60", persist="token")
        refused("invalid-value", other.commit)
        other.commit(persist_id="token")
        assert "p3" in names(m, "running")
        # The schema, RPCs, what the server says of itself.
        assert m.get_schema("plant").data == "module plant { /* <&> */ }"
        refused("invalid-value", m.get_schema, "nothing")
        reply = m.dispatch(to_ele(f'<reset xmlns="{NS}"><port>p1</port></reset>'))
        assert "p1 0" in reply.xml
        monitoring = '<netconf-state xmlns="urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring"><sessions/></netconf-state>'
        assert m.get(filter=("subtree", monitoring)).data_xml.count("<session-id>") == 2
        # Sessions.
        third = connect()
        third.lock("running")
        m.kill_session(third.session_id)
        m.lock("running")
        deadline = time.monotonic() + 30
        while third.connected:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def subscribed():
    with connect() as m:
        m.create_subscription(stream_name="NETCONF")
        # The server's side sends when it sees the subscription.
        note = m.take_notification(timeout=60)
        assert "<port>p7</port>" in note.notification_xml, note.notification_xml
        m.discard_changes()


def reader():
    with connect("guest", password="guess") as m:
        m.get_config("running")
        refused("access-denied", m.edit_config, target="candidate", config=config(port("p1", 1)))
        refused("access-denied", m.commit)
        refused("access-denied", m.lock, "running")


def many():
    """Twenty at a time, each with ports of its own and one that all want."""
    failures = []

    def one(number):
        try:
            with connect() as m:
                barrier.wait(120)
                for turn in range(5):
                    m.edit_config(target="candidate", config=config(port(f"s{number}-{turn}", number + 1)))
                    m.commit()
                # A lock keeps others from committing.
                barrier.wait(120)
                wanted = f"<port><name>wanted</name><description>{number}</description></port>"
                while True:
                    try:
                        m.lock("running")
                    except RPCError as error:
                        assert error.tag == "lock-denied", error.tag
                        continue
                    m.discard_changes()
                    m.edit_config(target="candidate", config=config(wanted))
                    m.commit()
                    m.unlock("running")
                    return
        except Exception as error:
            failures.append((number, repr(error)))
            barrier.abort()

    barrier = threading.Barrier(20)
    threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    with connect() as m:
        assert len(names(m, "running")) == 20 * 5 + 1


def big():
    flows = "".join(
        f"<flow><name>flow{n}</name><zone>z</zone><priority>{n % 65535 + 1}</priority><tags>all</tags>"
        f"<match><vlan>{n % 4096}</vlan><text>number {n}</text></match></flow>" for n in range(100_000))
    with connect() as m:
        m.edit_config(target="candidate", config=config(f"<balancer>{flows}</balancer>"))
        m.commit()
        reply = m.get_config("running", filter=("subtree", f'<balancer xmlns="{NS}"/>'))
        assert len(reply.xml) > 13_000_000 and reply.xml.count("<flow>") == 100_000


def full():
    """All sessions are in use: the next is told so."""
    said = []
    log = logging.getLogger()
    log.setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    log.addHandler(handler)
    with connect() as _one, connect() as _two:
        try:
            connect()
        except Exception as error:
            # paramiko keeps the reason of a disconnect in its log.
            assert any("all 2 NETCONF sessions are in use" in line for line in said), (repr(error), said)
        else:
            raise AssertionError("a third session was let in")
    with connect() as m:
        m.get_config("running")


def strangers():
    for user, how in [
        ("admin", {"password": "wrong"}), ("nobody", {"password": "secret"}), ("nobody", {"key_filename": KEY}),
    ]:
        try:
            connect(user, **how)
        except Exception as error:
            assert "uth" in repr(error), repr(error)
        else:
            raise AssertionError(f"{user} was let in")
    with connect("admin", password="secret") as m:
        m.get_config("running")


if __name__ == "__main__":
    globals()[sys.argv[3]]()
    print("ok")
