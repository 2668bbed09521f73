"""Arrays in and out: where they are read and written in place, and where not."""
import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

import quern


def add_one(type_="f32[N, 5]"):
    g = quern.Graph()
    g.symbol("N", 1, 1 << 20)
    x = g.input("x", type_)
    g.output("y", x + 1)
    return g.compile(threads=1)


def test_dense_arrays_are_read_in_place():
    a = np.ones((3, 5), "f4")
    for array in (a, a[1:], a.reshape(5, 3).reshape(3, 5)):
        assert quern.graph.arrays.take(array).data.ctypes.data == array.ctypes.data
    strided = np.ones((3, 10), "f4")[:, ::2]
    assert quern.graph.arrays.take(strided).data.ctypes.data != strided.ctypes.data
    np.testing.assert_array_equal(add_one()(strided), strided + 1)
    np.testing.assert_array_equal(add_one()(np.asfortranarray(np.arange(15, dtype="f4").reshape(3, 5))),
                                  np.arange(15).reshape(3, 5) + 1)
    np.testing.assert_array_equal(add_one()(np.ones((3, 5), ">f4")), np.full((3, 5), 2))
    odd = np.zeros(3 * 5 * 4 + 1, "u1")[1:].view("f4").reshape(3, 5)  # not aligned to its elements
    np.testing.assert_array_equal(add_one()(odd), np.ones((3, 5)))


def test_outputs_in_memory_of_the_callers():
    a, out = np.ones((3, 5), "f4"), np.zeros((3, 5), "f4")
    result = add_one()(a, out={"y": out})
    assert result is out and (out == 2).all()
    read_only = np.zeros((3, 5), "f4")
    read_only.flags.writeable = False
    for wrong in (read_only, np.zeros((3, 10), "f4")[:, ::2], np.zeros((3, 5), "f8"), np.zeros((3, 4), "f4")):
        before = wrong.copy()
        with pytest.raises(quern.QuernError) as error:
            add_one()(a, out={"y": wrong})
        assert error.value.code in ("invalid", "dtype_mismatch", "shape_mismatch")
        np.testing.assert_array_equal(wrong, before)
    with pytest.raises(quern.QuernError):
        add_one()(a, out={"y": a})  # overlaps
    with pytest.raises(quern.QuernError):
        add_one()(a, out={"y": [0.0] * 15})


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_dtypes(dtype):
    a = np.arange(15).reshape(3, 5).astype(dtype)
    got = add_one(f"{quern.graph.arrays.dtype_name(a.dtype)}[N, 5]")(a)
    assert got.dtype == a.dtype
    np.testing.assert_array_equal(got, a + 1)


def test_bools_and_scalars():
    g = quern.Graph()
    x = g.input("x", "bool[]")
    g.output("y", ~x)
    got = g.compile(threads=1)(np.asarray(True))
    assert got.dtype == bool and got.shape == () and not got


def test_bf16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.arange(15).reshape(3, 5).astype(ml_dtypes.bfloat16)
    got = add_one("bf16[N, 5]")(a)
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got.astype("f4"), a.astype("f4") + 1)
    out = np.zeros((3, 5), ml_dtypes.bfloat16)
    add_one("bf16[N, 5]")(a, out={"y": out})
    np.testing.assert_array_equal(out.astype("f4"), a.astype("f4") + 1)


class OnlyDLPack:
    """What another library's array is to us."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    a = np.arange(15, dtype="f4").reshape(3, 5)
    taken = quern.graph.arrays.take(OnlyDLPack(a))
    assert taken.data.ctypes.data == a.ctypes.data and taken.dtype == "f32"
    np.testing.assert_array_equal(add_one()(OnlyDLPack(a)), a + 1)
    np.testing.assert_array_equal(add_one()(OnlyDLPack(a.T.copy().T)), a + 1)
    np.testing.assert_array_equal(np.from_dlpack(add_one()(a)), a + 1)
    # What it was given stays alive for as long as someone looks at it, and no longer.
    owner = np.arange(15, dtype="f4").reshape(3, 5)
    gone = weakref.ref(owner)
    taken = quern.graph.arrays.take(OnlyDLPack(owner))
    del owner
    gc.collect()
    assert taken.data[2, 4] == 14 and gone() is not None
    del taken
    gc.collect()
    assert gone() is None


def test_weights_are_kept_and_not_copied():
    w = np.ones((64, 64), "f4")
    g = quern.Graph()
    x = g.input("x", "f32[1, 64]")
    g.output("y", x @ w)
    program = g.compile(threads=1)
    gone = weakref.ref(w)
    del w, g, x
    gc.collect()
    np.testing.assert_array_equal(program(np.ones((1, 64), "f4")), np.full((1, 64), 64))
    assert gone() is not None
    del program
    gc.collect()
    assert gone() is None


def endless():
    """A graph that counts to 2^40, one trip after another: hours."""
    g, condition, body = quern.Graph("endless"), quern.Graph("cond"), quern.Graph("body")
    condition.output("go", condition.input("n", "i64[]") < (1 << 40))
    body.output("n", body.input("n", "i64[]") + 1)
    g.output("n", quern.while_(g.input("n", "i64[]"), cond=condition, body=body))
    return g.compile(threads=1)


def test_ctrl_c_stops_a_run():
    program = endless()
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        program(np.asarray(0, "i8"))
    timer.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert program(np.asarray(1 << 40, "i8")) == 1 << 40  # it runs again


def test_ctrl_c_with_a_handler_of_the_programs_own():
    program, heard = endless(), []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(quern.QuernError) as error:
            program(np.asarray(0, "i8"))
        timer.join()
        assert error.value.code == "cancelled" and heard == [1]
        assert program(np.asarray(1 << 40, "i8")) == 1 << 40
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_leaves_the_gil_and_is_cancelled():
    program = endless()
    caught = []

    def work():
        try:
            program(np.asarray(0, "i8"))
        except quern.QuernError as error:
            caught.append(error.code)
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)
    with pytest.raises(quern.QuernError) as error:  # we are here: the GIL is ours
        program(np.asarray(0, "i8"))
    assert error.value.code == "busy"
    program.cancel()
    thread.join()
    assert caught == ["cancelled"]
    program.uncancel()
    assert program(np.asarray(1 << 40, "i8")) == 1 << 40


def test_profile():
    program = add_one()
    profile = program.profile()
    profile.phase("first")
    program(np.ones((3, 5), "f4"))
    assert "first" in str(profile) and profile.json()["sections"] and "traceEvents" in profile.trace()
    assert "<html" in profile.html() and "<iframe" in profile._repr_html_()
    profile.clear()
    again = program.profile()
    with pytest.raises(quern.QuernError):
        profile.table()
    program(np.ones((3, 5), "f4"))
    assert "run" in again.table(top=1)
    assert program.counters["launches"] >= 1
