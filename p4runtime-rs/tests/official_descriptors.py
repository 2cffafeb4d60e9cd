"""Writes the descriptors that PyPI's `p4runtime` publishes to standard output, as one FileDescriptorSet."""

import os
import sys

# The published modules predate the C implementation's demands; the Python one reads them.
os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"

from google.protobuf import descriptor_pb2
from p4.config.v1 import p4info_pb2, p4types_pb2
from p4.v1 import p4data_pb2, p4runtime_pb2
from google.rpc import status_pb2

files = descriptor_pb2.FileDescriptorSet()
for module in (status_pb2, p4types_pb2, p4info_pb2, p4data_pb2, p4runtime_pb2):
    module.DESCRIPTOR.CopyToProto(files.file.add())
sys.stdout.buffer.write(files.SerializeToString())
