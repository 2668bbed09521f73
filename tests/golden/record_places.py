"""Cases of record_ops.py: ops that say where elements come from or go to: Pad, Slice, and the scatters."""

import numpy as np

DTYPES = (np.float32, np.float64, np.float16, np.int8, np.int32, np.uint64, bool)
MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


TURN = [0]


def few(count):
    """The next dtypes, so that all take their turn."""
    TURN[0] += count
    return [DTYPES[at % len(DTYPES)] for at in range(TURN[0] - count, TURN[0])]


def number(shape, dtype, seed=0):
    at = (np.arange(int(np.prod(shape))) * 37 + 11 * seed) % 101
    return (at % 2 == 0 if dtype is bool else (at - (50 if np.dtype(dtype).kind != "u" else 0)).astype(dtype)).reshape(
        shape
    )


def pads(archive, ops):
    rows = [
        ((5, 7), (0, 1), (2, 0)),
        ((5, 7), (4, 6), (4, 6)),
        ((3, 5, 2), (0, 2, 1), (1, 3, 0)),
        ((7,), (3,), (6,)),
        ((5, 7), (-2, 1), (1, -3)),
        ((5, 7), (-5, 0), (0, 0)),
        ((1, 3), (0, 2), (0, 2)),
        ((11, 3), (-1, -1), (3, 1)),
    ]
    for shape, low, high in rows:
        for mode, theirs in MODES.items():
            for dtype in few(2):
                x = number(shape, dtype)
                if x.dtype.kind == "f":
                    x.flat[0], x.flat[-1] = np.nan, -0.0
                cut = x[tuple(slice(max(0, -a), n - max(0, -b)) for n, a, b in zip(shape, low, high))]
                wide = [(max(0, a), max(0, b)) for a, b in zip(low, high)]
                most = {"reflect": [n - 1 for n in cut.shape], "circular": list(cut.shape)}.get(mode)
                if most and any(max(w) > m for w, m in zip(wide, most)) or 0 in cut.shape and mode != "constant":
                    continue
                more = {"constant_values": 1} if mode == "constant" else {}
                y = np.pad(cut, wide, theirs, **more)
                words = (
                    ops.attributes_text({"low": list(low), "high": list(high)})[:-1]
                    + (", value = 1.0" if mode == "constant" else "")
                    + f', mode = "{mode}"}}'
                )
                # ONNX Runtime reflects and wraps before it takes away.
                asked = x.dtype.kind != "b" and (min(low + high) >= 0 or mode == "constant") and cut.size
                ours = (
                    ops.onnx_of(
                        "Pad",
                        {"x": x},
                        dtype,
                        {"p": np.array(low + high, np.int64), "v": np.array(1, dtype)},
                        mode=theirs,
                    )
                    if asked
                    else None
                )
                archive.add("Pad", [f"Pad(%0){words}"], {"x": x}, y, 0, ours=ours)


