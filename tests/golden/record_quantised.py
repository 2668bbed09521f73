"""Cases of record_ops.py: floats as integers and as a few levels, norms over several dimensions, norms of sums."""

import numpy as np


def spread(shape, seed=0, scale=1.0):
    at = np.arange(int(np.prod(shape)), dtype=np.float64) + 17 * seed
    return (scale * (((at * 0.6180339887498949 + 0.137) % 1.0) * 4 - 2)).reshape(shape)


def by_scale(scale, shape, axis, block):
    """`scale` with an element for each of `shape`."""
    if scale.ndim == 0:
        return np.broadcast_to(scale, shape)
    if block == 0:
        return np.broadcast_to(scale.reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape)
    return np.take(scale.repeat(block, axis), np.arange(shape[axis]), axis)


def linear(archive, ops):
    rows = [
        ((3, 5), (), None, 0),
        ((2, 7, 3), (7,), 1, 0),
        ((3, 17), (3, 3), 1, 7),
        ((5, 4), (5,), 0, 0),
        ((0, 3), (3,), 1, 0),
        ((13,), (13,), 0, 0),
        ((17, 3), (3, 3), 0, 7),
    ]
    for shape, scales, axis, block in rows:
        for to in (np.uint8, np.int8, np.int16, np.uint16):
            for has_zero in (False, True):
                scale = np.array(0.25 + np.abs(spread(scales, 3, 0.3)), np.float32)
                info = np.iinfo(to)
                zero = ((np.arange(scale.size) * 7) % 23).astype(to).reshape(scales)
                x = spread(shape, 1, 20).astype(np.float32)
                if x.size > 4:
                    x.flat[0], x.flat[1], x.flat[2], x.flat[3] = np.nan, np.inf, -np.inf, 1e30
                s, z = by_scale(scale, shape, axis, block), by_scale(zero, shape, axis, block).astype(np.float64)
                with np.errstate(all="ignore"):
                    q = np.round((x / s).astype(np.float32)).astype(np.float64)
                q = np.where(np.isnan(q), 0, q) + (z if has_zero else 0)
                y = np.clip(q, info.min, info.max).astype(to)
                words = {"block": block} | ({} if axis is None else {"axis": axis})
                text = ops.attributes_text(words)[:-1] + (
                    "}" if has_zero else f", to = {ops.DTYPES[np.dtype(to).name]}}}"
                )
                leaves = {"x": x, "s": scale} | ({"z": zero} if has_zero else {})
                call = f"({', '.join(f'%{i}' for i in range(len(leaves)))})"
                plain = {"x": np.where(np.isfinite(x), x, 1).astype(np.float32)} | {
                    k: v for k, v in leaves.items() if k != "x"
                }
                ours = None
                if has_zero and x.size:
                    more = ({"block_size": block} if block else {}) | ({} if axis is None else {"axis": axis})
                    theirs = ops.onnx_of("QuantizeLinear", plain, to, **more)
                    ours = None if theirs is None else np.where(np.isfinite(x), theirs, y)
                archive.add("QuantizeLinear", [f"QuantizeLinear{call}{text}"], leaves, y, 0, ours=ours)
                packed = y
                back = ((packed.astype(np.int64) - (z if has_zero else 0)) * s.astype(np.float64)).astype(np.float32)
                more = ({"block_size": block} if block else {}) | ({} if axis is None else {"axis": axis})
                leaves = {"x": packed, "s": scale} | ({"z": zero} if has_zero else {})
                ours = ops.onnx_of("DequantizeLinear", leaves, np.float32, **more) if x.size else None
                archive.add(
                    "DequantizeLinear",
                    [f"DequantizeLinear{call}{ops.attributes_text(words)}"],
                    leaves,
                    back,
                    1e-6,
                    ours=ours,
                )
    x = np.array([[2147483647, -2147483648, 16777217], [0, -5, 7]], np.int32)
    archive.add(
        "DequantizeLinear",
        ["DequantizeLinear(%0, %1)"],
        {"x": x, "s": np.float32(0.5).reshape(())},
        (x * 0.5).astype(np.float32),
        1e-6,
    )


def levels_of(bits):
    return {8: 127, 4: 7, 2: 1}[bits]


