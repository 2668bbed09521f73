"""Functions of arrays as programs."""
import numpy as np
import pytest

import quern


def test_a_function(rng):
    w = rng.standard_normal((48, 80)).astype("f4")

    @quern.jit(threads=1)
    def f(x, scale=2.0):
        """Doc."""
        return quern.silu(x @ w) * scale

    assert f.__name__ == "f" and f.__doc__ == "Doc."
    x = rng.standard_normal((3, 48)).astype("f4")
    h = x @ w
    np.testing.assert_allclose(f(x), 2 * h / (1 + np.exp(-h)), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(f(x, scale=3.0), 3 * h / (1 + np.exp(-h)), rtol=1e-4, atol=1e-4)
    assert f.program(x) is f.program(x + 1) and f.program(x) is not f.program(x, 3.0)
    assert f.program(x) is not f.program(x[:2])
    assert "silu" in f.graph(x).dump("mir").lower()


def test_arrays_in_containers_go_in_and_out(rng):
    a, b = rng.standard_normal((2, 5)).astype("f4")

    @quern.jit(threads=1)
    def f(params, *more, flip=False):
        total = params["a"] + params["b"][0]
        for m in more:
            total = total + m
        return {"sum": total, "both": (total * 2, [-total if flip else total])}

    got = f({"a": a, "b": [b]}, a, b, flip=True)
    np.testing.assert_allclose(got["sum"], 2 * a + 2 * b, rtol=1e-5, atol=1e-6)
    assert isinstance(got["both"], tuple) and isinstance(got["both"][1], list)
    np.testing.assert_array_equal(got["both"][1][0], -got["sum"])


def test_sizes_that_a_call_chooses(rng):
    @quern.jit(dynamic={"x": {0: "BATCH"}}, ranges={"BATCH": (1, 32)}, threads=1)
    def f(x):
        return x.sum(-1)

    for n in (1, 7, 32):
        x = rng.standard_normal((n, 13)).astype("f4")
        np.testing.assert_allclose(f(x), x.sum(-1), rtol=1e-5, atol=1e-5)
    assert len(f._programs) == 1
    with pytest.raises(quern.QuernError) as error:
        f(np.ones((33, 13), "f4"))
    assert error.value.code == "out_of_range"


def test_functions_inside_functions(rng):
    inner = quern.jit(lambda x: x * 2, threads=1)
    outer = quern.jit(lambda x: inner(x) + 1, threads=1)
    x = rng.standard_normal(5).astype("f4")
    np.testing.assert_allclose(outer(x), x * 2 + 1, rtol=1e-6)


def test_a_value_may_be_several_results_and_a_result_an_input(rng):
    x = rng.standard_normal(5).astype("f4")
    a, b, c = quern.jit(lambda x: (x, x + 1, x), threads=1)(x)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b, x + 1)
    np.testing.assert_array_equal(c, x)


def test_mistakes():
    with pytest.raises(TypeError):
        quern.jit(lambda x: 5, threads=1)(np.ones(3, "f4"))
    with pytest.raises(TypeError):
        quern.jit(lambda x: x, threads=1)()
    with pytest.raises(TypeError):
        quern.jit(lambda x: x if x > 0 else -x, threads=1)(np.ones(3, "f4"))
    with pytest.raises(quern.QuernError):
        quern.jit(lambda x, y: x + y, threads=1)(np.ones(3, "f4"), np.ones(4, "f4"))
