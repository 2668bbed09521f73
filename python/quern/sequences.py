"""Many texts in one language model at once: continuous batching."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _quern
from .errors import QuernError
from .models import Sampler, Tokenizer
from .program import options_of


class Sequences:
    """A language model with many texts in it, each a sequence with a length of its own. One step takes tokens of as
    many as there are, prompts beside single tokens, and reads the weights once for all of them.

    >>> model = quern.Sequences("model.gguf", most=8)
    >>> a, b = model.add(), model.add()
    >>> logits = model.step({a: first_prompt, b: second_prompt})    # {a: [vocabulary], b: [vocabulary]}

    ``most``: sequences there may be at a time, 1 to 1024. ``tokens``: that there is room for, of all together; 0: most
    times the context. Other options are those of Session. Steps leave the GIL to others, and Ctrl-C stops them. For one
    thread at a time. Errors: those of Session; unsupported, an encoder, a device.
    """

    def __init__(self, path: Union[str, os.PathLike], most: int = 8, tokens: int = 0, **options: Any) -> None:
        self._sequences = _quern.Sequences.open(os.fspath(path), options_of(options), most, tokens)
        self._tokenizer: Optional[Tokenizer] = None

    @property
    def vocabulary(self) -> int:
        """Logits of a row."""
        return self._sequences.vocabulary()

    @property
    def context(self) -> int:
        """Tokens that one sequence may have."""
        return self._sequences.context()

    @property
    def room(self) -> int:
        """Tokens that new blocks of keys and values have room for."""
        return self._sequences.room()

    @property
    def steps(self) -> int:
        """Runs of the model so far; a long step is several."""
        return self._sequences.steps()

    @property
    def rewinds(self) -> bool:
        """Whether a sequence can go back to any of its tokens; where tokens carry a state on (mamba, mamba2,
        qwen3next), to none, or it stays where it is."""
        return self._sequences.rewinds()

    @property
    def tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            self._tokenizer = Tokenizer._of(self._sequences.tokenizer())
        return self._tokenizer

    def add(self) -> int:
        """A new sequence, empty; its number may be one that was used before. Error: resource, there are ``most``."""
        return self._sequences.add()

    def fork(self, sequence: int, tokens: Optional[int] = None) -> int:
        """A new sequence that begins as the first ``tokens`` (all) of another. Keys and values are shared until one of
        the two writes into them. Errors: unknown_name; out_of_range, it has fewer; resource; unsupported, a part of the
        tokens of a model that does not rewind."""
        return self._sequences.fork(sequence, self.length(sequence) if tokens is None else tokens)

    def truncate(self, sequence: int, tokens: int) -> None:
        """Takes all tokens from the ``tokens``-th on away. Errors: unknown_name; out_of_range; unsupported, as for
        fork."""
        self._sequences.truncate(sequence, tokens)

    def remove(self, sequence: int) -> None:
        """Ends a sequence. Error: unknown_name."""
        self._sequences.remove(sequence)

    def length(self, sequence: int) -> int:
        """Tokens of a sequence; -1: there is none of that number."""
        return self._sequences.length(sequence)

    def step(self, ids: Mapping[int, Sequence[int]], logits: Optional[Sequence[int]] = None) -> dict[int, np.ndarray]:
        """Gives sequences their next ids, one or more each: the logits [vocabulary] after the last of each, f32.

        ``logits``: the sequences that want them; None: all. Errors, after which nothing has changed: invalid (no ids,
        one out of range), unknown_name, out_of_range (more tokens than the context), resource (no room). After
        "cancelled", or "resource" of a compilation, ``length`` tells how far each sequence has come.
        """
        wanted = set(ids if logits is None else logits)
        unknown = wanted - set(ids)
        if unknown:
            raise ValueError(f"logits of sequences that are not in the step: {sorted(unknown)}")
        rows = self._sequences.step([(s, [int(i) for i in new], s in wanted) for s, new in ids.items()])
        return {s: row for s, row in zip(ids, rows) if s in wanted}

    def save(self, sequence: int) -> bytes:
        """The keys, values and states of a sequence. Error: unknown_name."""
        return self._sequences.save(sequence)

    def load(self, data: bytes) -> int:
        """A new sequence of what ``save`` gave, of this model. Errors: invalid, other bytes; resource."""
        return self._sequences.load(data)

    def generate(self, prompts: Sequence[str], max_tokens: Optional[int] = None, stop: Sequence[str] = (),
                 begin: bool = True, special: bool = True, **sampling: Any) -> Iterator[tuple[int, str]]:
        """Text that follows each of the prompts: ``(index of the prompt, piece)``, as they come, in whole characters.

        Prompts wait until one of the sequences that may be is free. Sampling: see Sampler; prompt n draws with
        ``seed`` + n. Errors: those of ``step``; what is under way ends, and its sequences are removed.
        """
        seed = sampling.pop("seed", None)
        grammar_of = self.tokenizer if sampling.get("grammar") else None
        waiting = list(enumerate(prompts))[::-1]
        texts: dict[int, _Text] = {}
        try:
            while waiting or texts:
                feed: dict[int, list[int]] = {}
                while waiting and (sequence := self._try_add(bool(texts))) is not None:
                    index, prompt = waiting.pop()
                    own = dict(sampling) if seed is None else dict(sampling, seed=seed + index)
                    text = texts[sequence] = _Text(index, self.tokenizer, grammar_of, stop, own)
                    text.next = self.tokenizer.encode(prompt, begin, special)
                    text.sampler.observe(text.next)
                for sequence, text in texts.items():
                    feed[sequence] = text.next
                for sequence, row in self.step(feed).items():
                    text = texts[sequence]
                    piece, ended = text.draw(row, max_tokens)
                    if ended or self.length(sequence) >= self.context:
                        piece += text.stream.flush()
                        self.remove(sequence)
                        del texts[sequence]
                    if piece:
                        yield text.index, piece
        finally:
            for sequence in texts:
                self.remove(sequence)

    def _try_add(self, others: bool) -> Optional[int]:
        """A sequence, or None where there are as many as may be and some of them will end."""
        try:
            return self.add()
        except QuernError as error:
            if error.code == "resource" and others:
                return None
            raise

    def cancel(self) -> None:
        """Asks the step under way, on another thread, to stop. Later ones stop too, until ``uncancel``."""
        self._sequences.cancel()

    def uncancel(self) -> None:
        self._sequences.uncancel()


class _Text:
    """One text of ``generate``."""

    def __init__(self, index: int, tokenizer: Tokenizer, grammar_of: Optional[Tokenizer], stop: Sequence[str],
                 sampling: Mapping[str, Any]) -> None:
        self.index, self.tokenizer = index, tokenizer
        self.sampler = Sampler(grammar_of, **sampling)
        self.stream = _quern.TextStream(tokenizer._tokenizer, list(stop), False)
        self.next: list[int] = []
        self.drawn = 0

    def draw(self, logits: np.ndarray, max_tokens: Optional[int]) -> tuple[str, bool]:
        """What the next token shows, and whether the text ends with it."""
        if self.drawn == max_tokens:
            return "", True
        id = self.sampler.draw(logits)
        if self.tokenizer.is_end(id):
            return "", True
        self.drawn += 1
        self.next = [id]
        piece = self.stream.add(id)
        return piece, self.stream.stopped() or self.drawn == max_tokens
