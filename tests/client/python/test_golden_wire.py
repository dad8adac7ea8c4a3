"""Messages of v1 are read for ever: bytes that an earlier version wrote mean today what they meant then.

tests/golden/wire.json has each message with every field set: its bytes, and what they say. With KILN_UPDATE_GOLDEN=1 fields and
messages that are new are added; what stands there is never changed, since others have sent it.
"""

import importlib
import json
import os
import pathlib
import pkgutil

import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import FieldDescriptor

from kiln import v1

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden/wire.json"
DEPTH = 3


def messages():
    """Every message of the package, nested ones too, but for the entries of maps."""
    modules = [importlib.import_module(f"kiln.v1.{module.name}") for module in pkgutil.iter_modules(v1.__path__)]
    files = {module.DESCRIPTOR.name: module.DESCRIPTOR for module in modules}
    waiting = [message for file in files.values() for message in file.message_types_by_name.values()]
    while waiting:
        message = waiting.pop()
        waiting.extend(message.nested_types)
        if not message.GetOptions().map_entry:
            yield message


def a_value(field, salt, depth):
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_MESSAGE:
        return filled(field.message_type, depth - 1)
    if kind == FieldDescriptor.CPPTYPE_STRING:
        text = f"{field.name} {salt}"
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return True
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return field.enum_type.values[-1].number
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return field.number + 0.5
    return field.number + 100


def set_field(message, field, depth):
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        if value.message_type is None:
            getattr(message, field.name)[f"{field.name} key"] = a_value(value, 1, depth)
    elif field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED:
        target = getattr(message, field.name)
        for salt in (1, 2):
            value = a_value(field, salt, depth)
            target.add().CopyFrom(value) if field.message_type is not None else target.append(value)
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(a_value(field, 1, depth))
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, a_value(field, 1, depth))


def filled(descriptor, depth, chosen=None):
    """With every field set. Of each oneof one: `chosen`, else its first."""
    message = message_factory.GetMessageClass(descriptor)()
    if depth == 0:
        return message
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is None or field is chosen or (field is oneof.fields[0] and chosen not in oneof.fields):
            set_field(message, field, depth)
    return message


def examples():
    """Name to message: one a message, and one for each further choice of a oneof."""
    for descriptor in messages():
        yield descriptor.full_name, filled(descriptor, DEPTH)
        for oneof in descriptor.oneofs:
            for field in oneof.fields[1:]:
                yield f"{descriptor.full_name}.{field.name}", filled(descriptor, DEPTH, field)


def classes():
    return {descriptor.full_name: message_factory.GetMessageClass(descriptor) for descriptor in messages()}


def class_of(name):
    known = classes()
    return known.get(name) or known[name.rsplit(".", 1)[0]]


def meaning(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def golden():
    return json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}


def covers(old, new):
    """Whether everything that `old` says `new` says, too."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and covers(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(covers, old, new))
    return old == new


@pytest.fixture(scope="module", autouse=True)
def new_examples():
    if os.environ.get("KILN_UPDATE_GOLDEN") != "1":
        return
    kept = golden()
    for name, message in examples():
        says = meaning(message)
        newest = max((key for key in kept if key.split("@")[0] == name), key=lambda key: (len(key), key), default=None)
        if newest is None or not covers(says, kept[newest]["says"]):
            version = sum(key.split("@")[0] == name for key in kept)
            key = name if version == 0 else f"{name}@{version}"
            kept[key] = {"bytes": message.SerializeToString(deterministic=True).hex(), "says": says}
    lines = [f"{json.dumps(key)}: {json.dumps(kept[key], sort_keys=True)}" for key in sorted(kept)]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def test_bytes_of_earlier_versions_mean_what_they_meant():
    assert golden(), "KILN_UPDATE_GOLDEN=1 makes it"
    for key, example in golden().items():
        wire = bytes.fromhex(example["bytes"])
        message = class_of(key.split("@")[0])()
        message.ParseFromString(wire)
        assert covers(example["says"], meaning(message)), key
        assert len(message.SerializeToString(deterministic=True)) == len(wire), f"{key}: something is not read"
        message.DiscardUnknownFields()
        assert len(message.SerializeToString(deterministic=True)) == len(wire), f"{key}: a field is not known any more"


def test_every_message_and_field_has_an_example():
    kept = golden()
    for name, message in examples():
        assert any(key.split("@")[0] == name and covers(meaning(message), kept[key]["says"]) for key in kept), (
            f"{name} has a field without an example: run this test with KILN_UPDATE_GOLDEN=1")


def test_a_field_whose_number_or_type_changed_is_noticed():
    """The test above is one that can fail."""
    wire = bytes.fromhex(golden()["kiln.v1.RunRequest"]["bytes"])
    other = class_of("kiln.v1.LowerRequest")()
    try:
        other.ParseFromString(wire)
        assert not covers(golden()["kiln.v1.RunRequest"]["says"], meaning(other))
    except Exception as error:  # of protobuf, which has several
        assert "pars" in str(error).lower()
