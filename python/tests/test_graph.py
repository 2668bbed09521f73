"""Graphs by operators on values, against numpy."""
import numpy as np
import pytest

import quern


def run(build, *arrays, **options):
    """The result of a function of values, built into a graph and run on these arrays."""
    g = quern.Graph("test")
    values = [g.input(f"x{i}", quern.graph.arrays.take(a).type) for i, a in enumerate(arrays)]
    result = build(*values)
    for i, value in enumerate(result if isinstance(result, tuple) else (result,)):
        g.output(f"y{i}", value)
    return g.compile(threads=1, **options)(*arrays)


BINARY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_operators(name, dtype, rng):
    op = BINARY[name]
    a = rng.integers(-9, 9, (5, 7)).astype(dtype)
    b = rng.integers(1, 9, (7,)).astype(dtype) * rng.choice([-1, 1], 7).astype(dtype)
    expected = op(a, b)
    got = run(op, a, b)
    if name == "/" and dtype[0] == "i":  # numpy divides whole numbers in f64, this in f32
        expected = expected.astype("f4")
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    # A number on either side has the dtype of the value.
    np.testing.assert_allclose(run(lambda x: op(x, 3), a), op(a, np.asarray(3, dtype)), rtol=1e-6)
    np.testing.assert_allclose(run(lambda x: op(7, x), b), op(np.asarray(7, dtype), b), rtol=1e-6)


def test_unary_power_and_bits(rng):
    a = rng.standard_normal((3, 5)).astype("f4")
    np.testing.assert_array_equal(run(lambda x: -x, a), -a)
    np.testing.assert_array_equal(run(abs, a), abs(a))
    np.testing.assert_allclose(run(lambda x: abs(x) ** 1.5, a), abs(a) ** 1.5, rtol=1e-5)
    np.testing.assert_allclose(run(lambda x: 2 ** x, a), 2 ** a, rtol=1e-5)
    i, j = rng.integers(0, 99, (2, 11)).astype("i4")
    for op in (lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y):
        np.testing.assert_array_equal(run(op, i, j), op(i, j))
    np.testing.assert_array_equal(run(lambda x: ~x, i), ~i)
    np.testing.assert_array_equal(run(lambda x: ~(x > 0), a), ~(a > 0))
    np.testing.assert_array_equal(run(lambda x: (x << 2) >> 1, i), (i << 2) >> 1)


def test_dtypes_are_promoted(rng):
    a, b = rng.integers(0, 9, 7).astype("i4"), rng.standard_normal(7).astype("f4")
    np.testing.assert_allclose(run(lambda x, y: x + y, a, b), a + b, rtol=1e-6)
    np.testing.assert_allclose(run(lambda x: x * 0.5, a), a * 0.5, rtol=1e-6)
    assert run(lambda x: x * 0.5, a).dtype == np.float32
    assert run(lambda x: x + 1, b.astype("f2")).dtype == np.float16


