"""Models in files: language models that generate, encoders, ONNX, graphs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _quern
from .errors import QuernError
from .graph import Graph
from .profile import Profile
from .program import Program, options_of

Path = Union[str, os.PathLike]


class Tokenizer:
    """Text to ids and back: of a GGUF file, or a folder with a tokenizer.json. Immutable and thread-safe."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = _quern.Tokenizer.open(os.fspath(path))

    @classmethod
    def _of(cls, tokenizer: _quern.Tokenizer) -> "Tokenizer":
        made = cls.__new__(cls)
        made._tokenizer = tokenizer
        return made

    def __len__(self) -> int:
        return self._tokenizer.size()

    def encode(self, text: str, begin: bool = True, special: bool = True) -> list[int]:
        """Ids of a text. ``begin``: with the model's begin token; ``special``: control tokens in it become their ids,
        which text of others should not be able to do."""
        return self._tokenizer.encode(text, begin, special)

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """The text of ids; bytes that are no part of a character become U+FFFD."""
        return self._tokenizer.decode([int(i) for i in ids], special).decode("utf-8", "replace")

    def piece(self, id: int, special: bool = False) -> bytes:
        """The bytes of one token, which may be part of a character."""
        return self._tokenizer.piece(id, special)

    def is_end(self, id: int) -> bool:
        return self._tokenizer.is_end(id)

    @property
    def begin(self) -> int:
        """The token that begins a text, or -1."""
        return self._tokenizer.begin()

    @property
    def end(self) -> int:
        """The token that ends one, or -1."""
        return self._tokenizer.end()


def _sampling(options: Mapping[str, Any]) -> _quern.SamplingOptions:
    made = _quern.SamplingOptions()
    for name, value in options.items():
        if not hasattr(made, name):
            known = ", ".join(n for n in dir(made) if not n.startswith("_"))
            raise TypeError(f"there is no option {name!r} of sampling: there are {known}")
        if name == "logit_bias" and isinstance(value, Mapping):
            value = list(value.items())
        setattr(made, name, value)
    return made


class Sampler:
    """Draws tokens from logits: temperature, top_k, top_p, seed, logit_bias, dry_breakers, grammar and the others of
    docs/text.md, by the names of quern/sampling.h. Without options: the most likely one. The tokenizer is needed for a
    grammar, and with dry_multiplier for dry_breakers."""

    def __init__(self, tokenizer: Optional[Tokenizer] = None, **options: Any) -> None:
        self._sampler = _quern.Sampler.make(_sampling(options), tokenizer and tokenizer._tokenizer)

    def draw(self, logits: np.ndarray) -> int:
        """An index of ``logits`` [vocabulary], f32."""
        return self._sampler.draw(np.ascontiguousarray(logits, np.float32))

    def observe(self, ids: Sequence[int]) -> None:
        """Tokens that came before and were not drawn: penalties look back on them."""
        self._sampler.observe([int(i) for i in ids])

    def forget(self) -> None:
        """Another text begins."""
        self._sampler.forget()

    @property
    def complete(self) -> bool:
        """Whether what was drawn is a whole text of the grammar; true without one."""
        return self._sampler.complete()


class ChatTemplate:
    """Conversations as a model was trained on them (docs/chat.md). Errors: unsupported, a file that has none."""

    def __init__(self, path: Path, source: Optional[str] = None) -> None:
        path = os.fspath(path)
        open_with = _quern.ChatTemplate.open_with
        self._template = _quern.ChatTemplate.open(path) if source is None else open_with(path, source)

    def render(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] = (),
               add_generation_prompt: bool = True, **variables: Any) -> tuple[str, bool]:
        """The text of messages ``{"role": .., "content": .., ..}``, and whether the begin token goes in front."""
        rows = []
        for message in messages:
            more = {k: v for k, v in message.items() if k not in ("role", "content")}
            rows.append((message["role"], message.get("content") or "", json.dumps(more) if more else ""))
        return self._template.render(rows, add_generation_prompt, json.dumps(list(tools)) if tools else "",
                                     json.dumps(variables) if variables else "")


