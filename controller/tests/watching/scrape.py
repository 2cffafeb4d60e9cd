"""Scrapes /metrics in both formats and reads it with prometheus_client's own parsers."""

import json
import ssl
import sys
import urllib.request

from prometheus_client import parser as text
from prometheus_client.openmetrics import parser as openmetrics

url, authority, families = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
context = ssl.create_default_context(cafile=authority)


def scrape(accept):
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples(families):
    found = {}
    for family in families:
        for sample in family.samples:
            # Numbers are the same however they are written.
            labels = {name: float(value) if name == "le" else value for name, value in sample.labels.items()}
            key = (sample.name, tuple(sorted(labels.items())))
            assert key not in found, f"twice: {key}"
            found[key] = sample.value
    return found


kind, page = scrape("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1")
assert kind.startswith("application/openmetrics-text; version=1.0.0"), kind
parsed = list(openmetrics.text_string_to_metric_families(page))
new = samples(parsed)
kind, page = scrape("*/*")
assert kind.startswith("text/plain; version=0.0.4"), kind
assert "# EOF" not in page and "# UNIT" not in page
old = samples(text.text_string_to_metric_families(page))

# Both have the same series; OpenMetrics wants the unit in the name, and has it told.
assert {key for key in old} == {key for key in new}, {key for key in old} ^ {key for key in new}
units = {family.name: family.unit for family in parsed if family.unit}
assert units["sluice_time_on_path_seconds"] == "seconds" and units["sluice_port_mtu_bytes"] == "bytes", units
types = {family.name: family.type for family in parsed}
assert types["sluice_time_on_path_seconds"] == "histogram" and types["sluice_build"] == "info", types
assert types["sluice_pair_flaps"] == "counter", types
assert all(family.documentation for family in parsed)

# Nothing is served that is not known, and its labels are those that are known.
known = {name: set(labels) for name, labels in families}
for (name, labels), value in new.items():
    names = {label for label, _ in labels} - {"le"}
    assert name in known, name
    # An empty label is none at all.
    assert names <= known[name], (name, names)
    assert value == value, (name, labels)

def one(name, **labels):
    return new[(name, tuple(sorted(labels.items())))]

assert one("sluice_data_plane_up") == 1
states = [one("sluice_pair_state", unit="main", pair="p0", state=state)
          for state in ["init", "up", "down", "admin-down", "draining", "held"]]
assert states == [0, 1, 0, 0, 0, 0], states
assert one("sluice_unit_state", unit="main", state="up") == 1
assert one("sluice_port_received_bytes_total", port="l0") == 700
good = one("sluice_keepalives_total", unit="main", pair="p0", direction="lan-to-wan", probe="pair", verdict="good")
assert good >= 3, good
path = {"unit": "main", "pair": "p0", "direction": "wan-to-lan"}
count = one("sluice_time_on_path_seconds_count", **path)
assert count >= 3 and one("sluice_time_on_path_seconds_bucket", le=float("inf"), **path) == count
assert 0 < one("sluice_time_on_path_seconds_sum", **path) < count
described = [dict(labels) for (name, labels) in new if name == "sluice_link_info"]
assert [labels["description"] for labels in described] == ['up "north"\\\nof {all}, \u00fcber'], described
print("ok", len(new))
