"""Records what llama.cpp makes of importance matrices, and by them:

  rows.txt        blocks of rows by an importance: of each format and case the hash (FNV-1a) of the bytes. The rows are
                  made here and in tests/unit/kir/importance_test.cc by the same rule
  mixtures.txt    the model of synthetic.py in every type by its importance matrices: the hash of all tensors and ggml's
                  numbers of their types, in the order of names
  NAME.gguf       what llama-imatrix makes of a model and of the text beside it, with weights, keys and values in f32
                  and without flash attention, which rounds
  addition.dat    the first of those in the older form

Needs the binaries of npm's node-llama-cpp and, built beside them, two tools of llama.cpp (record_architectures.py says
how to get both and the sources):

  for TOOL in imatrix quantize; do
    c++ -O1 -std=c++17 -Iinclude -Iggml/include -Icommon -Ivendor tools/$TOOL/*.cpp -o LIBS/llama-$TOOL \
        LIBS/libllama*.so LIBS/libggml*.so -Wl,-rpath,LIBS; done
  python3 record.py LIBS MODELS
"""

import ctypes
import hashlib
import os
import struct
import subprocess
import sys
import tempfile

import synthetic

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "../../run"))
import gguf_file  # pylint: disable=wrong-import-position
FORMATS = {"Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q2_K": 10, "Q3_K": 11, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14,
           "IQ4_NL": 20, "IQ4_XS": 23, "Q8_0": 8, "TQ1_0": 34, "TQ2_0": 35, "MXFP4": 39}
COLUMNS = 512
# Of the last three a group has a negative scale, which is where q4_K and q5_K differ.
CASES = (*range(48), 253, 784, 877)
MASK = (1 << 64) - 1


def splitmix(seed):
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        yield (z ^ z >> 31) >> 40  # 24 bits


def rows(case):
    """Weights and importance of a case. All are exact in f32: numbers of 24 bits times powers of two."""
    draw = splitmix(case)
    kind, spread = case % 6, case // 6 % 8
    x, importance = [], []
    for j in range(COLUMNS):
        bits, size, count, scale = next(draw), next(draw), next(draw), next(draw)
        value = (bits - (1 << 23)) / (1 << 23)
        if kind == 1:
            value *= 2.0 ** (size % 12 - 6)
        elif kind == 2:
            value = value if size % 10 == 0 else 0.0
        elif kind == 3:
            value = abs(value)
        elif kind == 4:
            value = -abs(value) - 0.125
        elif kind == 5:
            value = float(bits % 3 - 1) if j < 300 else 0.0
        x.append(value)
        weight = count / (1 << 24)
        if spread == 1:
            weight *= 2.0 ** (scale % 24 - 12)
        elif spread == 2:
            weight = weight if scale % 20 == 0 else 0.0
        elif spread == 3:
            weight = 0.0
        elif spread == 4:
            weight = 1.0
        elif spread == 5:
            weight = weight if j < 32 or j >= 480 else 0.0
        elif spread == 6:
            weight *= 2.0 ** -60
        elif spread == 7:
            weight *= 2.0 ** 60
        importance.append(weight)
    return x, importance


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def record_rows(libs):
    base = ctypes.CDLL(os.path.join(libs, "libggml-base.so"))
    base.ggml_row_size.restype = base.ggml_quantize_chunk.restype = ctypes.c_size_t
    base.ggml_row_size.argtypes = [ctypes.c_int, ctypes.c_int64]
    base.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                         ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    with open(os.path.join(FOLDER, "rows.txt"), "w", encoding="ascii") as out:
        for name, number in FORMATS.items():
            for case in CASES:
                x, importance = ((ctypes.c_float * COLUMNS)(*values) for values in rows(case))
                made = ctypes.create_string_buffer(base.ggml_row_size(number, COLUMNS))
                base.ggml_quantize_chunk(number, x, made, 0, 1, COLUMNS, importance)
                out.write(f"{name} {case} {fnv(made.raw):016x}\n")


def record_mixtures(libs):
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(FOLDER, "mixtures.txt"), "w") as out:
        model, made = os.path.join(folder, "model.gguf"), os.path.join(folder, "made.gguf")
        synthetic.write_model(model)
        for form, write in (("gguf", synthetic.write_importance), ("dat", synthetic.write_importance_dat)):
            importance = os.path.join(folder, "importance." + form)
            write(importance)
            for name in synthetic.TYPES:
                if name == "Q2_K_S" and form == "gguf":
                    continue
                subprocess.run([os.path.join(libs, "llama-quantize"), "--imatrix", importance, model, made, name],
                               check=True, capture_output=True)
                out.write(f"{form} {name} {gguf_file.digest(gguf_file.Gguf(made))}\n")


def in_f32(source, path):
    """The same model with weights in F32: beside those in F16 llama.cpp rounds activations to that."""
    model = gguf_file.Gguf(source)
    rows, body = b"", b""
    for name, (kind, dims, data) in model.tensors.items():
        if kind == 1:
            data = struct.pack(f"<{len(data) // 2}f", *struct.unpack(f"<{len(data) // 2}e", data))
        elif kind != 0:
            sys.exit(f"{source}: {name} is of type {kind}")
        rows += synthetic.text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, len(body))
        body += data + bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQ", 3, len(model.tensors)) + model.head + rows
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + body)


def record_matrices(libs, models, folder):
    runs = (("addition", os.path.join(FOLDER, "../../../models/addition.gguf"), "addition.txt", 48),
            ("stories260K", os.path.join(models, "gguf/stories260K-F32.gguf"), "story.txt", 300),
            ("llama-moe4x2", os.path.join(models, "archs/llama-moe4x2-rand.gguf"), "story.txt", 37))
    model = os.path.join(folder, "model.gguf")
    for name, source, text, context in runs:
        in_f32(source, model)
        for form in ("gguf", "dat") if name == "addition" else ("gguf",):
            subprocess.run([os.path.join(libs, "llama-imatrix"), "-m", model, "-f", text, "-o",
                            f"{name}.{form}", "-c", str(context), "-b", str(context), "-ctk", "f32", "-ctv", "f32",
                            "-fa", "off", "-t", "1", "--output-format", form, "--no-ppl", "--process-output"],
                           check=True, capture_output=True, cwd=FOLDER)


def main():
    libs, models = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    record_rows(libs)
    record_mixtures(libs)
    with tempfile.TemporaryDirectory() as folder:
        record_matrices(libs, models, folder)


if __name__ == "__main__":
    main()