class Session:
    """A language model with its cache of keys and values: a GGUF file, or a folder as Hugging Face has it.

    Steps leave the GIL to others, and Ctrl-C stops them. For one thread at a time.

    >>> session = quern.Session("model.gguf")
    >>> for text in session.generate("Once upon a time", max_tokens=64):
    ...     print(text, end="", flush=True)

    Options: threads, cpu, context, exact, device, check, cache, ... (quern/quern.h). Errors: resource, a file that
    cannot be read; invalid, a damaged one; unsupported, another architecture.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        self._path = os.fspath(path)
        self._session = _quern.Session.open(self._path, options_of(options))
        self._tokenizer: Optional[Tokenizer] = None
        self._template: Optional[ChatTemplate] = None
        self._profile: Optional[Profile] = None

    @property
    def vocabulary(self) -> int:
        """Logits that a position has."""
        return self._session.vocabulary()

    @property
    def context(self) -> int:
        """Positions that the cache holds."""
        return self._session.context()

    @property
    def position(self) -> int:
        """Tokens in the cache."""
        return self._session.position()

    @property
    def threads(self) -> int:
        return self._session.threads()

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by what they went to."""
        return self._session.timings()

    @property
    def tokenizer(self) -> Tokenizer:
        if self._tokenizer is None:
            self._tokenizer = Tokenizer._of(self._session.tokenizer())
        return self._tokenizer

    @property
    def chat_template(self) -> ChatTemplate:
        if self._template is None:
            self._template = ChatTemplate(self._path)
        return self._template

    def tokenize(self, text: str, begin: bool = True, special: bool = True) -> list[int]:
        return self.tokenizer.encode(text, begin, special)

    def step(self, ids: Sequence[int]) -> np.ndarray:
        """Runs ids at the current position: the logits [vocabulary] after the last one.

        Errors: invalid, no ids, one out of range, or more than the context holds; then nothing has changed. After
        "resource" and "cancelled" ``position`` says which ids are in the cache.
        """
        return self._session.step([int(i) for i in ids])

    def step_all(self, ids: Sequence[int]) -> np.ndarray:
        """The same with the logits after every id: [ids, vocabulary]."""
        return self._session.step_all([int(i) for i in ids])

    def reset(self) -> None:
        """Back to an empty cache."""
        self._session.reset()

    def rewind(self, position: int) -> None:
        """Back to where the cache held that many tokens."""
        self._session.rewind(position)

    def save(self) -> bytes:
        """The keys, values and states of the tokens so far."""
        return self._session.save()

    def load(self, data: bytes) -> None:
        """A cache that ``save`` gave, of this model, instead of this one's own."""
        self._session.load(data)

    def generate_ids(self, ids: Sequence[int], max_tokens: Optional[int] = None, **sampling: Any) -> Iterator[int]:
        """Ids that follow these, one by one, until the model ends, the context is full or ``max_tokens`` are drawn.

        Goes on from what is in the cache. The last id that was given is not in it: it is the next step's first.
        """
        sampler = Sampler(self.tokenizer if _sampling(sampling)._needs_tokenizer() else None, **sampling)
        sampler.observe(ids)
        logits = self.step(ids)
        count = 0
        while max_tokens is None or count < max_tokens:
            id = sampler.draw(logits)
            if self._session_ends(id):
                return
            yield id
            count += 1
            if self.position >= self.context or count == max_tokens:
                return
            logits = self.step([id])

    def _session_ends(self, id: int) -> bool:
        return self.tokenizer.is_end(id)

    def generate(self, prompt: str, max_tokens: Optional[int] = None, stop: Sequence[str] = (), begin: bool = True,
                 special: bool = True, **sampling: Any) -> Iterator[str]:
        """Text that follows ``prompt``, in pieces as it comes: whole characters, up to where one of ``stop`` appears.

        Forgets what came before it. Sampling: see Sampler. ``special``: control tokens in the prompt are those.
        """
        self.reset()
        ids = self.tokenize(prompt, begin, special)
        stream = _quern.TextStream(self.tokenizer._tokenizer, list(stop), False)
        for id in self.generate_ids(ids, max_tokens, **sampling):
            text = stream.add(id)
            if text:
                yield text
            if stream.stopped():
                return
        text = stream.flush()
        if text:
            yield text

    def chat(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] = (), max_tokens: Optional[int] = None,
             stop: Sequence[str] = (), variables: Optional[Mapping[str, Any]] = None, **sampling: Any) -> Iterator[str]:
        """The answer to messages ``{"role": "user", "content": ..}`` by the model's chat template, as it comes."""
        text, begin = self.chat_template.render(messages, tools, **(variables or {}))
        return self.generate(text, max_tokens, stop, begin, True, **sampling)

    def cancel(self) -> None:
        """Asks the step under way, on another thread, to stop. Later ones stop too, until ``uncancel``."""
        self._session.cancel()

    def uncancel(self) -> None:
        self._session.uncancel()

    def profile(self, counters: bool = False) -> Profile:
        """Records the steps from here on, until it is closed or the next one begins: ``print(profile)``."""
        if self._profile is not None:
            self._profile.close()
        self._profile = Profile(self._session.profiler(counters))
        return self._profile


