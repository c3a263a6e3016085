"""LexicalIndex: BM25 scores of all documents at once, which depend only on the current documents.

    score(query, d) = sum over terms t of the query, with multiplicity, of
        ln(1 + (n - df_t + 1/2) / (df_t + 1/2)) * tf / (tf + k1 (1 - b + b |d| / mean |d|))

n, df, tf and lengths are exact integers, and a document's terms are summed in the query's order, so not one bit
of a score depends on the order in which documents came and went.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import (
    CorruptStore,
    DuplicateDocument,
    InvalidHyperparameters,
    InvalidInput,
    UnknownDocument,
    UnsupportedFormat,
)
from incdsi.lexical.language import DEFAULT, Language, find_language
from incdsi.lexical.marks import Mark, marks
from incdsi.lexical.postings import MAX_SLOT, Bag, Postings, Recent
from incdsi.lexical.words import term_key
from incdsi.progress import Progress

# Raised whenever arrays or terms change meaning; older arrays are then rebuilt from the texts.
FORMAT = 3
_DTYPES = {
    "format": np.int64,
    "stemmer": np.uint64,
    "parameters": np.float64,
    "terms": np.uint64,
    "offsets": np.int64,
    "slots": np.int32,
    "counts": np.uint16,
    "lengths": np.int32,
}
# A merge is due when recent and removed postings together exceed this share of the base, and this number.
_MERGE_SHARE, _MERGE_LEAST = 1 / 8, 20_000
# A word is not marked that more than one in COMMON documents has, if those are more than FEW.
COMMON, FEW = 5, 10
# In `_lengths`: no document, and a removed one whose postings are still in the base.
_ABSENT, _REMOVED = -1, -2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """Postings of the m terms of a query: joined, `sizes` (2m,) from the base, then recent ones."""

    slots: list[NDArray[np.int32]]
    counts: list[NDArray[np.uint16]]
    sizes: NDArray[np.int64]
    frequencies: NDArray[np.int64]


class LexicalIndex:
    """BM25 over documents identified by slots: small non-negative integers, preferably not reused.

    Any number of threads may call `scores` while one thread writes. It uses a short lock rather than snapshots: a
    reader holds it for microseconds, to take views of the postings it needs; a writer holds it while it edits a
    document's postings in place, which an immutable snapshot would have to copy.
    """

    def __init__(self, k1: float = 0.9, b: float = 0.75, *, language: str = DEFAULT) -> None:
        # Defaults chosen on validation queries, where H@1 is flat around them.
        if not (math.isfinite(k1) and k1 >= 0 and 0 <= b <= 1):
            raise InvalidHyperparameters(f"k1 must be at least 0 and b between 0 and 1, not {k1!r} and {b!r}")
        self.k1, self.b = float(k1), float(b)
        self.language = find_language(language)
        self._adopt(Postings.empty(), np.empty(0, np.int32))
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._documents

    def __contains__(self, slot: int) -> bool:
        return self._length(slot) >= 0

    def add_many(self, slots: Sequence[int], texts: Sequence[str], progress: Progress | None = None) -> None:
        """Index all texts; none if a slot is taken or `progress` raises."""
        self._require_free(slots, texts)
        bags: list[tuple[int, Bag]] = []
        for slot, text in zip(slots, texts, strict=True):
            bags.append((int(slot), Bag.of(self.language.terms(text))))
            if progress is not None:
                progress(len(bags), len(texts))
        if self._merge_due(sum(len(bag.keys) for _, bag in bags)) or self._any_removed(slots):
            self._merge(bags)
        else:
            self._append(bags)

    def remove_many(self, slots: Iterable[int]) -> None:
        """Remove all documents in `slots`; none if one is unknown.

        For those in the base this takes one pass over its slots (a few ms at 100,000 documents), however many there
        are: a second copy of the postings, by document, would take two thirds more memory for a rare need.
        """
        wanted = {int(slot) for slot in slots}
        unknown = sorted(slot for slot in wanted if slot not in self)
        if unknown:
            raise UnknownDocument(f"slot {unknown[0]} holds no document; add one first")
        in_base = [slot for slot in wanted if slot not in self._recent.bags]
        terms = self._base.terms_of(in_base) if in_base else np.empty(0, np.int64)
        with self._lock:
            for slot in wanted.difference(in_base):
                self._recent.remove(slot)
            np.subtract.at(self._frequencies, terms, 1)
            self._removed_postings += len(terms)
            self._forget_lengths(wanted, in_base)
        if self._merge_due():
            self._merge([])

    def scores(self, text: str, size: int) -> NDArray[np.float32]:
        """BM25 scores of all slots below `size` for the query `text`: (size,), 0 where there is no document."""
        return self.scores_and_limit(text, size)[0]

    def scores_and_limit(self, text: str, size: int) -> tuple[NDArray[np.float32], float]:
        """The same, and the score that no document reaches, however often it says all words of the query."""
        if size < 0:
            raise InvalidInput(f"size must be at least 0, not {size}")
        occurrences = Counter(self.language.terms(text))
        if not occurrences:
            return np.zeros(size, np.float32), 0.0
        with self._lock:
            norms, documents = self._current_norms(), self._documents
            found = self._gather([term_key(term) for term in occurrences])
        weights = _weights(occurrences, found.frequencies, documents)
        return _summed(found, weights, norms, size), math.fsum(weights)

    def score_of(self, words: str, text: str) -> float:
        """BM25 for the query `text` of a document with these words, were it among those there are."""
        occurrences, bag = Counter(self.language.terms(text)), Bag.of(self.language.terms(words))
        said = dict(zip(bag.keys, bag.counts, strict=True))
        keys = [term_key(term) for term in occurrences]
        with self._lock:
            documents, total = self._documents, self._words
            frequencies = self._gather(keys).frequencies if keys else np.empty(0, np.int64)
        norm = self.k1 * (1 - self.b + self.b * bag.length * documents / max(total, 1))
        weights = zip(_weights(occurrences, frequencies, documents), keys, strict=True)
        return math.fsum(weight * said[key] / (said[key] + norm) for weight, key in weights if key in said)

    def marker(self, query: str) -> Callable[[str], list[Mark]]:
        """What finds the words of a query in a text; those that many documents have only where there are no others."""
        asked = list(dict.fromkeys(self.language.terms(query)))
        with self._lock:
            most = max(self._documents // COMMON, FEW)
            frequencies = self._gather([term_key(term) for term in asked]).frequencies.tolist() if asked else []
        telling = {term for term, frequency in zip(asked, frequencies, strict=True) if frequency <= most}
        wanted = frozenset(telling or asked)
        return lambda text: marks(text, wanted, self.language.terms)

    def to_arrays(self, order: NDArray[np.intp] | None = None) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, without removed documents; merges first (a write).

        `order`, all slots in use in rising order, renumbers them: order[i] becomes i.
        """
        self._merge([])
        used = np.flatnonzero(self._lengths >= 0)
        if order is not None:
            return self._renumbered(used, order)
        return {
            "format": np.array([FORMAT], np.int64),
            "stemmer": _mark(self.language),
            "parameters": np.array([self.k1, self.b], np.float64),
            "terms": self._base.terms,
            "offsets": self._base.offsets,
            "slots": self._base.slots,
            "counts": self._base.counts,
            "lengths": self._lengths[: used[-1] + 1 if len(used) else 0].copy(),
        }

    def _renumbered(self, used: NDArray[np.intp], order: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        if not np.array_equal(used, order):
            raise InvalidInput("order must list every slot in use, rising")
        arrays = self.to_arrays()
        arrays["slots"] = np.searchsorted(order, arrays["slots"]).astype(np.int32)
        arrays["lengths"] = arrays["lengths"][order]
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], language: str = DEFAULT) -> LexicalIndex:
        """The inverse of `to_arrays`; postings are used in place, memory-mapped or not.

        Raises UnsupportedFormat, also when another stemmer made the terms, or CorruptStore: rebuild it from the
        texts then.
        """
        plain = _checked(arrays, language)
        k1, b = plain["parameters"].tolist()
        index = cls(k1, b, language=language)
        base = Postings(**{name: plain[name] for name in ("terms", "offsets", "slots", "counts")})
        index._adopt(base, np.array(plain["lengths"], np.int32))
        return index

    def _adopt(self, base: Postings, lengths: NDArray[np.int32]) -> None:
        self._base = base
        self._recent = Recent()
        self._frequencies = np.diff(base.offsets)  # of current documents, by term of the base
        self._removed_postings = 0
        self._lengths = lengths  # by slot
        self._documents = int(np.count_nonzero(lengths >= 0))
        self._words = int(lengths[lengths >= 0].sum(dtype=np.int64))
        self._norms: NDArray[np.float32] | None = None

    def _length(self, slot: int) -> int:
        return int(self._lengths[slot]) if 0 <= slot < len(self._lengths) else _ABSENT

    def _any_removed(self, slots: Sequence[int]) -> bool:
        return any(self._length(slot) == _REMOVED for slot in slots)

    def _require_free(self, slots: Sequence[int], texts: Sequence[str]) -> None:
        if len(slots) != len(texts):
            raise InvalidInput(f"expected a slot for each text, found {len(slots)} and {len(texts)}")
        for slot in slots:
            if not 0 <= slot < MAX_SLOT:
                raise InvalidInput(f"a slot must be between 0 and {MAX_SLOT - 1}, not {slot}")
            if slot in self:
                raise DuplicateDocument(f"slot {slot} already holds a document; remove it first")
        if len(set(slots)) < len(slots):
            raise DuplicateDocument("a slot occurs twice in one batch; give each document its own")

    def _append(self, bags: Sequence[tuple[int, Bag]]) -> None:
        with self._lock:
            self._lengths = self._grown(bags)
            for slot, bag in bags:
                self._recent.add(slot, bag)
                self._lengths[slot] = bag.length
                self._documents += 1
                self._words += bag.length
            self._norms = None

    def _merge_due(self, more: int = 0) -> bool:
        pending = self._recent.size + self._removed_postings + more
        return pending > max(_MERGE_LEAST, _MERGE_SHARE * len(self._base))

    def _merge(self, bags: Sequence[tuple[int, Bag]]) -> None:
        # Built outside the lock; readers see the old state until `_adopt`.
        everything = [*self._recent.bags.items(), *bags]
        lengths = self._grown(bags).copy()
        gone = lengths == _REMOVED
        if not everything and not gone.any():
            return
        base = self._base.merged(everything, gone)
        lengths[gone] = _ABSENT
        for slot, bag in bags:
            lengths[slot] = bag.length
        with self._lock:
            self._adopt(base, lengths)

    def _grown(self, bags: Sequence[tuple[int, Bag]]) -> NDArray[np.int32]:
        needed = max((slot + 1 for slot, _ in bags), default=0)
        if needed <= len(self._lengths):
            return self._lengths
        grown = np.full(max(needed, len(self._lengths) * 5 // 4), _ABSENT, np.int32)
        grown[: len(self._lengths)] = self._lengths
        return grown

    def _forget_lengths(self, slots: Iterable[int], in_base: Iterable[int]) -> None:
        for slot in slots:
            self._documents -= 1
            self._words -= int(self._lengths[slot])
            self._lengths[slot] = _ABSENT
        for slot in in_base:
            self._lengths[slot] = _REMOVED
        self._norms = None

    def _current_norms(self) -> NDArray[np.float32]:
        """k1 (1 - b + b |d| / mean |d|) by slot; infinite without a document, so that it scores 0."""
        if self._norms is None:
            slope = self.k1 * self.b * self._documents / max(self._words, 1)
            norms = (self._lengths * slope + self.k1 * (1 - self.b)).astype(np.float32)
            norms[self._lengths < 0] = np.inf
            self._norms = norms
        return self._norms

    def _gather(self, keys: Sequence[int]) -> _Gathered:
        """The postings of each term in the base, then of each among the recent; a term's frequency."""
        base = self._base
        places = base.find(np.array(keys, np.uint64))
        spans = [slice(*base.offsets[place : place + 2].tolist()) for place in places.tolist() if place >= 0]
        slots, counts, recent_sizes = self._recent.of(keys)
        in_base = np.where(places >= 0, self._frequencies[places], 0) if len(base.terms) else 0
        base_sizes = np.zeros(len(keys), np.int64)
        base_sizes[places >= 0] = [span.stop - span.start for span in spans]
        return _Gathered(
            slots=[*(base.slots[span] for span in spans), slots],
            counts=[*(base.counts[span] for span in spans), counts],
            sizes=np.concatenate([base_sizes, np.array(recent_sizes, np.int64)]),
            frequencies=in_base + np.array(recent_sizes, np.int64),
        )


def _weights(occurrences: Counter[str], frequencies: NDArray[np.int64], documents: int) -> list[float]:
    """How much each term of a query counts: the rarer, the more."""
    return [
        times * math.log1p((documents - frequency + 0.5) / (frequency + 0.5))
        for times, frequency in zip(occurrences.values(), frequencies.tolist(), strict=True)
    ]


def _summed(found: _Gathered, weights: Sequence[float], norms: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    slots = np.concatenate(found.slots)
    counts = np.concatenate(found.counts).astype(np.float32)
    shares = norms[slots]
    shares += counts
    np.divide(counts, shares, out=shares)
    shares *= np.repeat(np.array([*weights, *weights], np.float32), found.sizes)
    return np.bincount(slots, shares, minlength=size)[:size].astype(np.float32)


def _mark(language: Language) -> NDArray[np.uint64]:
    """What terms are by: stems of two languages, or of two versions of a stemmer, must not meet."""
    return np.array([term_key(f"{language.name} {language.stemmer}")], np.uint64)


def _checked(arrays: Mapping[str, NDArray[Any]], language: str) -> dict[str, NDArray[Any]]:
    found = int(np.asarray(arrays["format"])[0]) if len(arrays.get("format", ())) else None
    if found != FORMAT:
        raise UnsupportedFormat(f"expected a lexical index of format {FORMAT}, found {found}; rebuild it")
    plain = {name: np.asarray(arrays.get(name, ())) for name in _DTYPES}
    for name, dtype in _DTYPES.items():
        if plain[name].dtype != dtype or plain[name].ndim != 1:
            raise CorruptStore(f"lexical array {name!r} must be one-dimensional {np.dtype(dtype)}; rebuild the index")
    if not np.array_equal(plain["stemmer"], _mark(find_language(language))):
        raise UnsupportedFormat("another stemmer made the terms of this lexical index; rebuild it")
    offsets, slots = plain["offsets"], plain["slots"]
    sound = (
        len(plain["parameters"]) == 2
        and len(offsets) == len(plain["terms"]) + 1
        and offsets[-1] == len(slots) == len(plain["counts"])
        and bool(np.all(np.diff(offsets) > 0))
        and bool(np.all(plain["terms"][1:] > plain["terms"][:-1]))
    )
    if not sound:
        raise CorruptStore("the sizes of the lexical arrays do not match; rebuild the index")
    return plain