def levels(archive, ops):
    for shape, axis in (((3, 7), None), ((2, 5, 3), 1), ((4, 11), 0), ((13,), None), ((2, 3, 5), -1)):
        for bits in (8, 4, 2):
            n = levels_of(bits)
            x = spread(shape, bits, 3).astype(np.float32)
            shared = None if axis is None else tuple(d for d in range(len(shape)) if d != axis % len(shape))
            words = {"bits": bits} | ({} if axis is None else {"axis": axis})
            largest = np.abs(x).max(axis=shared, keepdims=True) if axis is not None else np.abs(x).max()
            cur = np.maximum((largest / np.float32(n)).astype(np.float32), np.float32(1e-12))

            def level(s):
                z = np.round((x / s).astype(np.float32))
                return (np.clip(z, -n, n) * s).astype(np.float32)

            text = ops.attributes_text(words)
            archive.add("FakeQuantize", [f"FakeQuantize(%0){text}"], {"x": x}, level(cur), 1e-6)
            count = () if axis is None else (shape[axis],)
            for first in (False, True):
                state = np.full(count, 0 if first else 0.031, np.float32)
                d, keep = np.float32(0.75), np.float32(0.25)
                s = state.reshape(np.shape(cur))
                new = cur if first else (s * d + cur * keep).astype(np.float32)
                mode = text[:-1] + ', scale_mode = "ema", decay = 0.75}'
                kinds = f"{ops.type_of(x)}, {ops.type_of(state)}"
                archive.add(
                    "FakeQuantize",
                    [(f"FakeQuantize(%0, %1){mode}", kinds)],
                    {"x": x, "s": state},
                    level(new),
                    1e-6,
                    pick=0,
                )
                archive.add(
                    "FakeQuantize",
                    [(f"FakeQuantize(%0, %1){mode}", kinds)],
                    {"x": x, "s": state},
                    np.asarray(new, np.float32).reshape(count),
                    1e-6,
                    pick=1,
                )
            scale = np.full(count, 0.21, np.float32) + (
                np.arange(count[0], dtype=np.float32) * np.float32(0.01) if count else 0
            )
            scale = np.asarray(scale, np.float32)
            s = scale.reshape(np.shape(cur))
            archive.add(
                "FakeQuantize",
                [f'FakeQuantize(%0, %1){text[:-1]}, scale_mode = "fixed"}}'],
                {"x": x, "s": scale},
                level(s),
                1e-6,
            )
            archive.add("FakeQuantizeLSQ", [f"FakeQuantizeLSQ(%0, %1){text}"], {"x": x, "s": scale}, level(s), 1e-6)
            dy = spread(shape, 9).astype(np.float32)
            z = x.astype(np.float64) / s
            inside = np.abs(z) <= n
            leaves = {"x": x, "s": scale, "g": dy}
            for ste, factor in (
                ("identity", 1),
                ("clipped", inside),
                ("tanh", 1 - np.tanh(z / n) ** 2),
                ("hardtanh", np.clip(2 - np.abs(z) / n, 0, 1)),
            ):
                archive.add(
                    "FakeQuantizeBackward",
                    [f'FakeQuantizeBackward(%0, %1, %2){text[:-1]}, ste = "{ste}"}}'],
                    leaves,
                    (dy * factor).astype(np.float32),
                    2e-6,
                    1e-6,
                )
            archive.add(
                "FakeQuantizeLSQBackwardX",
                [f"FakeQuantizeLSQBackwardX(%0, %1, %2){text}"],
                leaves,
                np.where(inside, dy, 0).astype(np.float32),
                0,
            )
            psi = np.where(inside, np.round(z) - z, np.sign(z) * n)
            total = (psi * dy).sum(axis=shared) if axis is not None else (psi * dy).sum()
            archive.add(
                "FakeQuantizeLSQBackwardScale",
                [f"FakeQuantizeLSQBackwardScale(%0, %1, %2){text}"],
                leaves,
                np.asarray(total, np.float32).reshape(count),
                2e-5,
                2e-4,
            )
    nothing = np.array([[np.nan, 1, 2], [0, 0, 0], [np.inf, 1, -1]], np.float32)
    y = np.array([[np.nan] * 3, [0] * 3, [np.nan, 0, 0]], np.float32)
    y[2, 2] = -0.0
    archive.add("FakeQuantize", ["FakeQuantize(%0) {axis = 0}"], {"x": nothing[:2]}, y[:2], 1e-6)


