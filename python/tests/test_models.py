"""Models in files: generation, chat, ONNX, graphs."""
import numpy as np
import pytest

import quern


@pytest.fixture(scope="module")
def session(addition):
    return quern.Session(addition, threads=1, context=64)


def test_generation(session):
    assert "".join(session.generate("27+58=")) == "85"
    pieces = list(session.generate("27+58=", max_tokens=1))
    assert pieces == ["8"]
    assert list(session.generate("27+58=", stop=["5"])) == ["8"]
    assert "".join(session.generate("27+58=", grammar='root ::= [3-4] [0-9]'))[0] in "34"
    assert session.position > 0 and session.context == 64 and session.threads == 1
    assert session.timings["run"] > 0


def test_steps(session):
    ids = session.tokenize("27+58=")
    session.reset()
    rows = session.step_all(ids)
    assert rows.shape == (len(ids), session.vocabulary) and rows.dtype == np.float32
    session.rewind(len(ids) - 1)
    last = session.step(ids[-1:])
    np.testing.assert_allclose(last, rows[-1], rtol=1e-3, atol=1e-3)
    first = int(last.argmax())
    assert session.tokenizer.piece(first) == b"8" and session.tokenizer.decode([first]) == "8"
    saved = session.save()
    session.reset()
    session.load(saved)
    assert session.position == len(ids) and int(session.step([first]).argmax()) != first
    assert quern.Sampler().draw(last) == first
    for wrong, code in (([], "invalid"), ([10 ** 6], "invalid"), ([1] * 65, "invalid")):
        with pytest.raises(quern.QuernError) as error:
            session.step(wrong)
        assert error.value.code == code
    with pytest.raises(quern.QuernError):
        session.load(saved[:-1])
    with pytest.raises(TypeError):
        next(session.generate("1", heat=1))
    with pytest.raises(quern.QuernError, match="typical_p 2 is not a number in"):
        quern.Sampler(typical_p=2)
    assert quern.Sampler(temperature=1, top_k=1, penalty_last=3).draw(last) == first
    # What goes on with "12=3" is less likely, unless a repetition may not go over "=".
    text = session.tokenize("12=312=")
    logits = np.zeros(session.vocabulary, np.float32)
    logits[text[-4]], logits[text[-1]] = 1, 0.5
    for breakers, drawn in (([], text[-1]), (["+"], text[-1]), (["="], text[-4])):
        sampler = quern.Sampler(session.tokenizer, dry_multiplier=5, dry_breakers=breakers)
        sampler.observe(text)
        assert sampler.draw(logits) == drawn, breakers
    assert "".join(session.generate("1+1=", max_tokens=2, dry_multiplier=1))[0] == "2"


def test_adapters(addition):
    for given in (["no.gguf"], [("no.gguf", 0.5)]):
        with pytest.raises(quern.QuernError) as error:
            quern.Session(addition, lora=given)
        assert error.value.code == "resource" and "no.gguf" in str(error.value)
    with pytest.raises(quern.QuernError) as error:
        quern.Session(addition, lora=[(addition, 2)])
    assert error.value.code == "invalid" and "general.type" in str(error.value)


def test_one_thread_at_a_time(addition, two_at_once):
    session = quern.Session(addition, threads=1, context=4096)
    ids = session.tokenize("1+2=") * 200

    def work():
        session.reset()
        session.step(ids)
    assert two_at_once(work) == {"busy"}
    session.reset()
    assert int(session.step(session.tokenize("27+58=")).argmax()) == session.tokenize("8", begin=False)[-1]


def test_profile_of_a_session(session):
    profile = session.profile()
    "".join(session.generate("27+58="))
    assert "tok" in profile.table() or "run" in profile.table()
    profile.close()


def test_chat(addition):
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    chat = quern.ChatTemplate(addition, template)
    assert chat.render([{"role": "user", "content": "27+58="}])[0] == "27+58="
    with pytest.raises(quern.QuernError) as error:
        quern.ChatTemplate(addition)
    assert error.value.code == "unsupported"


def test_tokenizer(addition):
    tokenizer = quern.Tokenizer(addition)
    assert tokenizer.decode(tokenizer.encode("1+2=")) == "1+2=" and len(tokenizer) > 10
    assert tokenizer.is_end(tokenizer.end)


def test_files_that_are_not_there(tmp_path):
    for opened in (quern.Session, quern.OnnxModel, quern.load_graph, quern.Tokenizer, quern.inspect, quern.open):
        with pytest.raises(quern.QuernError) as error:
            opened(tmp_path / "nowhere")
        assert error.value.code in ("resource", "invalid") and "nowhere" in str(error.value)
    (tmp_path / "damaged.gguf").write_bytes(b"GGUF\x03\0\0\0")
    with pytest.raises(quern.QuernError) as error:
        quern.Session(tmp_path / "damaged.gguf")
    assert error.value.code == "invalid"


def test_open(addition, tmp_path, onnx_node):
    assert isinstance(quern.open(addition, threads=1), quern.Session)
    assert isinstance(quern.open(onnx_node("test_relu") / "model.onnx"), quern.OnnxModel)
    path = tmp_path / "g.qir"
    path.write_text('graph g {\n  %0 = Input() {name = "x"} : f32[3]\n  %1 = Relu(%0) : f32[3]\n  return %1\n}\n')
    np.testing.assert_array_equal(quern.open(path)(np.float32([-1, 0, 2])), [0, 0, 2])
    assert "general.architecture" in quern.inspect(addition)


@pytest.mark.parametrize("name", ["test_gemm_all_attributes", "test_softmax_axis_1", "test_conv_with_strides_padding",
                                  "test_argmax_default_axis_random", "test_nonzero_example"])
def test_onnx(name, onnx_node):
    onnx = pytest.importorskip("onnx")
    from onnx import numpy_helper
    folder = onnx_node(name)
    model = quern.OnnxModel(folder / "model.onnx", threads=1)
    assert quern.OnnxModel.not_covered(folder / "model.onnx") == []

    def read(kind):
        tensors = []
        for path in sorted((folder / "test_data_set_0").glob(f"{kind}_*.pb")):
            tensors.append(numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())))
        return tensors
    inputs = read("input")
    # What an op needs before anything runs is a constant of the model: it has no input of that name any more.
    wanted = {p.name for p in model.inputs}
    declared = [i.name for i in onnx.load(folder / "model.onnx").graph.input]
    given = {n: a for n, a in zip(declared, inputs) if n in wanted}
    got = model.run(given)
    for result, expected in zip(got.values(), read("output")):
        assert result.dtype == expected.dtype and result.shape == expected.shape
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-5)


def test_stories(models):
    session = quern.Session(models / "gguf" / "stories260K-Q8_0.gguf", threads=1)
    text = "".join(session.generate("Once upon a time", max_tokens=20))
    assert text.startswith(", there was a little")
    cold = "".join(session.generate("Once upon a time", max_tokens=20, temperature=0.8, seed=3))
    assert cold == "".join(session.generate("Once upon a time", max_tokens=20, temperature=0.8, seed=3))