def slices(archive, ops):
    rows = [
        ((5, 7), [1], (6,), (-1,), [-1]),
        ((5, 7), [0, 1], (4, 1), (0, 6), [-2, 2]),
        ((5, 7), [-1], (5,), (2,), [-3]),
        ((11,), [0], (3,), (11,), [5]),
        ((3, 5, 2), [2, 0], (1, 0), (-1, 3), [-1, 1]),
        ((5,), [0], (2,), (2,), [-1]),
        ((5,), [0], (-1,), (-1,), [-2]),
        ((0, 3), [0], (-1,), (-1,), [-1]),
    ]
    for shape, axes, starts, stops, steps in rows:
        for dtype in few(3):
            x = number(shape, dtype, 1)
            index = [slice(None)] * len(shape)
            for axis, start, stop, step in zip(axes, starts, stops, steps):
                index[axis] = [i for i in range(start, stop, step)]
            y = x
            for axis, at in enumerate(index):
                y = y if isinstance(at, slice) else np.take(y, np.array(at, np.int64), axis)
            end = [s if s >= 0 else np.iinfo(np.int64).min for s in stops]
            given = {
                "s": np.array(starts, np.int64),
                "e": np.array(end, np.int64),
                "a": np.array(axes, np.int64),
                "t": np.array(steps, np.int64),
            }
            ours = ops.onnx_of("Slice", {"x": x}, dtype, given) if x.size and min(starts) >= 0 else None
            archive.add(
                "Slice",
                ["Slice(%0)" + ops.attributes_text({"axis": axes, "start": starts, "stop": stops, "step": steps})],
                {"x": x},
                y,
                0,
                ours=ours,
            )
    x = number((17, 3), np.float32, 2)
    archive.add(
        "Slice",
        [("Slice(%0) {axis = 0, start = <S - 1>, step = -2}", "f32[ceil(S / 2)]".replace("]", ", 3]"))],
        {"x": x},
        x[::-2].copy(),
        0,
        types={"x": "f32[S, 3]"},
    )


# How `updates` join y, in order.
def join(y, at, value, reduction):
    with np.errstate(all="ignore"):
        if reduction == "none":
            y[at] = value
        elif reduction == "add":
            y[at] += value
        elif reduction == "mul":
            y[at] *= value
        else:
            y[at] = (np.maximum if reduction == "max" else np.minimum)(y[at], value)


def scattered(x, places, reduction):
    """x with each (index, value) joined in order: sums of floats in double, rounded once."""
    y = x.astype(np.float64) if x.dtype.kind == "f" else x.copy()
    for at, value in places:
        join(y, at, value, reduction)
    return y.astype(x.dtype)


def wrapped(i, n):
    return i + n if i < 0 else i


