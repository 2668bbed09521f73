"""Records what ggml makes of blocks whose codes are looked up in a grid: tests/golden/grids.txt.

A line is the name of a format, the bytes of a block, the hash of its 256 values (FNV-1a of their bytes) and its dot
product with the q8_K block whose quants are (37 j + 11 n) % 255 - 127, n the number of the line among those of its
format, and whose scale is 1/16. The blocks of a format name every entry of its grid; their other bits are random.

Needs numpy and the binaries of npm's node-llama-cpp (record_architectures.py says how to get them):

  python3 record_grids.py LIBS
"""

import ctypes
import os
import struct
import sys

import numpy

SEED = 7
# Name, bytes of a block, entries, and how many of these a block names.
FORMATS = (("iq2_xxs", 66, 256, 32), ("iq2_xs", 74, 512, 32), ("iq2_s", 82, 1024, 32), ("iq3_xxs", 98, 256, 64),
           ("iq3_s", 110, 512, 64), ("iq1_s", 50, 2048, 32), ("iq1_m", 56, 2048, 32))


def put(block, name, slot, entry):
    """Makes eight elements (four of iq3), the slot-th, name an entry."""
    low, high = entry & 255, entry >> 8
    if name == "iq2_xxs":
        block[2 + slot // 4 * 8 + slot % 4] = low
    elif name == "iq2_xs":
        block[2 + 2 * slot], block[3 + 2 * slot] = low, block[3 + 2 * slot] & 0xFE | high
    elif name == "iq2_s":
        block[2 + slot] = low
        block[66 + slot // 4] = block[66 + slot // 4] & ~(3 << slot % 4 * 2) | high << slot % 4 * 2
    elif name == "iq3_xxs":
        block[2 + slot] = low
    elif name == "iq3_s":
        block[2 + slot] = low
        block[66 + slot // 8] = block[66 + slot // 8] & ~(1 << slot % 8) | high << slot % 8
    elif name == "iq1_s":
        block[2 + slot] = low
        at = 34 + slot // 4 * 2
        word = block[at] | block[at + 1] << 8
        word = word & ~(7 << slot % 4 * 3) | high << slot % 4 * 3
        block[at], block[at + 1] = word & 255, word >> 8
    else:
        block[slot] = low
        block[32 + slot // 2] = block[32 + slot // 2] & ~(7 << slot % 2 * 4) | high << slot % 2 * 4


def main():
    base = ctypes.CDLL(os.path.join(sys.argv[1], "libggml-base.so"))
    cpu = ctypes.CDLL(os.path.join(sys.argv[1], "libggml-cpu-haswell.so"))
    cpu.ggml_cpu_init()  # its table of halves
    random = numpy.random.default_rng(SEED)
    pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "grids.txt"), "w", encoding="ascii") as out:
        for name, size, entries, slots in FORMATS:
            for n in range(entries // slots):
                block = [int(byte) for byte in random.integers(0, 256, size)]
                for slot in range(slots):
                    put(block, name, slot, n * slots + slot)
                d = struct.pack("<e", random.uniform(-4, 4) if n else 2.0**-24)
                if name == "iq1_m":
                    for part in range(4):
                        at = 49 + 2 * part
                        block[at] = block[at] & 15 | (d[part // 2] >> part % 2 * 4 & 15) << 4
                else:
                    block[:2] = d
                packed, values = numpy.array(block, numpy.uint8), numpy.zeros(256, numpy.float32)
                getattr(base, "dequantize_row_" + name)(pointer(packed), pointer(values), ctypes.c_int64(256))
                assert numpy.isfinite(values).all()
                quants = ((37 * numpy.arange(256) + 11 * n) % 255 - 127).astype(numpy.int8)
                sums = quants.astype(numpy.int16).reshape(16, 16).sum(axis=1, dtype=numpy.int16)
                x = struct.pack("<f", 1 / 16) + quants.tobytes() + sums.tobytes()
                x, dot = numpy.frombuffer(x, numpy.uint8).copy(), numpy.zeros(1, numpy.float32)
                zero = ctypes.c_size_t(0)
                getattr(cpu, f"ggml_vec_dot_{name}_q8_K")(256, pointer(dot), zero, pointer(packed), zero, pointer(x),
                                                          zero, 1)
                hashed = 0xCBF29CE484222325
                for byte in values.tobytes():
                    hashed = (hashed ^ byte) * 0x100000001B3 & (1 << 64) - 1
                out.write(f"{name} {packed.tobytes().hex()} {hashed:016x} {float(dot[0])!r}\n")


if __name__ == "__main__":
    main()