def test_matmul_with_weights(rng):
    x, w = rng.standard_normal((5, 37)).astype("f4"), rng.standard_normal((37, 41)).astype("f4")
    np.testing.assert_allclose(run(lambda a: a @ w, x), x @ w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(run(lambda a, b: a @ b, x, w), x @ w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(run(lambda a: x @ a, w), x @ w, rtol=1e-4, atol=1e-4)


KEYS = [np.s_[1], np.s_[-1], np.s_[2:5], np.s_[:, 1:], np.s_[..., ::2], np.s_[::-1], np.s_[4:0:-2, 3], np.s_[None],
        np.s_[1:3, None, ..., -2], np.s_[:, :, 5], np.s_[3:3], np.s_[..., -4:-1], np.s_[0, 0, 0],
        np.s_[2:5:-1], np.s_[:, 4:2, ::-2], np.s_[7:], np.s_[..., -12:-20:-1]]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indices(key, rng):
    a = rng.standard_normal((7, 5, 11)).astype("f4")
    np.testing.assert_array_equal(run(lambda x: x[key], a), a[key])


def test_indices_of_nothing(rng):
    a = rng.standard_normal((7, 5)).astype("f4")
    for key in (np.s_[::-1], np.s_[:, -2::-1], np.s_[:0:-1, ::2]):
        np.testing.assert_array_equal(run(lambda x: x[3:3][key], a), a[3:3][key])


def test_powers_of_whole_numbers(rng):
    for dtype in ("i8", "i4", "u1"):
        a = rng.integers(0 if dtype == "u1" else -5, 6, (3, 7)).astype(dtype)
        for exponent in (0, 1, 2, 3, 6):
            np.testing.assert_array_equal(run(lambda x: x ** exponent, a), a ** exponent)
    with pytest.raises(quern.QuernError, match="to the power of -1"):
        run(lambda x: x ** -1, a)


def test_indices_of_sizes_that_a_run_chooses(rng):
    g = quern.Graph()
    g.symbol("N", 3, 64)
    x = g.input("x", "f32[N, 5]")
    for name, value in (("last", x[-1]), ("tail", x[1:]), ("inner", x[1:-1, 2]), ("all", x[:, None])):
        g.output(name, value)
    program = g.compile(threads=1)
    for n in (3, 8, 17):
        a = rng.standard_normal((n, 5)).astype("f4")
        for got, expected in zip(program(a), (a[-1], a[1:], a[1:-1, 2], a[:, None])):
            np.testing.assert_array_equal(got, expected)
    with pytest.raises(quern.QuernError) as error:
        x[::-1]
    assert error.value.code == "unsupported"


def test_methods(rng):
    a = rng.standard_normal((3, 5, 7)).astype("f4")
    for op in (lambda x: x.reshape(15, 7), lambda x: x.reshape((-1, 5)), lambda x: x.transpose(2, 0, 1), lambda x: x.T):
        np.testing.assert_array_equal(run(op, a), op(a))
    for op in (lambda x: x.sum(), lambda x: x.mean(1), lambda x: x.max((0, 2)), lambda x: x.min(-1, keepdims=True),
               lambda x: x.prod(axis=0)):
        np.testing.assert_allclose(run(op, a), op(a), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(run(lambda x: x.astype("i32"), a), a.astype("i4"))
    np.testing.assert_array_equal(run(lambda x: x.astype(np.float16), a), a.astype("f2"))


def test_every_op_is_a_function():
    table = {info.name for info in quern._quern.op_table()}
    assert len(table) > 200 and len(quern.ops.__all__) == len(table)
    for name in quern.ops.__all__:
        function = getattr(quern, name)
        assert function.__doc__ and function.__annotations__["label"] == "str", name
    assert {"silu", "mat_mul", "softmax", "if_", "not_", "where", "layer_norm"} <= set(quern.ops.__all__)
    assert {"linear", "swi_glu", "rms_norm"} <= set(quern.blocks.__all__)


def test_functions_and_blocks(rng):
    x, w = rng.standard_normal((5, 24)).astype("f4"), rng.standard_normal((24, 17)).astype("f4")
    bias = rng.standard_normal(17).astype("f4")
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(run(lambda a: quern.softmax(a, axis=-1), x), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(run(lambda a: quern.blocks.linear(a, w, bias, act="Relu", bias=True), x),
                               np.maximum(x @ w + bias, 0), rtol=1e-4, atol=1e-4)
    values, places = run(lambda a: quern.top_k(a, k=3), x)
    np.testing.assert_allclose(values, -np.sort(-x, 1)[:, :3])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)
    np.testing.assert_array_equal(run(lambda a: quern.concat(a, a * 2, axis=1), x), np.concatenate([x, x * 2], 1))
    np.testing.assert_array_equal(run(lambda a: quern.where(a > 0, a, 0.0), x), np.where(x > 0, x, 0))
    np.testing.assert_array_equal(run(lambda a: a + quern.iota(shape=(5, 24), axis=1, dtype="f32", graph=a.graph), x),
                                  x + np.arange(24, dtype="f4"))


def test_control_flow(rng):
    then, other = quern.Graph("then"), quern.Graph("else")
    a = then.input("a", "f32[7]")
    then.output("y", a * 2)
    b = other.input("b", "f32[7]")
    other.output("y", -b)
    x = rng.standard_normal(7).astype("f4")
    branch = lambda p, v: quern.if_(p, v, then=then, else_=other)  # noqa: E731
    np.testing.assert_array_equal(run(branch, np.asarray(True), x), x * 2)
    np.testing.assert_array_equal(run(branch, np.asarray(False), x), -x)


def test_state():
    g = quern.Graph()
    total = g.input("total", "f32[3]")
    x = g.input("x", "f32[3]")
    g.carry("total", total + x)
    g.output("y", total + x)
    program = g.compile(threads=1)
    one = np.ones(3, "f4")
    assert [p.name for p in program.inputs] == ["x"] and [p.name for p in program.states] == ["total"]
    program(one)
    np.testing.assert_array_equal(program(one), [2, 2, 2])
    program.state("total")[:] = 5
    np.testing.assert_array_equal(program(one), [6, 6, 6])
    program.reset_state()
    np.testing.assert_array_equal(program(one), [1, 1, 1])


def test_text_and_bytes():
    g = quern.Graph("there")
    x = g.input("x", "f32[3]")
    g.output("0", quern.relu(x))
    a = np.asarray([-1, 0, 2], "f4")
    for copy in (quern.Graph.parse(g.text()), quern.Graph.from_binary(g.binary())):
        assert copy.fingerprint() == g.fingerprint()
        np.testing.assert_array_equal(copy.compile(threads=1)(a), [0, 0, 2])
    assert "relu" in g.dump("kir").lower()


def test_errors_say_what_and_where():
    g = quern.Graph("ffn")
    x = g.input("x", "f32[3, 5]")
    with pytest.raises(quern.QuernError) as error:
        quern.mat_mul(x, np.ones((7, 11), "f4"), label="layer.0/up")
    e = error.value
    assert e.code == "shape_mismatch" and e.op == "MatMul" and e.where == "layer.0/up" and "7" in e.got, vars(e)
    with pytest.raises(quern.QuernError) as error:
        quern.apply("Softmx", [x])
    assert error.value.code == "unknown_op" and error.value.suggestion == "Softmax"
    with pytest.raises(quern.QuernError) as error:
        quern.softmax(x, axis=9)
    assert error.value.code == "bad_attribute"
    with pytest.raises(quern.QuernError):
        g.input("x", "f32[3")
    with pytest.raises(quern.QuernError) as error:
        x + quern.Graph("other").input("x", "f32[3, 5]")
    assert error.value.code == "unknown_operand"
    with pytest.raises(TypeError):
        quern.silu(np.ones(3, "f4"))
    with pytest.raises(TypeError):
        bool(x > 0)
    with pytest.raises(TypeError):
        g.compile(thread=1)
    g.output("y", quern.silu(x))  # none of that is in the way
    assert g.compile(threads=1)(np.ones((3, 5), "f4")).shape == (3, 5)
    import copy
    import pickle
    again = pickle.loads(pickle.dumps(e))
    assert vars(again) == vars(e) and str(again) == str(e) and copy.copy(e).code == e.code


def test_runs_check_what_they_are_given():
    g = quern.Graph("ffn")
    g.symbol("N", 1, 8)
    x = g.input("x", "f32[N, 5]")
    g.output("y", x + 1)
    program = g.compile(threads=1)
    for arrays, code in (({"x": np.ones((3, 4), "f4")}, "shape_mismatch"),
                         ({"x": np.ones((9, 5), "f4")}, "out_of_range"),
                         ({"x": np.ones((3, 5), "f8")}, "dtype_mismatch"), ({}, "missing"),
                         ({"z": np.ones((3, 5), "f4")}, "unknown_name")):
        with pytest.raises(quern.QuernError) as error:
            program.run(arrays)
        assert error.value.code == code
    with pytest.raises(TypeError):
        program(np.ones((3, 5), "f4"), np.ones((3, 5), "f4"))
    with pytest.raises(quern.QuernError):
        program(np.asarray([object()]))
    with pytest.raises(quern.QuernError) as error:
        program.run({"x": np.ones((3, 5), "f4")}, {"z": np.ones(3, "f4")})
    assert error.value.code == "unknown_name"
