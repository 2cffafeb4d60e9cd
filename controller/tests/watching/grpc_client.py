"""The status service by grpcio, which learns the protocol from server reflection alone."""

import sys
import time

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICE = "sluice.status.v1.StatusService"


class Client:
    def __init__(self, channel):
        self.channel = channel
        database = ProtoReflectionDescriptorDatabase(channel)
        self.services = database.get_services()
        self.pool = DescriptorPool(database)
        self.methods = {method.name: method for method in self.pool.FindServiceByName(SERVICE).methods}

    def call(self, name, timeout=20, **fields):
        method = self.methods[name]
        request = GetMessageClass(method.input_type)(**fields)
        make = self.channel.unary_stream if method.server_streaming else self.channel.unary_unary
        call = make(
            f"/{SERVICE}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return call(request, timeout=timeout)

    def code(self, name, **fields):
        try:
            self.call(name, **fields)
        except grpc.RpcError as error:
            return error.code().name, error.details()
        return "OK", ""


def enum(client, name, value):
    return client.pool.FindEnumTypeByName(f"sluice.status.v1.{name}").values_by_number[value].name


def get(client):
    assert SERVICE in client.services, client.services
    assert "grpc.reflection.v1alpha.ServerReflection" in client.services, client.services
    # Its successor has the same messages.
    successor = client.channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    answers = successor(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=20)
    services = [service.name for service in next(answers).list_services_response.service]
    assert SERVICE in services, services
    version = client.call("GetVersion")
    assert version.version and version.target == "lab" and len(version.config_hash) == 16, version
    assert abs(version.start_time.seconds + version.uptime.seconds - time.time()) < 60, version
    units = client.call("GetUnits")
    assert [unit.name for unit in units.units] == ["main"], units
    assert enum(client, "UnitState", units.units[0].state) == "UNIT_STATE_UP", units
    assert units.data_plane.state == "primary" and units.data_plane.HasField("counters_time"), units
    assert not client.call("GetUnits", name_prefix="mainly").units
    pairs = client.call("GetPairs").pairs
    assert [(pair.unit, pair.pair) for pair in pairs] == [("main", f"p{n}") for n in range(len(pairs))], pairs
    assert [pair.pair for pair in client.call("GetPairs", name_prefix="main/p1").pairs] == ["p1"]
    for pair in pairs:
        assert enum(client, "PairState", pair.state) == "PAIR_STATE_UP", pair
        assert pair.lan_to_wan.keep_alives.good >= 3 and pair.lan_to_wan.time_on_path.samples >= 3, pair
        path = pair.wan_to_lan.time_on_path
        assert path.minimum.nanos <= path.median.nanos <= path.maximum.nanos, pair
    found = client.call("Lookup", source="10.0.0.1", destination="192.0.2.1", source_port=1, destination_port=80)
    assert (found.flow, found.verdict, found.unit) == ("rest", "to-ecofilter", "main"), found
    assert found.pair in [pair.pair for pair in pairs] and found.HasField("bucket"), found
    code = client.code("Lookup", source="10.0.0.1", destination="nowhere")
    assert code[0] == "INVALID_ARGUMENT" and "nowhere" in code[1], code
    code = client.code("Lookup", source="10.0.0.1", destination="10.0.0.2", protocol=300)
    assert code == ("INVALID_ARGUMENT", "protocol 300 must be 0..255"), code
    code = client.code("GetPairs", name_prefix="x" * 100_000)
    assert code[0] == "OUT_OF_RANGE" and "65536" in code[1], code


def watch(client, transitions):
    """Every transition in order."""
    stream = client.call("Watch", timeout=120, name_prefix="main/p0")
    first = next(stream)
    assert first.WhichOneof("kind") == "present", first
    assert [pair.pair for pair in first.present.pairs] == ["p0"] and not first.present.units, first
    print("watching", flush=True)
    state, last = first.present.pairs[0].state, first.present.event_id
    for _ in range(transitions):
        message = next(stream)
        assert message.WhichOneof("kind") == "transition", message
        transition = message.transition
        assert transition.event_id > last, transition
        assert (transition.pair.unit, transition.pair.pair) == ("main", "p0"), transition
        assert transition.pair.before == state, (transition, state)
        state, last = transition.pair.after, transition.event_id
    stream.cancel()


def slow(client):
    """Reads nothing until it is told to go on, and then until it knows of the event that it is told."""
    stream = client.call("Watch", timeout=120, refresh={"seconds": 1})
    assert next(stream).WhichOneof("kind") == "present"
    print("watching", flush=True)
    newest = int(sys.stdin.readline().split()[-1])
    transitions, missed, last, told = 0, 0, 0, False
    while last < newest:
        message = next(stream)
        kind = message.WhichOneof("kind")
        assert not told or kind == "present", "what it missed is told, and then how it is: " + kind
        told = kind == "missed"
        if kind == "transition":
            assert message.transition.event_id > last, message
            last = message.transition.event_id
            transitions += 1
        elif kind == "missed":
            missed += message.missed.events
        else:
            assert message.present.event_id >= last, message
            last = message.present.event_id
    print("missed", missed, transitions, flush=True)


def ended(client):
    """Watches until it may not any more."""
    stream = client.call("Watch", timeout=60)
    assert next(stream).WhichOneof("kind") == "present"
    print("watching", flush=True)
    try:
        for message in stream:
            assert message.WhichOneof("kind") == "transition", message
    except grpc.RpcError as error:
        print(error.code().name, error.details(), flush=True)


def channel(arguments):
    options = [("grpc.max_receive_message_length", 1 << 20)]
    target = arguments.pop(0)
    if target.startswith("unix:"):
        # The name of a socket is no authority that HTTP/2 allows (RFC 9113, 8.3.1), but grpcio sends it as one.
        return grpc.insecure_channel(target, [*options, ("grpc.default_authority", "localhost")])
    authority, certificate, key = arguments.pop(0), arguments.pop(0), arguments.pop(0)
    read = lambda path: open(path, "rb").read() if path != "-" else None
    credentials = grpc.ssl_channel_credentials(read(authority), read(key), read(certificate))
    return grpc.secure_channel(target, credentials, options)


def main():
    arguments = sys.argv[1:]
    part = arguments.pop(0)
    opened = channel(arguments)
    if part == "code":
        # Straight, without reflection: who is kept out gets nothing at all.
        call = opened.unary_unary(f"/{SERVICE}/GetVersion")
        try:
            call(b"", timeout=5)
            print("OK")
        except grpc.RpcError as error:
            print(error.code().name, error.details())
        return
    client = Client(opened)
    parts = {"get": get, "watch": lambda client: watch(client, int(arguments[0])), "slow": slow, "ended": ended}
    parts[part](client)
    print("ok", flush=True)


main()
