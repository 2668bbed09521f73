"""Cases of record_ops.py: any and all, the largest so far, the best k, and orders."""

import numpy as np

FLOATS = (np.float32, np.float64, np.float16)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
LINES = (
    ((5, 7), 1),
    ((5, 7), 0),
    ((2, 3, 37), -1),
    ((3, 17, 2), 1),
    ((1, 1), 0),
    ((0, 3), 1),
    ((3, 0), 1),
    ((2, 131), 1),
    ((397,), 0),
    ((331, 2), 0),
)


def values(shape, dtype, seed):
    """With many equal ones, zeros of both signs, NaN and infinities."""
    size = int(np.prod(shape))
    at = (np.arange(size, dtype=np.int64) * 2654435761 + 97 * seed) % 1000003
    if np.dtype(dtype).kind == "f":
        x = ((at % 23) - 11).astype(dtype)
        x[at % 7 == 0] = -0.0
        x[at % 31 == 1], x[at % 37 == 2], x[at % 29 == 3] = np.nan, np.inf, -np.inf
        x[at % 5 == 4] = (at[at % 5 == 4] / 1000003 - 0.5).astype(dtype)
        return x.reshape(shape)
    if np.dtype(dtype).kind == "b":
        return (at % 3 == 0).reshape(shape)
    info = np.iinfo(dtype)
    x = (at % 19).astype(dtype)
    x[at % 11 == 0], x[at % 13 == 1] = info.min, info.max
    return x.reshape(shape)


def order(x, axis, descending):
    """np.argsort(kind="stable") of the line, turned where it descends so that equal ones stay as they are."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    n = x.shape[axis]
    return np.flip(n - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


def best_so_far(x, axis):
    y, at = x.copy(), np.zeros(x.shape, np.int64)
    for line in np.ndindex(*[1 if d == axis % x.ndim else n for d, n in enumerate(x.shape)]):
        place = list(line)
        best = 0
        for i in range(x.shape[axis]):
            place[axis] = i
            held = list(line)
            held[axis] = best
            a, b = x[tuple(place)], x[tuple(held)]
            if a > b or (a != a and b == b):
                best = i
            held[axis] = best
            y[tuple(place)], at[tuple(place)] = x[tuple(held)], best
    return y, at


def record(archive, ops):
    for shape, axes in (((3, 5, 7), [0, -1]), ((2, 67), [1]), ((31, 3), [0]), ((3, 0), [1]), ((0, 3), [1])):
        for keep in (False, True):
            for share in (0.02, 0.98):
                x = (np.arange(int(np.prod(shape))) * 0.61803398 % 1 < share).reshape(shape)
                for op, function in (("any", np.any), ("all", np.all)):
                    words = ops.attributes_text({"axes": axes, "keep_dim": keep})[:-1] + f', op = "{op}"}}'
                    archive.add(
                        "Reduce",
                        [f"Reduce(%0){words}"],
                        {"x": x},
                        np.asarray(function(x, axis=tuple(axes), keepdims=keep)),
                        0,
                    )
    for turn, dtype in enumerate(FLOATS + INTEGERS + (bool,)):
        lines = LINES if dtype is np.float32 else [LINES[(turn * 3 + n) % 7] for n in range(2)] + [LINES[7 + turn % 3]]
        for shape, axis in lines:
            x = values(shape, dtype, 1)
            kind, places = ops.type_of(x), ops.type_of(np.zeros(shape, np.int64))
            both = f"{kind}, {places}"
            if dtype is not bool:
                for pick, y in enumerate(best_so_far(x, axis)):
                    archive.add("CumMax", [(f"CumMax(%0) {{axis = {axis}}}", both)], {"x": x}, y, 0, pick=pick)
            for descending in (False, True):
                at = order(x, axis, descending) if x.size else np.zeros(shape, np.int64)
                words = ops.attributes_text({"axis": axis, "descending": descending})
                for pick, y in enumerate((np.take_along_axis(x, at, axis), at)):
                    if dtype is not np.float32 and (turn + descending) % 2 != pick:
                        continue
                    archive.add("Sort", [(f"Sort(%0){words}", both)], {"x": x}, y, 0, pick=pick)
                for chosen, k in enumerate(
                    sorted(
                        {
                            min(5, x.shape[axis]),
                            0 if turn % 4 else min(1, x.shape[axis]),
                            x.shape[axis] // 2 if turn % 2 else x.shape[axis],
                        }
                    )
                ):
                    first = [slice(None)] * x.ndim
                    first[axis] = slice(0, k)
                    at_k = at[tuple(first)]
                    words = ops.attributes_text({"axis": axis, "k": k, "largest": descending})
                    types = f"{ops.type_of(np.zeros(at_k.shape, dtype))}, {ops.type_of(at_k)}"
                    clean = x.size and k and not (x.dtype.kind == "f" and np.isnan(x).any())
                    for pick, y in enumerate((np.take_along_axis(x, at_k, axis), at_k)):
                        if dtype is not np.float32 and (chosen + turn + descending) % 2 != pick:
                            continue
                        ours = (
                            ops.onnx_of(
                                "TopK",
                                {"x": x},
                                dtype,
                                {"k": np.array([k], np.int64)},
                                axis=axis,
                                largest=int(descending),
                            )
                            if clean and pick == 0
                            else None
                        )
                        archive.add("TopK", [(f"TopK(%0){words}", types)], {"x": x}, y, 0, pick=pick, ours=ours)
