"""Queries written by a T5 such as docTTTTTquery. Importing this file needs the extra `train`."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from incdsi.documents import Document
from incdsi.errors import InvalidInput, MissingExtra
from incdsi.progress import Progress
from incdsi.text.generators.journal import Journal
from incdsi.text.hub import find_model
from incdsi.text.queries import distinct

try:
    import torch
    from transformers import (
        AutoModelForSeq2SeqLM,
        AutoTokenizer,
        GenerationConfig,
        LogitsProcessor,
        LogitsProcessorList,
    )
    from transformers.modeling_outputs import BaseModelOutput
except ImportError as error:
    raise MissingExtra(
        f"this generator needs torch and transformers, and {error.name or 'one of them'} cannot be imported; "
        "run: pip install 'incdsi[train]'"
    ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How queries are drawn: `count` per document, from its sections, each token from the `top_k` likeliest."""

    count: int = 15
    section: int = 512
    top_k: int = 10
    max_new_tokens: int = 64
    batch: int = 8  # documents
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("section", 2), ("top_k", 1), ("max_new_tokens", 1), ("batch", 1)):
            if getattr(self, name) < least:
                raise InvalidInput(f"{name} must be at least {least}, not {getattr(self, name)}")


class Seq2Seq:
    """A generator that uses transformers; what it writes for a document depends only on the document and the seed.

    With `journal`, a JSONL file, interrupted work resumes where it stopped and ends with the same queries.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        sampling: Sampling | None = None,
        journal: str | Path | None = None,
        device: str | None = None,
    ) -> None:
        """Load a model by hub name or from a folder. Raises ModelNotFound."""
        self.sampling = sampling or Sampling()
        self.journal = Journal(Path(journal)) if journal is not None else None
        self._name = str(name)
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer, model = find_model(name, _load)
        self._model = model.to(self._device).eval()

    @property
    def model(self) -> str:
        """The name or absolute folder it was loaded from."""
        folder = Path(self._name)
        return str(folder.resolve()) if folder.is_dir() else self._name

    def __call__(self, document: Document) -> list[str]:
        """The queries of one document."""
        return self.generate_many([document])[0]

    def generate_many(self, documents: Sequence[Document], progress: Progress | None = None) -> list[list[str]]:
        """The queries of each document, in the order of the documents.

        A batch is written to the journal when it is done; an unfinished one is repeated as a whole, so that each
        document is rounded in the same company as without the interruption.
        """
        known = self.journal.read() if self.journal is not None else {}
        written: list[list[str]] = []
        for start in range(0, len(documents), self.sampling.batch):
            batch = documents[start : start + self.sampling.batch]
            keys = [self._key(document) for document in batch]
            if not all(key in known for key in keys):
                known.update(zip(keys, self._generate(batch), strict=True))
                if self.journal is not None:
                    self.journal.append(
                        [(document.id, key, known[key]) for document, key in zip(batch, keys, strict=True)]
                    )
            written += [known[key] for key in keys]
            if progress is not None:
                progress(len(written), len(documents))
        return written

    def _key(self, document: Document) -> str:
        """A digest of what the queries depend on: text, model and settings."""
        settings = [self._name, asdict(self.sampling), document.id, document.content]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()

    @torch.inference_mode()
    def _generate(self, documents: Sequence[Document]) -> list[list[str]]:
        sections = [self._sections(document) for document in documents]
        owners, rows = self._draws([len(own) for own in sections])
        written: list[list[str]] = [[] for _ in documents]
        if rows:
            noise = torch.cat([self._noise(documents[place]) for place in dict.fromkeys(owners)])
            texts = self._sampled([section for own in sections for section in own], rows, noise)
            for place, text in zip(owners, texts, strict=True):
                written[place].append(text)
        return [distinct(texts) for texts in written]

    def _draws(self, counts: list[int]) -> tuple[list[int], list[int]]:
        """The document and the section of each query to draw; none for a document without sections."""
        owners, rows = [], []
        first = 0
        for place, sections in enumerate(counts):
            draws = range(self.sampling.count if sections else 0)
            owners += [place for _ in draws]
            rows += [first + draw * sections // self.sampling.count for draw in draws]
            first += sections
        return owners, rows

    def _sections(self, document: Document) -> list[list[int]]:
        """Token ids of sections spread evenly over the document, at most one for each query."""
        ids: list[int] = self._tokenizer(document.content, add_special_tokens=False, verbose=False)["input_ids"]
        room = self.sampling.section - 1  # the end-of-sequence token takes one
        count = min(math.ceil(len(ids) / room), self.sampling.count)
        last = max(len(ids) - room, 0)
        starts = [round(place * last / max(count - 1, 1)) for place in range(count)]
        return [[*ids[start : start + room], self._tokenizer.eos_token_id] for start in starts]

    def _noise(self, document: Document) -> torch.Tensor:
        """The document's own randomness: Gumbel noise of shape (count, max_new_tokens, top_k)."""
        digest = hashlib.sha256(f"{self.sampling.seed} {document.id}".encode()).digest()
        source = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        shape = (self.sampling.count, self.sampling.max_new_tokens, self.sampling.top_k)
        uniform = torch.rand(shape, generator=source, dtype=torch.float64).clamp_min(1e-300)
        return -torch.log(-torch.log(uniform))

    def _sampled(self, sections: list[list[int]], rows: list[int], noise: torch.Tensor) -> list[str]:
        """One text per row; each section goes through the encoder once."""
        padded = self._tokenizer.pad({"input_ids": sections}, return_tensors="pt").to(self._device)
        states = self._model.get_encoder()(**padded).last_hidden_state  # (sections, length, h)
        settings = GenerationConfig(
            do_sample=False,
            num_beams=1,
            max_new_tokens=self.sampling.max_new_tokens,
            pad_token_id=self._tokenizer.pad_token_id,
            eos_token_id=self._tokenizer.eos_token_id,
            decoder_start_token_id=self._model.config.decoder_start_token_id,
        )
        tokens = self._model.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=states[rows]),
            attention_mask=padded["attention_mask"][rows],
            generation_config=settings,
            logits_processor=LogitsProcessorList([_TopKSampling(noise.to(self._device))]),
        )
        texts: list[str] = self._tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return texts


class _TopKSampling(LogitsProcessor):  # type: ignore[misc]
    """Makes the greedy choice a draw among the k likeliest (Gumbel-max), with each row's own noise.

    Sampling from one common random stream would tie a document's queries to its neighbours.
    """

    def __init__(self, noise: torch.Tensor) -> None:
        self.noise = noise  # (rows, steps, k)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = input_ids.shape[1] - 1  # not counting the decoder's start token
        likeliest = scores.topk(min(self.noise.shape[2], scores.shape[1]), dim=1)
        drawn = likeliest.values.double() + self.noise[:, step, : likeliest.values.shape[1]]
        choice = likeliest.indices.gather(1, drawn.argmax(dim=1, keepdim=True))
        return torch.full_like(scores, -torch.inf).scatter(1, choice, 0.0)


def _load(name: str, local: bool) -> tuple[Any, Any]:
    tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
    return tokenizer, AutoModelForSeq2SeqLM.from_pretrained(name, local_files_only=local)