def scatters(archive, ops):
    for reduction in ("none", "add", "mul", "max", "min"):
        rtol, atol = (2e-6, 1e-5) if reduction in ("add", "mul") else (0, 0)
        for dtype in DTYPES:
            if dtype is bool and reduction != "none":
                continue
            half = dtype is np.float16
            for index in ((np.int32, np.int64)[TURN[0] % 2],):
                TURN[0] += 1
                for shape, size, axis in (
                    ((5, 7), (3, 7), 0),
                    ((5, 7), (5, 11), 1),
                    ((13,), (37,), 0),
                    ((3, 5, 2), (2, 7, 1), 1),
                    ((5, 3), (0, 3), 0),
                    ((2, 3, 1, 7), (2, 3, 5, 6), -2),
                )[TURN[0] % 2 :: 2]:
                    x, u = number(shape, dtype, 3), number(size, dtype, 4)
                    if reduction == "mul" and u.dtype.kind == "f":
                        u = np.array(u / 64, dtype)
                    n = shape[axis]
                    i = ((np.arange(u.size) * 29 + 7) % (2 * n) - n).astype(index).reshape(size)
                    legal = scattered(
                        x,
                        [
                            (
                                tuple(wrapped(int(i[p]), n) if d == axis % len(shape) else c for d, c in enumerate(p)),
                                u[p],
                            )
                            for p in np.ndindex(size)
                        ],
                        reduction,
                    )
                    # Several for one place: ONNX Runtime says nothing of their order where they replace each other.
                    asked = u.size and reduction != "none" and not half and x.dtype.kind != "b"
                    ours = (
                        ops.onnx_of("ScatterElements", {"x": x, "i": i, "u": u}, dtype, axis=axis, reduction=reduction)
                        if asked
                        else None
                    )
                    words = f' {{axis = {axis}, reduction = "{reduction}"}}'
                    archive.add(
                        "ScatterElements",
                        ["ScatterElements(%0, %1, %2)" + words],
                        {"x": x, "i": i, "u": u},
                        legal,
                        8e-4 if half and rtol else rtol,
                        atol,
                        ours=ours,
                    )
                    far = i.copy().reshape(-1)
                    far[::3] += 2 * n
                    far[1::5] -= 2 * n
                    far = far.reshape(size)
                    kept = [
                        (tuple(wrapped(int(far[p]), n) if d == axis % len(shape) else c for d, c in enumerate(p)), u[p])
                        for p in np.ndindex(size)
                        if -n <= far[p] < n
                    ]
                    archive.add(
                        "ScatterElements",
                        ["ScatterElements(%0, %1, %2)" + words],
                        {"x": x, "i": far, "u": u},
                        scattered(x, kept, reduction),
                        8e-4 if half and rtol else rtol,
                        atol,
                    )
                for shape, places, depth in (
                    ((5, 7), (3,), 1),
                    ((5, 7, 3), (2, 11), 2),
                    ((13,), (41,), 1),
                    ((2, 3, 5), (), 3),
                    ((5, 2), (0,), 1),
                )[TURN[0] % 2 :: 2]:
                    x = number(shape, dtype, 5)
                    i = np.stack(
                        [
                            ((np.arange(int(np.prod(places))) * 31 + 5 * d) % (2 * shape[d]) - shape[d]).reshape(places)
                            for d in range(depth)
                        ],
                        -1,
                    ).astype(index)
                    u = number(places + shape[depth:], dtype, 6)
                    if reduction == "mul" and u.dtype.kind == "f":
                        u = np.array(u / 64, dtype)
                    for drop in (False, True):
                        if drop:
                            i = i.copy()
                            i.reshape(-1)[::4] += 3 * max(shape)
                        kept = [
                            (tuple(wrapped(int(v), n) for v, n in zip(i[p], shape)), u[p])
                            for p in np.ndindex(places)
                            if all(-n <= v < n for v, n in zip(i[p], shape))
                        ]
                        asked = u.size and not drop and reduction != "none" and not half and x.dtype.kind != "b"
                        ours = (
                            ops.onnx_of(
                                "ScatterND", {"x": x, "i": i.astype(np.int64), "u": u}, dtype, reduction=reduction
                            )
                            if asked
                            else None
                        )
                        archive.add(
                            "ScatterND",
                            [f'ScatterND(%0, %1, %2) {{reduction = "{reduction}"}}'],
                            {"x": x, "i": i, "u": u},
                            scattered(x, kept, reduction),
                            8e-4 if half and rtol else rtol,
                            atol,
                            ours=ours,
                        )
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.uint16, np.int64):
        for size, rows in (((17, 5), 7), ((41,), 3), ((3, 2, 5), 11), ((0, 3), 2), ((5, 3), 0)):
            u = number(size, dtype, 7)
            i = ((np.arange(size[0]) * 13) % (3 * rows + 1) - rows).astype(np.int64)
            y = np.zeros((rows,) + size[1:], np.float64 if u.dtype.kind == "f" else dtype)
            kept = [wrapped(int(v), rows) for v in i]
            good = [k for k, v in enumerate(i) if -rows <= v < rows]
            np.add.at(y, [kept[k] for k in good], u[good])
            archive.add(
                "ScatterAdd",
                [f"ScatterAdd(%0, %1) {{rows = {rows}}}"],
                {"u": u, "i": i},
                y.astype(dtype),
                1e-3 if dtype is np.float16 else 2e-6,
                1e-5,
            )
    # NaN and infinities reach what they join, and nothing else.
    x = np.array([1, np.nan, np.inf, -np.inf, 0, 5], np.float32)
    u = np.array([np.nan, 1, -np.inf, 2, np.nan, np.inf], np.float32)
    i = np.array([0, 1, 2, 3, 77, 5], np.int32)
    for reduction in ("none", "add", "mul", "max", "min"):
        y = scattered(x, [((int(k),), v) for k, v in zip(i, u) if k < 6], reduction)
        archive.add(
            "ScatterElements",
            [f'ScatterElements(%0, %1, %2) {{reduction = "{reduction}"}}'],
            {"x": x, "i": i, "u": u},
            y,
            0,
        )


