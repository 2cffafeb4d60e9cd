"""The life of a configuration, as ncclient sees it: argv is port, key file, and what to do."""

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


if __name__ == "__main__":
    globals()[sys.argv[3]]()
    print("ok")