def saturated(total, mult, zero, dtype):
    """Bytes of sums, which are exact: rounded half to even."""
    info = np.iinfo(dtype)
    return np.clip(np.round(total.astype(np.float64) * mult) + zero, info.min, info.max).astype(dtype)


def byte(shape, dtype, seed):
    at = (np.arange(int(np.prod(shape)), dtype=np.int64) * 2654435761 + 977 * seed) % 256
    return (at - (128 if dtype is np.int8 else 0)).astype(dtype).reshape(shape)


def products(archive, ops):
    scales = {"xs": np.float32(0.5), "ws": np.float32(0.25), "ys": np.float32(32)}  # whose product is exact
    mult = 0.5 * 0.25 / 32
    for turn, (m, k, n) in enumerate(((5, 7, 11), (1, 131, 3), (17, 3, 1), (0, 5, 3), (3, 64, 33))):
        for dtype in (np.int8, np.uint8):
            x, w = byte((m, k), dtype, turn), byte((k, n), np.int8, turn + 7)
            bias = (np.arange(n) * 331 - 1000).astype(np.int32)
            for zx, zw, zy in ((0, 0, 0), (3, 0, -2 if dtype is np.int8 else 2), (0, -5, 1), (100, 7, 5)):
                total = bias + (x.astype(np.int64) - zx) @ (w.astype(np.int64) - zw)
                words = ops.attributes_text({"x_zp": zx, "w_zp": zw, "out_zp": zy, "mult": mult})
                archive.add(
                    "QMatMul",
                    [f"QMatMul(%0, %1, %2){words}"],
                    {"x": x, "w": w, "b": bias},
                    saturated(total, mult, zy, dtype),
                    0,
                )
                zeros = {"xz": dtype(zx), "wz": np.int8(zw), "yz": dtype(zy)}
                if m:
                    given = {**scales, **zeros}
                    node = ops.helper.make_node(
                        "QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["out"]
                    )
                    theirs = ops.onnx_of("", {"x": x, "w": w}, dtype, given, [node])
                    none = np.zeros(n, np.int32)
                    ours = saturated(total - bias, mult, zy, dtype)
                    archive.add(
                        "QMatMul", [f"QMatMul(%0, %1, %2){words}"], {"x": x, "w": w, "b": none}, ours, 0, ours=theirs
                    )
            by_column = (0.001 + 0.0007 * np.arange(n)).astype(np.float32)
            total = bias + (x.astype(np.int64) - 3) @ w.astype(np.int64)
            archive.add(
                "QMatMul",
                ["QMatMul(%0, %1, %2, %3) {x_zp = 3}"],
                {"x": x, "w": w, "b": bias, "m": by_column},
                saturated(total, by_column.astype(np.float64), 0, dtype),
                0,
            )
    for turn, (shape, m, groups, window) in enumerate(
        (
            ((2, 3, 9), 5, 1, {"kernel": (2,), "strides": [1], "pads": [0, 0]}),
            ((1, 4, 7, 5), 6, 2, {"kernel": (3, 3), "strides": [2, 1], "pads": [1, 1, 1, 0]}),
            ((2, 6, 5, 4), 6, 6, {"kernel": (3, 2), "strides": [1, 2], "pads": [2, 0, 1, 1]}),
        )
    ):
        for dtype in (np.int8, np.uint8):
            x = byte(shape, dtype, turn)
            w = byte((m, shape[1] // groups) + window["kernel"], np.int8, turn + 3)
            bias = (np.arange(m) * 77 - 200).astype(np.int32)
            for zx, zw, zy in ((0, 0, 0), (9, 0, 3), (50, -4, 1)):
                words = ops.attributes_text(
                    {
                        "strides": window["strides"],
                        "pads": window["pads"],
                        "groups": groups,
                        "x_zp": zx,
                        "w_zp": zw,
                        "out_zp": zy,
                        "mult": mult,
                    }
                )
                given = {**scales, "xz": dtype(zx), "wz": np.int8(zw), "yz": dtype(zy)}
                node = ops.helper.make_node(
                    "QLinearConv",
                    ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"],
                    ["out"],
                    strides=window["strides"],
                    pads=window["pads"],
                    group=groups,
                )
                spatial = len(shape) - 2
                wide = np.pad(
                    x.astype(np.int64) - zx,
                    [(0, 0), (0, 0)] + [(window["pads"][d], window["pads"][d + spatial]) for d in range(spatial)],
                )
                out = [(n - k) // s + 1 for n, k, s in zip(wide.shape[2:], window["kernel"], window["strides"])]
                total = np.zeros((shape[0], m, *out), np.int64)
                for at in np.ndindex(*out):
                    cut = tuple(slice(a * s, a * s + k) for a, s, k in zip(at, window["strides"], window["kernel"]))
                    for g in range(groups):
                        c, r = shape[1] // groups, m // groups
                        part = wide[(slice(None), slice(g * c, (g + 1) * c)) + cut].reshape(shape[0], -1)
                        rows = (w[g * r : (g + 1) * r].astype(np.int64) - zw).reshape(r, -1)
                        total[(slice(None), slice(g * r, (g + 1) * r)) + at] = part @ rows.T
                total += bias.reshape([-1] + [1] * spatial)
                theirs = ops.onnx_of("", {"x": x, "w": w, "b": bias}, dtype, given, [node])
                archive.add(
                    "QConv",
                    [f"QConv(%0, %1, %2){words}"],
                    {"x": x, "w": w, "b": bias},
                    saturated(total, mult, zy, dtype),
                    0,
                    ours=theirs,
                )


def norms(archive, ops):
    f32 = np.float32
    for shape, axis in (
        ((2, 3, 5, 7), 1),
        ((2, 3, 5, 7), -2),
        ((3, 17), 0),
        ((2, 131), 1),
        ((0, 3, 5), 1),
        ((2, 3, 0), 1),
    ):
        own = shape[axis % len(shape) :]
        axes = tuple(range(axis % len(shape), len(shape)))
        for offset in (0, 1e3):
            x = (spread(shape, 1) + offset).astype(f32)
            g, b = (spread(own, 2) + 2.5).astype(f32), spread(own, 3).astype(f32)
            wide = x.astype(np.float64)
            for op, theirs in (("LayerNorm", "LayerNormalization"), ("RmsNorm", "RMSNormalization")):
                with np.errstate(all="ignore"):
                    c = wide - (wide.mean(axis=axes, keepdims=True) if op == "LayerNorm" and x.size else 0)
                    n = c / np.sqrt((c * c).mean(axis=axes, keepdims=True) + 1e-5) if x.size else wide
                for shift in (False, True):
                    leaves = {"x": x, "g": g} | ({"b": b} if shift else {})
                    y = (n * g + (b if shift else 0)).astype(f32)
                    ours = (
                        ops.onnx_of(theirs, leaves, f32, axis=axis, epsilon=1e-5)
                        if x.size and offset == 0 and not (shift and op == "RmsNorm")
                        else None
                    )
                    call = ", ".join(f"%{i}" for i in range(len(leaves)))
                    archive.add(
                        op, [f"{op}({call}) {{axis = {axis}}}"], leaves, y, 2e-5, 1e-3 if offset else 2e-5, ours=ours
                    )
    for shape in ((3, 7), (2, 5, 131)):
        x, r = spread(shape, 4).astype(f32), spread(shape, 5).astype(f32)
        bias, g, b = (spread(shape[-1:], 6 + i).astype(f32) for i in range(3))
        for op in ("FusedResidualLN", "FusedResidualRmsNorm"):
            for has_bias in (False, True):
                for shift in (False, True):
                    leaves = (
                        {"x": x, "r": r} | ({"o": bias} if has_bias else {}) | {"g": g} | ({"b": b} if shift else {})
                    )
                    total = x.astype(np.float64) + r + (bias if has_bias else 0)
                    c = total - (total.mean(-1, keepdims=True) if op == "FusedResidualLN" else 0)
                    y = c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * g + (b if shift else 0)
                    call = ", ".join(f"%{i}" for i in range(len(leaves)))
                    kind = ops.type_of(x)
                    for pick, result in enumerate((y, total)):
                        archive.add(
                            op,
                            [(f"{op}({call}) {{has_bias = {str(has_bias).lower()}}}", f"{kind}, {kind}")],
                            leaves,
                            result.astype(f32),
                            2e-5,
                            1e-5,
                            pick=pick,
                        )


def record(archive, ops):
    linear(archive, ops)
    levels(archive, ops)
    products(archive, ops)
    norms(archive, ops)
