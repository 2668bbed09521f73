"""Many texts in one model: each as it is alone, and what is asked wrongly."""

import numpy as np
import pytest

import quern

QUESTIONS = ["27+58=", "6+7=", "99+1=", "40+2=", "3+4="]
ANSWERS = ["85", "13", "100", "42", "7"]


@pytest.fixture(scope="module")
def model(addition):
    return quern.Sequences(addition, most=3, threads=1, context=64)


def test_many_texts_are_each_as_alone(addition, model):
    session = quern.Session(addition, threads=1, context=64)
    ids = [model.tokenizer.encode(q) for q in QUESTIONS[:3]]
    a, b, c = (model.add() for _ in range(3))
    rows = model.step({a: ids[0], b: ids[1][:2]})
    rows = {**rows, **model.step({b: ids[1][2:], c: ids[2]})}  # a waits, b goes on, c begins
    assert rows.keys() == {a, b, c} and [model.length(s) for s in (a, b, c)] == [len(i) for i in ids]
    for sequence, own in zip((a, b, c), ids):
        session.reset()
        alone = session.step(own)
        assert rows[sequence].shape == (model.vocabulary,) and rows[sequence].dtype == np.float32
        np.testing.assert_allclose(rows[sequence], alone, rtol=1e-3, atol=1e-3)
    assert model.step({a: [ids[0][0]], b: [ids[1][0]]}, logits=[b]).keys() == {b}
    with pytest.raises(quern.QuernError) as error:
        model.add()
    assert error.value.code == "resource"
    for sequence in (a, b, c):
        model.remove(sequence)
    assert model.length(a) == -1 and model.steps > 0 and model.context == 64 and model.room == 3 * 64


def test_fork_truncate_save(model):
    ids = model.tokenizer.encode("27+58=")
    a = model.add()
    first = model.step({a: ids})[a]
    b = model.fork(a)
    assert model.length(b) == len(ids)
    model.truncate(b, len(ids) - 1)
    np.testing.assert_allclose(model.step({b: ids[-1:]})[b], first, rtol=1e-3, atol=1e-3)
    saved = model.save(a)
    model.remove(a)
    c = model.load(saved)
    assert model.length(c) == len(ids) and int(model.step({c: [int(first.argmax())]})[c].argmax()) != first.argmax()
    with pytest.raises(quern.QuernError) as error:
        model.load(saved[:-1])
    assert error.value.code == "invalid"
    model.remove(b)
    model.remove(c)


def test_generate_takes_more_prompts_than_sequences(model):
    texts = [""] * len(QUESTIONS)
    for index, piece in model.generate(QUESTIONS):
        texts[index] += piece
    assert texts == ANSWERS
    assert dict(model.generate(QUESTIONS[:2], max_tokens=1)) == {0: "8", 1: "1"}
    assert dict(model.generate(QUESTIONS[:1], stop=["5"])) == {0: "8"}
    running = model.generate(QUESTIONS)  # one that is given up leaves no sequence behind
    next(running)
    running.close()
    assert [model.length(s) for s in range(3)] == [-1] * 3


def test_mistakes(addition, model):
    a = model.add()
    cases = [({a: []}, "invalid"), ({a: [10 ** 6]}, "invalid"), ({a + 1: [1]}, "unknown_name"),
             ({a: [1] * 65}, "out_of_range")]
    for ids, code in cases:
        with pytest.raises(quern.QuernError) as error:
            model.step(ids)
        assert error.value.code == code, ids
        assert model.length(a) == 0
    for call in (lambda: model.fork(9), lambda: model.truncate(9, 0), lambda: model.remove(9), lambda: model.save(9)):
        with pytest.raises(quern.QuernError) as error:
            call()
        assert error.value.code == "unknown_name"
    with pytest.raises(ValueError):
        model.step({a: [1]}, logits=[9])
    with pytest.raises(quern.QuernError):
        quern.Sequences(addition, most=0)
    with pytest.raises(TypeError):
        quern.Sequences(addition, heat=1)
    model.remove(a)


def test_cancel_and_one_thread_at_a_time(addition, two_at_once):
    model = quern.Sequences(addition, most=2, threads=1, context=4096)
    ids = model.tokenizer.encode("1+2=") * 200
    model.cancel()
    with pytest.raises(quern.QuernError) as error:
        model.step({model.add(): ids})
    assert error.value.code == "cancelled"
    model.uncancel()
    own = model.add()

    def work():
        model.truncate(own, 0)
        model.step({own: ids})
    assert two_at_once(work) <= {"busy"}
