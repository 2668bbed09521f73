#!/usr/bin/env python3
"""Records ops over tokens, made by loops in numpy: tokens.txt and tokens.bin, which golden_test reads.

  record_tokens.py [FOLDER]   writes into FOLDER, this one when not given

Mamba2 token by token in double, and Attention in double. Needs numpy and what record_sequence.py, which says how the
files are written, imports.
"""

import pathlib
import sys

import numpy as np
from record_ops import type_of, wave
from record_sequence import Sequences


def mamba2(archive):
    def case(batch, length, heads, p, groups, n, seed, with_d=False, carried=False, dtype=np.float32, chunk=0,
             symbol=False):
        leaves = {"x": wave((batch, length, heads, p), seed).astype(dtype),
                  "dt": wave((batch, length, heads), seed + 1, 0.0, 1.5).astype(np.float32),
                  "a": wave((heads,), seed + 2, -2.0, 0.0).astype(np.float32),
                  "b": wave((batch, length, groups, n), seed + 3).astype(dtype),
                  "c": wave((batch, length, groups, n), seed + 4).astype(dtype)}
        if with_d:
            leaves["d"] = wave((heads,), seed + 5).astype(np.float32)
        if carried:
            leaves["h"] = wave((batch, heads, p, n), seed + 6).astype(np.float32)
        x, dt, a, b, c = (np.asarray(v, np.float64) for v in list(leaves.values())[:5])
        h = np.asarray(leaves["h"], np.float64) if carried else np.zeros((batch, heads, p, n))
        y = np.zeros(x.shape)
        for t in range(length):
            for head in range(heads):
                g = head // (heads // groups)
                for s in range(batch):
                    step = dt[s, t, head]
                    h[s, head] = np.exp(step * a[head]) * h[s, head] + step * np.outer(x[s, t, head], b[s, t, g])
                    y[s, t, head] = h[s, head] @ c[s, t, g]
        if with_d:
            y += x * np.asarray(leaves["d"], np.float64)[:, None]
        attributes = {"chunk": chunk} if chunk else {}
        types = None
        if symbol:
            types = {leaf: type_of(v).replace(f"[{batch}, {length},", f"[{batch}, S,") if leaf in "xdtbc"
                     and leaf != "d" else type_of(v) for leaf, v in leaves.items()}
            types["results"] = [f"f32[{batch}, S, {heads}, {p}]", type_of(h.astype(np.float32))]
        for only in (0, 1) if symbol else (None,):
            archive.results("Mamba2", "Mamba2", leaves, [y.astype(dtype), h.astype(np.float32)],
                            1e-5 if dtype == np.float32 else 1e-3, 2e-5 if dtype == np.float32 else 4e-3, types,
                            only=only, **attributes)

    seed = 0
    for batch, length, heads, p, groups, n in ((1, 1, 1, 1, 1, 1), (2, 1, 6, 11, 1, 16), (3, 5, 7, 1, 7, 3),
                                               (2, 11, 4, 16, 2, 17), (1, 7, 2, 67, 1, 33), (0, 3, 2, 5, 1, 2),
                                               (2, 0, 3, 2, 1, 5), (1, 131, 2, 5, 1, 7)):
        for with_d, carried in ((False, False), (True, False), (True, True)):
            for chunk in (0, 4, 64):
                seed += 7
                case(batch, length, heads, p, groups, n, seed, with_d, carried, chunk=chunk)
    for chunk in (0, 8):
        case(2, 7, 6, 5, 3, 16, 900, True, True, np.float16, chunk)
        for length in (1, 8, 19):
            case(2, length, 4, 3, 2, 5, 910 + length, True, True, chunk=chunk, symbol=True)


def attention(archive):
    for turn, (batch, sq, sk, heads, kv, d) in enumerate(((1, 1, 1, 1, 1, 1), (2, 3, 5, 4, 2, 8), (3, 7, 7, 2, 1, 17),
                                                          (1, 2, 33, 6, 6, 5), (2, 5, 5, 3, 3, 16))):
        for mask in ("none", "causal", "sliding", "custom", "bias"):
            q = wave((batch, sq, heads * d), turn + 1, -2.0, 2.0)
            k = wave((batch, sk, kv * d), turn + 11, -2.0, 2.0)
            v = wave((batch, sk, kv * d), turn + 21, -2.0, 2.0)
            leaves, attributes = {"q": q, "k": k, "v": v}, {"heads": heads, "kv_heads": kv, "head_dim": d}
            split = lambda x, h: x.reshape(batch, -1, h, d).transpose(0, 2, 1, 3)
            s = split(q, heads) @ np.repeat(split(k, kv), heads // kv, 1).transpose(0, 1, 3, 2) / np.sqrt(d)
            at, j = np.arange(sq)[:, None] + sk - sq, np.arange(sk)[None]
            seen = np.ones((sq, sk), bool)
            if mask in ("causal", "sliding"):
                seen = j <= at
            if mask == "sliding":
                seen, attributes["window"] = seen & (j >= at - 2), 2
            if mask == "custom":
                leaves["m"] = (np.arange(batch * sk).reshape(batch, sk) % 3 != 1).astype(np.float64)
                seen = (leaves["m"] >= 0.5)[:, None, None]
            if mask == "bias":
                leaves["m"] = wave((heads, sq, sk), turn + 31)
                s = 1.5 * np.tanh(s / 1.5) + leaves["m"]
                attributes["softcap"] = 1.5
            if mask != "none":
                attributes["mask"] = f'"{mask}"'
            weights = np.where(seen, np.exp(s - s.max(-1, keepdims=True)), 0)
            total = weights.sum(-1, keepdims=True)
            y = (weights / np.where(total == 0, 1, total)) @ np.repeat(split(v, kv), heads // kv, 1)
            archive.results("Attention", "Attention", leaves, [y.transpose(0, 2, 1, 3).reshape(batch, sq, heads * d)],
                            1e-12, 1e-12, **attributes)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    archive = Sequences()
    mamba2(archive)
    attention(archive)
    (folder / "tokens.txt").write_text("".join(archive.text))
    (folder / "tokens.bin").write_bytes(b"".join(archive.bytes))
    print(f"{archive.count} cases")


if __name__ == "__main__":
    main()
