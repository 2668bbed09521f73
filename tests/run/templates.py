"""Chat models of models that have no template: for tests."""
import os
import struct


def with_template(model_path, folder, name, template):
    """A copy of the model with one more key, of a length that leaves the tensors aligned."""
    with open(model_path, "rb") as f:
        model = f.read()
    tensors, keys = struct.unpack_from("<QQ", model, 8)
    text = template.encode()
    head = struct.pack("<Q", 23) + b"tokenizer.chat_template" + struct.pack("<I", 8)
    text += b" " * (-(len(head) + 8 + len(text)) % 32) if not text.endswith(b"}") else \
        b"{#" + b" " * (-(len(head) + 12 + len(text)) % 32) + b"#}"
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(model[:8] + struct.pack("<QQ", tensors, keys + 1) + head + struct.pack("<Q", len(text)) + text)
        f.write(model[24:])
    return path
