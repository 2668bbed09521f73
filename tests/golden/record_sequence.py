#!/usr/bin/env python3
"""Records what loops in numpy, ONNX Runtime and PyTorch make of ops along a sequence: sequence.txt and sequence.bin.

  record_sequence.py [FOLDER]      writes into FOLDER, this one when not given

Needs what record_ops.py does, and PyTorch. The form of the files is that of ops.txt and ops.bin; several results of an
op are flattened and joined to one output. Recurrences are loops over scalars in double, rounded once.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import scipy.stats
import torch
from record_ops import INF, NAN, Archive, attributes_text, onnx_of, type_of, wave


class Sequences(Archive):
    def results(self, name, op, leaves, expected, rtol=1e-6, atol=0.0, types=None, ours=None, only=None, operands=None,
                **attributes):
        """A case of one op over all leaves or those in `operands`; `expected`: its results, of which `only` is
        returned, or all. `types`: of leaves, and "results" of the op."""
        values = ", ".join(f"%{i}" for i, leaf in enumerate(leaves) if operands is None or leaf in operands)
        made = types["results"] if types else [type_of(np.asarray(r)) for r in expected]
        text = f"{op}({values}){attributes_text(attributes)}"
        leaves_text = {leaf: types[leaf] if types else type_of(a) for leaf, a in leaves.items()}
        at, last = len(leaves), len(leaves)
        lines = [f'  %{i} = Input() {{name = "{leaf}"}} : {kind}'
                 for i, (leaf, kind) in enumerate(leaves_text.items())]
        if len(made) == 1:
            lines.append(f"  %{at} = {text} : {made[0]}")
            flat = np.asarray(expected[0])
        elif only is not None:
            lines.append(f"  %{at}:{len(made)} = {text} : {', '.join(made)}")
            last, flat = f"{at}.{only}", np.asarray(expected[only])
        else:
            lines.append(f"  %{at}:{len(made)} = {text} : {', '.join(made)}")
            parts = []
            for r, kind in enumerate(made):
                source = f"%{at}.{r}"
                size = product(kind)
                last += 1
                lines.append(f"  %{last} = Reshape({source}) {{shape = <{size}>}} : {dtype_of(kind)}[{size}]")
                if dtype_of(kind) != "f32":
                    last += 1
                    lines.append(f"  %{last} = Cast(%{last - 1}) {{to = f32}} : f32[{size}]")
                parts.append((f"%{last}", size))
            last += 1
            total = " + ".join(size for _, size in parts) if types else str(sum(int(size) for _, size in parts))
            names = ", ".join(part for part, _ in parts)
            lines.append(f"  %{last} = Concat({names}) {{axis = 0}} : f32[{total}]")
            flat = np.concatenate([np.asarray(r, np.float64).ravel() for r in expected]).astype(np.float32)
        if ours is not None:
            self.checked += 1
            both = np.concatenate([np.asarray(r, np.float64).ravel() for r in ours])
            wrong = np.abs(both - flat.astype(np.float64).ravel()).max(initial=0)
            if wrong > 2e-5 * max(1, np.abs(flat).max(initial=0)):
                sys.exit(f"{name}: other systems are off by {wrong}")
        symbols = " sym S in 0..64" if types else ""
        body = "\n".join([f"graph g{symbols} {{", *lines, f"  return %{last}", "}"])
        dims = ";".join(",".join(map(str, a.shape)) for a in [*leaves.values(), flat])
        self.text.append(f"case {name} rtol {rtol:g} atol {atol:g}\ndims {dims}\n{body}\n")
        self.bytes += [np.ascontiguousarray(a).tobytes() for a in [*leaves.values(), flat]]
        self.count += 1


def dtype_of(kind):
    return kind.split("[")[0]


def product(kind):
    """The number of elements of a type, as a polynomial if it has symbols."""
    dims = [d.strip() for d in kind[kind.index("[") + 1:-1].split(",") if d.strip()]
    number = int(np.prod([int(d) for d in dims if d.isdigit()], dtype=np.int64))
    symbols = [d for d in dims if not d.isdigit()]
    return str(number) if not symbols else f"{number}*{'*'.join(symbols)}"


def delta_rule(q, k, v, g, beta, state=None, scale=0.0):
    """GatedDeltaNet, scalar by scalar."""
    q, k, v, g, beta = (np.asarray(a, np.float64) for a in (q, k, v, g, beta))
    (batch, length, groups, n), (heads, m) = q.shape, v.shape[2:]
    s = np.zeros((batch, heads, n, m)) if state is None else np.array(state, np.float64)
    o = np.zeros((batch, length, heads, m))
    for b in range(batch):
        for h in range(heads):
            for t in range(length):
                kk, qq = k[b, t, h * groups // heads], q[b, t, h * groups // heads]
                s[b, h] *= np.exp(g[b, t, h])[:, None] if g.ndim == 4 else np.exp(g[b, t, h])
                d = beta[b, t, h] * (v[b, t, h] - kk @ s[b, h])
                s[b, h] += np.outer(kk, d)
                o[b, t, h] = (qq @ s[b, h]) * (scale or n ** -0.5)
    return o, s


def gated_delta_net(archive):
    def case(batch, length, groups, heads, n, m, carried, seed, per_channel=False, scale=0.0, dtype=np.float32,
             symbol=False, chunk=0):
        keys = wave((batch, length, groups, n), seed)
        keys /= np.sqrt((keys * keys).sum(-1, keepdims=True))
        leaves = {
            "q": wave((batch, length, groups, n), seed + 1).astype(dtype), "k": keys.astype(dtype),
            "v": wave((batch, length, heads, m), seed + 2).astype(dtype),
            "g": wave((batch, length, heads) + ((n,) if per_channel else ()), seed + 3, -1.5, 0.05).astype(np.float32),
            "beta": wave((batch, length, heads), seed + 4, 0.0, 1.0).astype(np.float32)}
        if carried:
            leaves["s"] = wave((batch, heads, n, m), seed + 5).astype(np.float32)
        o, s = delta_rule(*leaves.values(), scale=scale)
        types = None
        if symbol:
            types = {leaf: type_of(a).replace(f"[{batch}, {length},", f"[{batch}, S,") if leaf != "s" else type_of(a)
                     for leaf, a in leaves.items()}
            types["results"] = [f"f32[{batch}, S, {heads}, {m}]", type_of(s.astype(np.float32))]
        attributes = {"per_channel": True} if per_channel else {}
        if scale:
            attributes["scale"] = scale
        if chunk:
            attributes["chunk"] = chunk
        for only in (0, 1) if symbol else (None,):
            archive.results("GatedDeltaNet", "GatedDeltaNet", leaves, [o.astype(dtype), s.astype(np.float32)],
                            1e-5 if dtype == np.float32 else 1e-3, 2e-5 if dtype == np.float32 else 2e-3, types,
                            only=only, **attributes)

    seed = 0
    for carried in (False, True):
        for batch, length, groups, heads, n, m in ((1, 1, 1, 1, 3, 5), (2, 1, 2, 2, 17, 33), (3, 7, 1, 3, 5, 11),
                                                   (2, 5, 2, 6, 8, 1), (1, 13, 2, 4, 19, 130), (2, 3, 1, 1, 1, 7)):
            for per_channel in (False, True):
                seed += 1
                case(batch, length, groups, heads, n, m, carried, seed, per_channel)
        case(2, 0, 1, 2, 3, 5, carried, 40)
        case(0, 3, 1, 2, 3, 5, carried, 41)
        case(2, 3, 2, 2, 7, 5, carried, 42, scale=0.75)
        case(2, 5, 1, 2, 16, 32, carried, 43, dtype=np.float16)
        for length in (1, 6, 17):
            case(2, length, 1, 2, 11, 37, carried, 44 + length, symbol=True)
        # In chunks, which are full, not full, or longer than all.
        for batch, length, groups, heads, n, m, chunk in ((2, 12, 1, 3, 5, 11, 4), (1, 13, 2, 2, 7, 3, 5),
                                                          (2, 3, 1, 2, 3, 17, 64), (1, 131, 1, 2, 16, 33, 64),
                                                          (2, 7, 2, 4, 3, 5, 1), (2, 0, 1, 2, 3, 5, 4)):
            case(batch, length, groups, heads, n, m, carried, 80 + length, chunk=chunk)
        for length in (1, 8, 19):
            case(2, length, 1, 2, 11, 37, carried, 60 + length, symbol=True, chunk=8)


def selective_scan(archive):
    def case(batch, length, channels, n, seed, with_d=False, carried=False, dtype=np.float32):
        leaves = {"x": wave((batch, length, channels), seed).astype(dtype),
                  "delta": wave((batch, length, channels), seed + 1, 0.0, 1.5).astype(dtype),
                  "a": wave((channels, n), seed + 2, -2.0, 0.0).astype(np.float32),
                  "b": wave((batch, length, n), seed + 3).astype(dtype),
                  "c": wave((batch, length, n), seed + 4).astype(dtype)}
        if with_d:
            leaves["d"] = wave((channels,), seed + 5).astype(np.float32)
        if carried:
            leaves["s"] = wave((batch, channels, n), seed + 6).astype(np.float32)
        x, delta, a, b, c = (np.asarray(v, np.float64) for v in list(leaves.values())[:5])
        h = np.asarray(leaves["s"], np.float64) if carried else np.zeros((batch, channels, n))
        y = np.zeros((batch, length, channels))
        for t in range(length):
            h = np.exp(delta[:, t, :, None] * a) * h + (delta[:, t] * x[:, t])[:, :, None] * b[:, t, None, :]
            y[:, t] = (h * c[:, t, None, :]).sum(-1)
        if with_d:
            y += x * np.asarray(leaves["d"], np.float64)
        archive.results("SelectiveScan", "SelectiveScan", leaves, [y.astype(dtype), h.astype(np.float32)],
                        1e-5 if dtype == np.float32 else 1e-3, 1e-5 if dtype == np.float32 else 4e-3)

    seed = 100
    for batch, length, channels, n in ((1, 1, 1, 1), (2, 1, 67, 16), (3, 5, 7, 3), (2, 11, 64, 16), (1, 7, 131, 17),
                                       (2, 3, 5, 33), (0, 3, 5, 2), (2, 0, 3, 2), (2, 1, 0, 3)):
        for with_d, carried in ((False, False), (True, False), (True, True)):
            seed += 1
            case(batch, length, channels, n, seed, with_d, carried)
    case(2, 7, 33, 16, 150, True, True, np.float16)


def lstm_layer(op, leaves, direction, clip, activation, linear_before_reset):
    """One direction after the other, as ONNX says, in double."""
    x, w, r = (np.asarray(leaves[n], np.float64) for n in "xwr")
    (length, batch, _), directions, hidden = x.shape, w.shape[0], r.shape[2]
    gates = w.shape[1] // hidden
    b = np.asarray(leaves.get("b", np.zeros((directions, 2 * gates * hidden))), np.float64)
    p = np.asarray(leaves.get("p", np.zeros((directions, 3 * hidden))), np.float64)
    lens = leaves.get("lens", np.full(batch, length))
    states = 2 if op == "Lstm" else 1
    first = [np.asarray(leaves.get(n, np.zeros((directions, batch, hidden))), np.float64) for n in "hc"[:states]]
    y, last = np.zeros((length, directions, batch, hidden)), [np.zeros((directions, batch, hidden)) for _ in first]
    limited = lambda a: np.clip(a, -clip, clip) if clip else a
    sigmoid = lambda a: 1 / (1 + np.exp(-limited(a)))
    for d in range(directions):
        wb, rb = b[d, :gates * hidden].reshape(gates, hidden), b[d, gates * hidden:].reshape(gates, hidden)
        ww, rr = w[d].reshape(gates, hidden, -1), r[d].reshape(gates, hidden, hidden)
        for n in range(batch):
            h = first[0][d, n]
            c = first[1][d, n] if states == 2 else None
            order = range(min(int(lens[n]), length))
            for t in reversed(order) if direction == "reverse" or d == 1 else order:
                given = lambda g: ww[g] @ x[t, n] + wb[g]
                both = lambda g: given(g) + rr[g] @ h + rb[g]
                if op == "Lstm":
                    pi, po, pf = p[d].reshape(3, hidden)
                    c, before = sigmoid(both(2) + pf * c) * c + sigmoid(both(0) + pi * c) * np.tanh(limited(both(3))), c
                    h = sigmoid(both(1) + po * c) * np.tanh(c)
                elif op == "Gru":
                    z, reset = sigmoid(both(0)), sigmoid(both(1))
                    hidden_part = reset * (rr[2] @ h + rb[2]) if linear_before_reset else rr[2] @ (reset * h) + rb[2]
                    h = (1 - z) * np.tanh(limited(given(2) + hidden_part)) + z * h
                else:
                    h = np.tanh(limited(both(0))) if activation == "Tanh" else np.maximum(limited(both(0)), 0)
                y[t, d, n] = h
            last[0][d, n] = h
            if states == 2:
                last[1][d, n] = c
    return [y, *last]


def onnx_layer(op, leaves, direction, clip, activation, linear_before_reset, hidden):
    names = {"Lstm": ["x", "w", "r", "b", "lens", "h", "c", "p"], "Gru": ["x", "w", "r", "b", "lens", "h"]}
    inputs = [n if n in leaves else "" for n in names.get(op, names["Gru"])]
    more = {"hidden_size": hidden, "direction": direction}
    if clip:
        more["clip"] = clip
    if op == "Gru":
        more["linear_before_reset"] = int(linear_before_reset)
    if op == "Rnn":
        more["activations"] = [activation] * (2 if direction == "bidirectional" else 1)
    results = ["y", "yh"] + (["yc"] if op == "Lstm" else [])
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op.upper(), inputs, results, **more)], "g",
        [info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in leaves.items()],
        [info(r, onnx.TensorProto.FLOAT, None) for r in results])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 22)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, leaves)


def layers(archive):
    seed = 300
    for op, gates in (("Lstm", 4), ("Gru", 3), ("Rnn", 1)):
        for length, batch, inputs, hidden, given in ((1, 1, 1, 1, ""), (5, 2, 3, 7, ""), (4, 3, 5, 17, "b"),
                                                     (6, 3, 5, 3, "b h c lens"), (3, 2, 11, 5, "b h c lens p"),
                                                     (2, 1, 3, 33, "b h c"), (0, 2, 3, 5, "b h c lens")):
            for direction in ("forward", "reverse", "bidirectional"):
                for variant in ((False, True) if op != "Lstm" else (False,)):
                    seed += 10
                    d = 2 if direction == "bidirectional" else 1
                    make = lambda shape, s: wave(shape, seed + s, -1.0, 1.0).astype(np.float32)
                    leaves = {"x": make((length, batch, inputs), 0), "w": make((d, gates * hidden, inputs), 1),
                              "r": make((d, gates * hidden, hidden), 2) / np.float32(np.sqrt(hidden))}
                    for name in given.split():
                        if (name == "c" and op != "Lstm") or (name == "p" and op != "Lstm"):
                            continue
                        shape = {"b": (d, 2 * gates * hidden), "p": (d, 3 * hidden)}.get(name, (d, batch, hidden))
                        leaves[name] = make(shape, 3 + len(leaves))
                        if name == "lens":
                            most = [length, min(length, 1), 2 if length > 1 else 0]
                            leaves[name] = np.array(most[:batch], np.int32)
                    clip = 0.5 if given == "b h c" else 0.0
                    activation = "Relu" if variant else "Tanh"
                    expected = lstm_layer(op, leaves, direction, clip, activation, variant)
                    ours = onnx_layer(op, leaves, direction, clip, activation, variant, hidden) if length else None
                    attributes = {"direction": f'"{direction}"'}
                    if clip:
                        attributes["clip"] = clip
                    if op == "Gru" and variant:
                        attributes["linear_before_reset"] = True
                    if op == "Rnn":
                        attributes["activation"] = f'"{activation}"'
                    archive.results(op, op, leaves, [e.astype(np.float32) for e in expected], 1e-5, 5e-6, ours=ours,
                                    **attributes)
    # PyTorch's layer, whose gates stand in the order i f g o, bidirectional.
    torch.manual_seed(1)
    layer = torch.nn.LSTM(5, 7, bidirectional=True)
    x = torch.randn(6, 3, 5)
    leaves = {"x": x.numpy()}
    order = lambda a: a.reshape(4, 7, -1)[[0, 3, 1, 2]].reshape(28, -1)
    both = lambda name: np.stack([order(getattr(layer, name + end).detach().numpy()) for end in ("", "_reverse")])
    leaves["w"], leaves["r"] = both("weight_ih_l0"), both("weight_hh_l0")
    leaves["b"] = np.concatenate([both("bias_ih_l0")[..., 0], both("bias_hh_l0")[..., 0]], 1)
    leaves = {n: np.ascontiguousarray(a, np.float32) for n, a in leaves.items()}
    expected = lstm_layer("Lstm", leaves, "bidirectional", 0.0, "", False)
    y, (h, c) = layer(x)
    theirs = [y.detach().numpy().reshape(6, 3, 2, 7).transpose(0, 2, 1, 3), h.detach().numpy(), c.detach().numpy()]
    archive.results("Lstm", "Lstm", leaves, [e.astype(np.float32) for e in expected], 1e-5, 2e-6, ours=theirs,
                    direction='"bidirectional"')


def triangular_solve(archive):
    for seed, (shape, columns) in enumerate((((1, 1), 1), ((7, 7), 5), ((2, 3, 19, 19), 33), ((64, 64), 32),
                                             ((3, 0, 0), 2), ((0, 5, 5), 3), ((71, 71), 1))):
        for dtype in (np.float32, np.float64):
            for lower, transpose, unit in ((True, False, False), (True, True, True), (False, False, True),
                                           (False, True, False)):
                n = shape[-1]
                a = wave(shape, 700 + seed) / max(n, 1) + 2 * np.eye(n)
                a, b = a.astype(dtype), wave(shape[:-1] + (columns,), 800 + seed).astype(dtype)
                exact = (np.tril if lower else np.triu)(a.astype(np.float64))
                if unit:
                    exact = exact * (1 - np.eye(n)) + np.eye(n)
                y = np.linalg.solve(np.swapaxes(exact, -1, -2) if transpose else exact, b.astype(np.float64))
                scale = 1 if dtype == np.float32 else 2.0 ** -29
                text = attributes_text({"lower": lower, "transpose": transpose, "unit": unit})
                archive.add("TriangularSolve", [f"TriangularSolve(%0, %1){text}"], {"a": a, "b": b}, y.astype(dtype),
                            1e-5 * scale, 2e-5 * scale)


def philox(state, count):
    """Words behind a state, and the state behind them, with numbers of any length."""
    mask = 0xFFFFFFFF
    counter = sum(int(w) << (32 * i) for i, w in enumerate(state[:4]))
    words = []
    for block in range((count + 3) // 4):
        at = (counter + block) % (1 << 128)
        c = [at >> (32 * i) & mask for i in range(4)]
        k = [int(w) for w in state[4:]]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [q >> 32 ^ c[1] ^ k[0], q & mask, p >> 32 ^ c[3] ^ k[1], p & mask]
            k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        words += c
    after = (counter + (count + 3) // 4) % (1 << 128)
    return np.array(words[:count], np.uint32), np.array([after >> (32 * i) & mask for i in range(4)] +
                                                        [int(w) for w in state[4:]], np.uint32)


def random_numbers(archive):
    ones, pi = 0xFFFFFFFF, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    known = (([0] * 6, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
             ([ones] * 6, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
             (pi, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]))
    for state, expected in known:
        state = np.array(state, np.uint32)
        words, after = philox(state, 4)
        if words.tolist() != expected:
            sys.exit("Philox is not what Random123 says")
        for only in (0, 1):
            archive.results("RngBits", "RngBits", {"s": state}, [np.array(expected, np.uint32), after], 0, 0,
                            only=only, shape=(4,))
    # Counters that carry, sizes around blocks, none at all.
    states = [np.array(s, np.uint32) for s in ([ones - 1, ones, 0, 7, 1, 2], [ones, ones, ones, ones, 3, 4], pi)]
    shapes = ((1,), (3, 7), (0,), (8,), (2, 3, 5), (1021,))
    for seed, (state, shape) in enumerate((state, shape) for state in states for shape in shapes):
        count = int(np.prod(shape))
        words, after = philox(state, count)
        units = (words >> 8).astype(np.float64) * 2.0 ** -24
        text = {"shape": "<" + ", ".join(map(str, shape)) + ">"}
        archive.results("RngBits", "RngBits", {"s": state}, [words.reshape(shape), after], 0, 0, only=seed % 2, **text)
        for low, high in ((0.0, 1.0), (-3.0, 5.0)):
            y = (low + (high - low) * units).astype(np.float32).reshape(shape)
            archive.results("RngUniform", "RngUniform", {"s": state}, [y, after], 0 if low == 0 else 1e-6,
                            0 if low == 0 else 1e-6, only=0, low=low, high=high, **text)
        pairs, after_pairs = philox(state, count + count % 2)
        units_of_pairs = (pairs >> 8).astype(np.float64) * 2.0 ** -24
        radius = np.sqrt(-2 * np.log(units_of_pairs[0::2] + 2.0 ** -24))
        angle = 2 * np.pi * units_of_pairs[1::2]
        y = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).ravel()[:count]
        archive.results("RngNormal", "RngNormal", {"s": state}, [y.astype(np.float32).reshape(shape), after_pairs],
                        2e-6, 3e-6, only=0, **text)
        p = wave(shape, seed, -0.25, 1.25).astype(np.float32)
        p.flat[:1] = NAN
        with np.errstate(invalid="ignore"):
            archive.results("Bernoulli", "Bernoulli", {"p": p, "s": state},
                            [units.reshape(shape) < p, after], 0, 0, only=0)
        for rate in (0.0, 0.25, 0.9):
            x = wave(shape, seed + 50).astype(np.float32)
            x.flat[:1] = INF
            kept = units.reshape(shape) >= np.float32(rate)
            with np.errstate(invalid="ignore"):
                y = np.where(kept, x / (1 - rate), 0).astype(np.float32)
            archive.results("Dropout", "Dropout", {"x": x, "s": state}, [y, after], 1e-6, 0, only=seed % 2, rate=rate)
    for rows in (3, 17, 0):
        words, after = philox(states[0], rows * 5)
        archive.results("RngUniform", "RngUniform", {"n": np.zeros((rows, 1), np.float32), "s": states[0]},
                        [((words >> 8) * np.float32(2.0 ** -24)).reshape(rows, 5), after], 0, 0, only=1,
                        types={"n": "f32[S, 1]", "s": "u32[6]", "results": ["f32[S, 5]", "u32[6]"]},
                        operands=["s"], shape="<S, 5>")


def sample(logits, units, top_k, top_p, temperature):
    """A token of a row, and how near the nearest decision is to another."""
    tokens = [t for t in range(len(logits)) if np.isfinite(logits[t])]
    if not tokens:
        return 0, 1.0
    x = np.array([logits[t] for t in tokens], np.float64) / max(temperature, 1e-6)
    order = sorted(range(len(tokens)), key=lambda i: (-x[i], tokens[i]))
    if temperature == 0:
        return tokens[order[0]], 1.0
    if top_k and top_k < len(order):
        order = [i for i in order if x[i] >= x[order[top_k - 1]]]
    p = np.exp(x - x.max())
    margin = 1.0
    if top_p < 1:
        sums = np.cumsum([p[i] for i in order]) / sum(p[i] for i in order)
        count = int(np.sum(sums < top_p)) + 1
        margin = np.abs(sums - top_p).min()
        order = order[:count]
    order.sort()
    sums = np.cumsum([p[i] for i in order])
    sums /= sums[-1]
    margin = min(margin, np.abs(sums - units).min())
    return tokens[order[min(int(np.sum(sums <= units)), len(order) - 1)]], margin


def samples(archive):
    state = np.array([7, 0, 0, 0, 11, 47], np.uint32)
    rows = 40
    for vocabulary in (1, 5, 131):
        for top_k, top_p, temperature in ((0, 1.0, 1.0), (3, 1.0, 1.0), (0, 0.63, 1.0), (4, 0.77, 0.7), (0, 0.0, 1.0),
                                          (0, 0.93, 2.5), (0, 1.0, 0.0), (1, 1.0, 1.0), (500, 0.51, 1.0)):
            for dtype in ("i32", "i64"):
                logits = wave((rows, vocabulary), vocabulary + 21, -3.0, 3.0).astype(np.float32)
                if vocabulary > 1:
                    logits[1] = -INF
                    logits[2, ::2] = NAN
                    logits[3, 1] = -INF
                    logits[4] = np.round(logits[4])
                    logits[5] = 1.0
                words, after = philox(state, rows)
                units = (words >> 8).astype(np.float64) * 2.0 ** -24
                drawn, margins = zip(*(sample(logits[r], units[r], top_k, top_p, temperature) for r in range(rows)))
                if min(margins) < 2e-6:
                    sys.exit(f"Sample: a decision is within {min(margins)}: draw other logits")
                archive.results("Sample", "Sample", {"x": logits, "s": state},
                                [np.array(drawn, np.int32 if dtype == "i32" else np.int64), after], 0, 0,
                                only=0 if dtype == "i32" else vocabulary % 2, top_k=top_k, top_p=top_p,
                                temperature=temperature, dtype=dtype)
    # Many rows alike: how often each token is drawn is what its probability says.
    rows, logits = 4096, np.array([1.0, 0.0, -1.0, 2.0, 0.5], np.float32)
    words, after = philox(state, rows)
    units = (words >> 8).astype(np.float64) * 2.0 ** -24
    drawn = np.array([sample(logits, u, 0, 1.0, 1.0)[0] for u in units])
    expected = np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum() * rows
    chi_square = ((np.bincount(drawn, minlength=5) - expected) ** 2 / expected).sum()
    if chi_square > scipy.stats.chi2.ppf(0.99, 4):
        sys.exit(f"Sample: chi-square {chi_square}")
    margin = min(sample(logits, u, 0, 1.0, 1.0)[1] for u in units)
    if margin < 5e-7:
        sys.exit(f"Sample: a decision of many is within {margin}")
    archive.results("Sample", "Sample", {"x": np.broadcast_to(logits, (rows, 5)).copy(), "s": state},
                    [drawn.astype(np.int64), after], 0, 0, only=0)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    archive = Sequences()
    for family in (gated_delta_net, selective_scan, layers, triangular_solve,
                   random_numbers, samples):
        family(archive)
    (folder / "sequence.txt").write_text("".join(archive.text))
    (folder / "sequence.bin").write_bytes(b"".join(archive.bytes))
    print(f"{archive.count} cases, {archive.checked} of them by other systems too")


if __name__ == "__main__":
    main()