class Embedder:
    """An encoder (bert, nomic-bert): vectors of texts, of length 1."""

    def __init__(self, path: Path, **options: Any) -> None:
        self._embedder = _quern.Embedder.open(os.fspath(path), options_of(options))

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return self._embedder.width()

    @property
    def context(self) -> int:
        """Tokens that a text may have."""
        return self._embedder.context()

    def embed(self, texts: Union[str, Sequence[str]], pooling: str = "model") -> np.ndarray:
        """The vector of a text [width], or of several [texts, width]. ``pooling``: model, mean, first or last."""
        if isinstance(texts, str):
            return self._embedder.embed(texts, pooling)
        return np.stack([self._embedder.embed(t, pooling) for t in texts]) if texts else np.empty((0, self.width), "f4")


class OnnxModel:
    """A model in ONNX (docs/onnx.md), compiled: its inputs and outputs have the model's names.

    >>> model = quern.OnnxModel("mnist.onnx")
    >>> scores = model(image)

    ``sizes``: of symbols, for ops that need numbers. ``values``: of inputs, likewise, as "x=x.npy". ``fix_sizes``: all
    sizes are those. Other options are those of Graph.compile. Errors: invalid; unsupported, with op and node.
    """

    def __init__(self, path: Path, sizes: Optional[Mapping[str, int]] = None, values: Sequence[str] = (),
                 fix_sizes: bool = False, **options: Any) -> None:
        self._model = _quern.OnnxModel.open(os.fspath(path), dict(sizes or {}), list(values), fix_sizes)
        self.graph = Graph._of(self._model.graph(), self._model)
        self.program: Program = self.graph.compile(**options)
        self.inputs = self.program.inputs
        names = self._model.outputs()
        self.outputs = [next(p for p in self.program.outputs if p.name == n) for n in names]

    @staticmethod
    def not_covered(path: Path) -> list[str]:
        """What of a model there is no importer for: a line for each op and type; empty: all is covered."""
        return _quern.OnnxModel.not_covered(os.fspath(path))

    def run(self, inputs: Mapping[str, Any], sizes: Optional[Mapping[str, int]] = None) -> dict[str, np.ndarray]:
        """The outputs by name."""
        return self.program.run(inputs, sizes=sizes)

    def __call__(self, *args: Any, sizes: Optional[Mapping[str, int]] = None, **kwargs: Any) -> Any:
        """``run`` with inputs in the model's order or by name; the output, or a tuple of several."""
        if len(args) > len(self.inputs):
            raise TypeError(f"{len(args)} arrays for {len(self.inputs)} inputs: {self.inputs}")
        results = tuple(self.run({**{p.name: v for p, v in zip(self.inputs, args)}, **kwargs}, sizes).values())
        return results[0] if len(results) == 1 else results

    def profile(self, counters: bool = False) -> Profile:
        return self.program.profile(counters)


def load_graph(path: Path, sizes: Optional[Mapping[str, int]] = None, values: Sequence[str] = ()) -> Graph:
    """A graph in a file, text or binary (docs/graph-files.md), with the values that it names for parameters."""
    opened = _quern.TextGraph.open(os.fspath(path), dict(sizes or {}), list(values))
    return Graph._of(opened.graph(), opened)


def open(path: Path, **options: Any) -> Union[Session, Embedder, OnnxModel, Program]:  # noqa: A001
    """What is in a file or folder, ready to run: a Session or Embedder (GGUF, safetensors), an OnnxModel, or the
    Program of a graph."""
    name = os.fspath(path)
    if _quern.OnnxModel.is_onnx(name):
        return OnnxModel(name, **options)
    if os.path.isfile(name) and _quern.TextGraph.is_graph(name):
        return load_graph(name).compile(**options)
    try:
        return Session(name, **options)
    except QuernError as error:
        if error.code != "unsupported" or "encoder" not in str(error):
            raise
    return Embedder(name, **options)


def inspect(path: Path) -> str:
    """Metadata and tensors of a model file, for people."""
    return _quern.inspect(os.fspath(path))


def grammar_of_json_schema(schema: Any) -> str:
    """A grammar for sampling whose texts are JSON that the schema takes."""
    return _quern.grammar_of_json_schema(schema if isinstance(schema, str) else json.dumps(schema))
