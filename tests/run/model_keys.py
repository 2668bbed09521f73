"""Models with more in their metadata, for tests: chat models of models that have no template."""
import os
import struct


def _text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    return struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<Ii", 5, value)


def with_keys(model_path, folder, name, keys):
    """A copy of the GGUF model with these keys in front of its own: texts, f32 and i32."""
    with open(model_path, "rb") as f:
        model = f.read()
    tensors, count = struct.unpack_from("<QQ", model, 8)
    more = b"".join(_text(key) + _value(value) for key, value in keys.items())
    # One whose length leaves the tensors as aligned as they are.
    empty = _text("filler") + _value("")
    more += _text("filler") + _value("-" * (-len(more + empty) % 32))
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(model[:8] + struct.pack("<QQ", tensors, count + len(keys) + 1) + more + model[24:])
    return path


def with_template(model_path, folder, name, template):
    return with_keys(model_path, folder, name, {"tokenizer.chat_template": template})
