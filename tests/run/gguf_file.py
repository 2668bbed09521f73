"""GGUF files as tests read them: without quern, and without any package."""
import hashlib
import struct
import sys

# Of a type of tensors: elements and bytes of a block.
SIZES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
         11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2),
         34: (256, 54), 35: (256, 66)}
FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class Gguf:
    """Metadata (type and value) and tensors (type, extents, bytes) of a file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0
        if self.data[:4] != b"GGUF":
            sys.exit(f"{path} is no GGUF file")
        self.at = 4
        self.version, tensors, keys = self.number("<I"), self.number("<Q"), self.number("<Q")
        self.metadata = {}
        for _ in range(keys):
            key = self.text()
            kind = self.number("<I")
            self.metadata[key] = (kind, self.value(kind))
        self.head = self.data[16:self.at]  # the count of keys, and these
        rows = []
        for _ in range(tensors):
            name, rank = self.text(), self.number("<I")
            dims = [self.number("<Q") for _ in range(rank)]
            rows.append((name, dims, self.number("<I"), self.number("<Q")))
        start = (self.at + 31) // 32 * 32
        self.tensors = {}
        for name, dims, kind, offset in rows:
            elements, size = SIZES[kind]
            count = size
            for dim in dims:
                count *= dim
            self.tensors[name] = (kind, dims, self.data[start + offset:start + offset + count // elements])

    def number(self, form):
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.number("<Q")
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            each, count = self.number("<I"), self.number("<Q")
            return each, [self.value(each) for _ in range(count)]
        return self.number(FORMATS[kind])


def digest(file):
    """The hash of all tensors, and the numbers of their types, in the order of names."""
    whole = hashlib.sha256()
    for name in sorted(file.tensors):
        kind, dims, data = file.tensors[name]
        whole.update(repr((name, kind, dims)).encode() + data)
    return whole.hexdigest() + " " + ",".join(str(file.tensors[name][0]) for name in sorted(file.tensors))