def kernel(x, mode, a=-0.75):
    x = np.abs(x)
    if mode == "linear":
        return np.maximum(0, 1 - x)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def weights(size, out, mode, coordinate, nearest, antialias):
    """A matrix [out, size] of what each element has of each."""
    o = np.arange(out, dtype=np.float64)
    half = (o + 0.5) * size / out - 0.5
    at = {
        "half_pixel": half,
        "asymmetric": o * size / out,
        "pytorch_half_pixel": half if out > 1 else o * 0,
        "align_corners": o * (size - 1) / max(1, out - 1),
    }[coordinate]
    w = np.zeros((out, size))
    if mode == "nearest":
        pick = {
            "floor": np.floor(at),
            "ceil": np.ceil(at),
            "round_prefer_floor": np.ceil(at - 0.5),
            "round_prefer_ceil": np.floor(at + 0.5),
        }[nearest]
        w[np.arange(out), np.clip(pick, 0, size - 1).astype(int)] = 1
        return w
    shrink = out / size if antialias and out < size else 1.0
    reach = 3 + int(2 / shrink)
    for i in range(-reach, size + reach):
        w[:, min(max(i, 0), size - 1)] += kernel((at - i) * shrink, mode)
    return w / w.sum(1, keepdims=True) if shrink < 1 else w


def resizes(archive, ops):
    rows = [
        ((2, 3, 5, 7), (11, 4)),
        ((1, 2, 13, 3), (5, 3)),
        ((1, 1, 4, 5), (8, 10)),
        ((2, 1, 7, 1), (1, 5)),
        ((1, 1, 37, 29), (3, 4)),
    ]
    for turn, (shape, sizes) in enumerate(rows):
        for mode in ("nearest", "linear", "cubic"):
            for coordinate in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
                for antialias in (False, True) if mode != "nearest" and coordinate == "half_pixel" else (False,):
                    nearest = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")[turn % 4]
                    dtype = (np.float32, np.float64, np.int32)[turn % 3] if mode == "nearest" else np.float32
                    x = number(shape, dtype, turn)
                    matrices = [weights(n, m, mode, coordinate, nearest, antialias) for n, m in zip(shape[2:], sizes)]
                    y = np.einsum("nchw,ph,qw->ncpq", x.astype(np.float64), *matrices)
                    more = {"antialias": 1} if antialias else {}
                    ours = ops.onnx_of(
                        "Resize",
                        {"x": x},
                        dtype,
                        {
                            "roi": np.zeros(0, np.float32),
                            "s": np.zeros(0, np.float32),
                            "z": np.array(shape[:2] + sizes, np.int64),
                        },
                        mode=mode,
                        coordinate_transformation_mode=coordinate,
                        nearest_mode=nearest,
                        **more,
                    )
                    text = ops.attributes_text({"axes": [2, 3], "sizes": list(sizes), "antialias": antialias})[:-1]
                    text += f', mode = "{mode}", coordinate = "{coordinate}", nearest_mode = "{nearest}"}}'
                    archive.add(
                        "Resize",
                        [f"Resize(%0){text}"],
                        {"x": x},
                        y.astype(dtype),
                        0 if mode == "nearest" else 1e-5,
                        0 if mode == "nearest" else 1e-4,
                        ours=ours,
                    )
    x = np.array([[1, np.nan, np.inf, 2, 3, -np.inf, 5]], np.float32)
    archive.add(
        "Resize",
        ["Resize(%0) {axes = [1], sizes = [13]}"],
        {"x": x},
        x[:, weights(7, 13, "nearest", "half_pixel", "round_prefer_floor", False).argmax(1)],
        0,
    )


def record(archive, ops):
    resizes(archive, ops)
    pads(archive, ops)
    slices(archive, ops)
    scatters(archive, ops)
