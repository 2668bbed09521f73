"""What the tests share. Failures print the seed; QUERN_SOURCE is the checkout, for models and examples."""
import os
import pathlib
import signal
import threading

import numpy as np
import pytest

os.environ.setdefault("QUERN_CACHE", "off")
# Who is started in the background of a shell ignores interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

import quern  # noqa: E402

SEED = int(os.environ.get("QUERN_TEST_SEED", "20261124"))


@pytest.fixture
def rng(request):
    print(f"seed {SEED}")
    return np.random.default_rng(SEED)


@pytest.fixture(scope="session")
def source():
    return pathlib.Path(os.environ.get("QUERN_SOURCE", pathlib.Path(__file__).parents[2]))


@pytest.fixture(scope="session")
def addition(source):
    return source / "models" / "addition.gguf"


@pytest.fixture(scope="session")
def models(source):
    """Models that are too large for the checkout."""
    folder = source.parent / "shared" / "models"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder


@pytest.fixture(scope="session")
def onnx_node():
    """The model of one op, of ONNX's own test data."""
    folder = pathlib.Path("/usr/share/libonnx-testdata/data/node")
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return lambda name: folder / name


@pytest.fixture
def two_at_once():
    """Calls a function many times in each of two threads; the codes of its errors."""
    def run(function):
        codes, go = set(), threading.Barrier(2)

        def work():
            go.wait()
            for _ in range(20):
                try:
                    function()
                except quern.QuernError as error:
                    codes.add(error.code)
        threads = [threading.Thread(target=work) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return codes
    return run
