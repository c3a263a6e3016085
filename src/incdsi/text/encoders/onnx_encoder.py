"""The serving encoder: onnxruntime + tokenizers, no torch."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from incdsi import cores
from incdsi.errors import IncDSIError, InvalidFile
from incdsi.progress import Progress
from incdsi.text.encoders.manifest import GRAPH, STATES, TOKENIZER, read_manifest, require_sound
from incdsi.text.encoders.protocol import Encoder, WithPrompt
from incdsi.text.encoders.states import Alone, pooled, tokens_of

Floats = NDArray[np.float32]
WINDOW = 1024  # texts tokenised at once
BUDGET = 512  # token places in one batch, padding included: 2048 was 1.5 times slower, out of the caches
SHARES = 4  # batches that few texts make at least, where each is worth a run: what is beside it need not wait long
ENOUGH = 64  # token places that are worth a run of their own
ALIKE = 2 / 3  # of the longest text of a batch that others should have at least
CHARACTERS = 64  # per token: text beyond max_length times this is looked at only if it could count


class OnnxEncoder:
    """A frozen encoder from a `model/` folder; safe to call from several threads."""

    def __init__(self, folder: str | Path, *, threads: int = 0) -> None:
        """Open the folder; `threads` 0 takes all cores: many within a run, or a run on each.

        Raises ModelNotFound without the files, InvalidFile when one of them is damaged.
        """
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        self._tokenizer, self._session = self._opened(threads)
        self._several = threads == 0 and cores.count() > 1
        self._beside: Any = None  # a session of one thread, for runs side by side
        self._opening = threading.Lock()
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        self._outputs = [entry.name for entry in self._session.get_outputs()]
        self._alone = Alone(lambda encodings: self._run(encodings, STATES)[0])

    @property
    def dimension(self) -> int:
        """h, the length of an embedding."""
        return self.manifest.dimension

    @property
    def fingerprint(self) -> str:
        """The same as that of the torch encoder it was exported from; int8 has its own."""
        return self.manifest.fingerprint

    @property
    def document_prompt(self) -> str:
        """The words put before every document."""
        own = self.manifest.document_prompt
        return self.manifest.prompt if own is None else own

    @property
    def documents(self) -> Encoder:
        """The encoder of documents: this one, unless its model has another prompt for them."""
        return self if self.document_prompt == self.manifest.prompt else WithPrompt(self)

    @cached_property
    def tokens_read(self) -> int:
        """Tokens of a document's own that count: those of its prompt and the special ones are not."""
        taken: int = self._tokenizer.num_special_tokens_to_add(False)
        return max(1, self.manifest.max_length - taken - self.count_tokens([self.document_prompt])[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has, however long it is, without special ones."""
        taken: int = self._tokenizer.num_special_tokens_to_add(False)
        encodings = self._tokenizer.encode_batch(list(texts))
        return [sum(len(part) - taken for part in (one, *one.overflowing)) for one in encodings]

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        """Embed queries, and documents where they are embedded alike, in their order: (n, h)."""
        return self.encode_with(self.manifest.prompt, texts, progress)

    def encode_with(self, prompt: str, texts: Sequence[str], progress: Progress | None = None) -> Floats:
        """Embed texts, with these words before each, in their order: (n, h).

        Texts of like length share a batch, so little padding is computed.
        """
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        done = 0
        output = STATES if self.has_states else self._outputs[0]
        for places, encodings, (values,) in self._runs([prompt + text for text in texts], output):
            out[places] = self._pooled(encodings, values) if self.has_states else values
            done += len(places)
            if progress is not None:
                progress(done, len(texts))
        return out

    def encode_with_parts(
        self, texts: Sequence[str], parts: Sequence[Sequence[tuple[int, int]]]
    ) -> tuple[Floats, list[list[Floats | None]]]:
        """What `encode` gives, and for each text the embeddings of parts of it, from the same pass.

        A part is where it begins and ends in its text; None for one beyond what the model reads of it.
        """
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        found: list[list[Floats | None]] = [[] for _ in texts]
        prompt = self.manifest.prompt
        for places, encodings, (states,) in self._runs([prompt + text for text in texts], STATES):
            out[places] = self._pooled(encodings, states)
            for place, encoding, own in zip(places, encodings, states, strict=True):
                for start, stop in parts[place]:
                    tokens = tokens_of(encoding, start + len(prompt), stop + len(prompt))
                    found[place].append(None if tokens is None else pooled(own[tokens], self.manifest.normalise))
        return out, found

    def encode_each(self, texts: Sequence[str]) -> Floats:
        """Embed queries in their order, (n, h), each with the bits it has when it comes alone."""
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        encodings = self._tokenise([self.manifest.prompt + text for text in texts])
        if not self.has_states:
            for place, encoding in enumerate(encodings):
                ((out[place],),) = self._run([encoding], self._outputs[0])
            return out
        for place, states in self._alone.states(encodings):
            out[place] = pooled(states, self.manifest.normalise)
        return out

    @property
    def has_states(self) -> bool:
        """Whether the graph tells its token states; those of older versions and other models do not."""
        return STATES in self._outputs

    def _runs(self, texts: Sequence[str], *outputs: str) -> Iterator[tuple[list[int], list[Encoding], list[Floats]]]:
        """Texts that run together, by their places, with their tokens and outputs; those of like length, to pad little.

        Where none of several runs is longer than a core's share of all, each core makes whole runs by itself: threads
        within a run wait for each other at every operator. That changes no bit of token states.
        """
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        for start in range(0, len(order), WINDOW):
            window = order[start : start + WINDOW]
            encodings = self._tokenise([texts[i] for i in window])
            lengths = [len(encoding) for encoding in encodings]
            batches = list(_batches(lengths))
            sizes = [len(batch) * lengths[batch[0]] for batch in batches]
            run = partial(self._run_batch, encodings, outputs)
            if self._several and len(batches) > 1 and max(sizes) * cores.count() <= sum(sizes):
                found = cores.threads().map(partial(run, self._session_beside()), batches)
            else:
                found = map(partial(run, self._session), batches)
            for batch, values in zip(batches, found, strict=True):
                yield [window[i] for i in batch], [encodings[i] for i in batch], values

    def _pooled(self, encodings: Sequence[Encoding], states: Floats) -> list[Floats]:
        """By numpy: the runtime adds up in an order that depends on how many threads it has."""
        normalise = self.manifest.normalise
        return [pooled(own[: len(one)], normalise) for one, own in zip(encodings, states, strict=True)]

    def _run_batch(
        self, encodings: Sequence[Encoding], outputs: Sequence[str], session: Any, batch: Sequence[int]
    ) -> list[Floats]:
        return self._run([encodings[i] for i in batch], *outputs, session=session)

    def _session_beside(self) -> Any:
        """A session of one thread; where the files are no longer those that were opened, the one there is."""
        with self._opening:
            if self._beside is None:
                try:
                    require_sound(self.folder, self.manifest)
                    self._beside = self._open_session(1)
                except IncDSIError:
                    self._beside = self._session
            return self._beside

    def _tokenise(self, texts: list[str]) -> list[Encoding]:
        limit = self.manifest.max_length * CHARACTERS
        encodings: list[Encoding] = self._tokenizer.encode_batch([_head(text, limit) for text in texts])
        for place, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
            if len(text) > limit and not encoding.overflowing:
                encodings[place] = self._tokenizer.encode(text)
        return encodings

    def _run(self, encodings: Sequence[Encoding], *outputs: str, session: Any = None) -> list[Floats]:
        shape = (len(encodings), max(len(encoding) for encoding in encodings))
        ids = np.full(shape, self.manifest.pad_id, dtype=np.int64)  # (b, length)
        mask = np.zeros(shape, dtype=np.int64)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding)] = encoding.ids
            mask[row, : len(encoding)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros(shape, dtype=np.int64)}
        found: list[Floats] = (session or self._session).run(outputs, {name: feed[name] for name in self._inputs})
        return found

    def _opened(self, threads: int) -> tuple[Tokenizer, Any]:
        """Tokenizer and session, while another thread checks the files they are read from."""
        with ThreadPoolExecutor(1, thread_name_prefix="incdsi-sha256") as checking:
            sound = checking.submit(require_sound, self.folder, self.manifest)
            try:
                opened = self._open_tokenizer(), self._open_session(threads)
            finally:
                sound.result()  # a damaged file is told as such, whatever came of reading it
        return opened

    def _open_tokenizer(self) -> Tokenizer:
        try:
            tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
        except Exception as error:  # tokenizers raises plain Exception
            raise InvalidFile(
                f"not a tokenizer ({error}); export the model again", path=self.folder / TOKENIZER
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.manifest.max_length)
        return tokenizer

    def _open_session(self, threads: int) -> Any:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when onnxruntime is first imported
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        # Threads that spin gain a third of a millisecond alone, and make the slowest queries wait beside others.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = self.folder / GRAPH
        try:
            return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class per error code
            raise InvalidFile(f"not an ONNX graph ({error}); export the model again", path=path) from error


def _head(text: str, limit: int) -> str:
    """At most `limit` characters, cut between words; the whole text when it has no such place."""
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", 0, limit)
    return text[:cut] if cut > 0 else text


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Places of texts, longest first, cut so that rows times longest stays within BUDGET, or their share of few.

    A text much shorter than the longest begins a batch of its own where there is enough without it: the few queries of
    one document have all lengths, and together they would be half padding.
    """
    batch: list[int] = []
    budget = min(BUDGET, max(ENOUGH, sum(lengths) // SHARES))
    for place in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = lengths[batch[0]] if batch else 0
        enough = len(batch) * longest >= ENOUGH and lengths[place] < ALIKE * longest
        if batch and (enough or (len(batch) + 1) * longest > budget):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
