"""Models in other formats: quantising, perplexity, divergence."""
import math

import pytest

import quern

TEXT = "".join(f"{a}+{b}={a + b}\n" for a in range(20) for b in range(9))


def test_quantise(addition, tmp_path):
    assert "Q4_0" in quern.quantise_types()
    formats = quern.quantise(addition, tmp_path / "small.gguf", "Q8_0")
    changed = {before for before, after in formats.values() if after == "Q8_0"}
    assert changed and "Q8_0" not in changed and formats["output_norm.weight"][0] == formats["output_norm.weight"][1]
    assert "".join(quern.Session(tmp_path / "small.gguf", threads=1, context=64).generate("27+58=")) == "85"
    for wrong in ({"type": "Q9"}, {"importance": tmp_path / "none.gguf"}):
        with pytest.raises(quern.QuernError):
            quern.quantise(addition, tmp_path / "other.gguf", **wrong)
    assert not (tmp_path / "other.gguf").exists()


def test_perplexity(addition, tmp_path):
    alone = quern.perplexity(addition, TEXT, context=48, chunks=3, threads=1)
    assert alone.divergence is None and alone.tokens == 3 * 23 and (alone.chunks, alone.chunk_size) == (3, 48)
    assert alone.perplexity == pytest.approx(math.exp(alone.nll), rel=1e-12)
    quern.quantise(addition, tmp_path / "small.gguf", "Q4_0")
    lost = quern.perplexity(tmp_path / "small.gguf", TEXT, base=addition, context=48, chunks=3, threads=1)
    assert lost.divergence.base_perplexity == pytest.approx(alone.perplexity, rel=1e-12)
    assert 0 < lost.divergence.mean < lost.divergence.largest and 0 < lost.divergence.same_top <= 1
    itself = quern.perplexity(addition, TEXT, base=addition, context=48, chunks=1, threads=1)
    assert itself.divergence.mean == 0 and itself.divergence.same_top == 1
    for wrong, code in (({"text": "1+2=3"}, "invalid"), ({"text": TEXT, "base": "no.gguf"}, "resource")):
        with pytest.raises(quern.QuernError) as error:
            quern.perplexity(addition, **{"context": 48, **wrong})
        assert error.value.code == code
