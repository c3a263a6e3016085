"""LexicalIndex: BM25 scores of all documents at once, which depend only on the current documents.

    score(query, d) = sum over terms t of the query, with multiplicity, of
        ln(1 + (n - df_t + 1/2) / (df_t + 1/2)) * tf / (tf + k1 (1 - b + b |d| / mean |d|))

n, df, tf and lengths are exact integers, and a document's terms are summed in the query's order, so not one bit
of a score depends on the order in which documents came and went.

A document may have several texts, each with a score of its own. n and df count documents, so a word that one of them
says everywhere stays rare, and lengths are those of `lengths.py`.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from incdsi.lexical.lengths import ABSENT, REMOVED, Lengths, Norms
from incdsi.lexical.marks import Marker
from incdsi.lexical.postings import MAX_SLOT, Bag, Postings, Recent
from incdsi.lexical.words import REMEMBERED, term_key
from incdsi.progress import Progress

# Raised whenever arrays or terms change meaning; older arrays are then rebuilt from the texts.
FORMAT = 5
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """Postings of the m terms of a query: joined, `sizes` (2m,) from the base, then recent ones."""

    slots: list[NDArray[np.int32]]
    counts: list[NDArray[np.uint16]]
    sizes: NDArray[np.int64]
    texts: NDArray[np.int64]  # how many texts have each term

    def frequencies(self, norms: Norms, places: list[int]) -> list[int]:
        """How many documents have each of the terms at these places."""
        if norms.owners is None:
            texts: list[int] = self.texts[places].tolist()
            return texts
        both = [*places, *(len(self.texts) + place for place in places)]
        ends, joined = np.cumsum(self.sizes), np.concatenate(self.slots)
        slots = np.concatenate([joined[ends[place] - self.sizes[place] : ends[place]] for place in both])
        documents: list[int] = norms.documents_in(slots, self.sizes[both]).reshape(2, -1).sum(0).tolist()
        return documents


class LexicalIndex:
    """BM25 over texts identified by slots: small non-negative integers, preferably not reused.

    Each is a document, or several together are one.

    Any number of threads may call `scores` while one thread writes. It uses a short lock rather than snapshots: a
    reader holds it for microseconds, to take views of the postings it needs; a writer holds it while it edits a
    document's postings in place, which an immutable snapshot would have to copy.
    """

    def __init__(self, k1: float = 0.6, b: float = 0.75, *, language: str = DEFAULT) -> None:
        # Chosen on validation queries, by what words find beside the other parts of a score (decision 0030).
        if not (math.isfinite(k1) and k1 >= 0 and 0 <= b <= 1):
            raise InvalidHyperparameters(f"k1 must be at least 0 and b between 0 and 1, not {k1!r} and {b!r}")
        self.k1, self.b = float(k1), float(b)
        self.language = find_language(language)
        self._adopt(Postings.empty(), Lengths(np.empty(0, np.int32)))
        self._lock = threading.Lock()
        self._counted: tuple[Norms | None, dict[int, int]] = None, {}

    def __len__(self) -> int:
        return len(self._lengths)

    def __contains__(self, slot: int) -> bool:
        return self._lengths.of(slot) >= 0

    def add_many(
        self,
        slots: Sequence[int],
        texts: Sequence[str],
        progress: Progress | None = None,
        *,
        sizes: Sequence[int] | None = None,
    ) -> None:
        """Index all texts, one a document or as `sizes` says; none if a slot is taken or `progress` raises."""
        self._require_free(slots, texts)
        bags: list[tuple[int, Bag]] = []
        for slot, text in zip(slots, texts, strict=True):
            bags.append((int(slot), Bag.of(self.language.terms(text))))
            if progress is not None:
                progress(len(bags), len(texts))
        if self._merge_due(sum(len(bag.keys) for _, bag in bags)) or self._any_removed(slots):
            self._merge(bags, sizes)
        else:
            self._append(bags, sizes)

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
            self._lengths.forget(wanted)
            self._lengths.forget(in_base, REMOVED)
        if self._merge_due():
            self._merge()

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
        keys = [term_key(term) for term in occurrences]
        with self._lock:
            norms, found = self._lengths.norms(self.k1, self.b), self._gather(keys)
        weights = _weights(occurrences, _frequencies(keys, found, norms, self._counts(norms)), norms.documents)
        return _summed(found, weights, norms.values, size), math.fsum(weights)

    def score_of(self, texts: Sequence[str], query: str) -> float:
        """BM25 of a document with these texts, by the best of them, were it among those there are."""
        occurrences = Counter(self.language.terms(query))
        keys = [term_key(term) for term in occurrences]
        if not keys:
            return 0.0
        with self._lock:
            norms, found = self._lengths.norms(self.k1, self.b), self._gather(keys)
        frequencies = _frequencies(keys, found, norms, self._counts(norms))
        weights = list(zip(_weights(occurrences, frequencies, norms.documents), keys, strict=True))
        mean = norms.words / norms.documents if norms.words else 1.0
        return max(self._score(text, weights, mean, whole=len(texts) == 1) for text in texts)

    def _score(self, text: str, weights: Sequence[tuple[float, int]], mean: float, *, whole: bool) -> float:
        bag = Bag.of(self.language.terms(text))
        said = dict(zip(bag.keys, bag.counts, strict=True))
        length = bag.length if whole else max(bag.length, mean)
        norm = self.k1 * (1 - self.b + self.b * length / mean)
        return math.fsum(weight * said[key] / (said[key] + norm) for weight, key in weights if key in said)

    def marker(self, query: str) -> Marker:
        """What finds the words of a query in a text; those that many documents have only where there are no others."""
        asked = list(dict.fromkeys(self.language.terms(query)))
        keys = [term_key(term) for term in asked]
        with self._lock:
            norms = self._lengths.norms(self.k1, self.b)
            counts = self._counts(norms)
            found = None if counts.keys() >= set(keys) else self._gather(keys)
        frequencies = _frequencies(keys, found, norms, counts)
        most = max(norms.documents // COMMON, FEW)
        telling = {term for term, frequency in zip(asked, frequencies, strict=True) if frequency <= most}
        wanted = frozenset(telling or asked)
        return Marker(wanted, self.language.forms)

    def to_arrays(self, order: NDArray[np.intp] | None = None) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays, without removed documents; merges first (a write).

        `order`, all slots in use in rising order, renumbers them: order[i] becomes i.
        """
        self._merge()
        lengths = self._lengths.values
        used = np.flatnonzero(lengths >= 0)
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
            "lengths": lengths[: used[-1] + 1 if len(used) else 0].copy(),
        }

    def _renumbered(self, used: NDArray[np.intp], order: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        if not np.array_equal(used, order):
            raise InvalidInput("order must list every slot in use, rising")
        arrays = self.to_arrays()
        arrays["slots"] = np.searchsorted(order, arrays["slots"]).astype(np.int32)
        arrays["lengths"] = arrays["lengths"][order]
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], language: str = DEFAULT, sizes: NDArray[np.int64] | None = None
    ) -> LexicalIndex:
        """The inverse of `to_arrays`; postings are used in place, memory-mapped or not.

        `sizes` is how many texts each document has, if some have several and no slot is empty. Raises
        UnsupportedFormat, also when another stemmer made the terms, or CorruptStore: rebuild it from the texts then.
        """
        plain = _checked(arrays, language)
        k1, b = plain["parameters"].tolist()
        index = cls(k1, b, language=language)
        base = Postings(**{name: plain[name] for name in ("terms", "offsets", "slots", "counts")})
        lengths = np.array(plain["lengths"], np.int32)
        if sizes is not None and int(sizes.sum()) != np.count_nonzero(lengths >= 0):
            raise CorruptStore("the lexical arrays have other texts than documents; rebuild the index")
        index._adopt(base, Lengths(lengths) if sizes is None else Lengths.grouped(lengths, sizes))
        return index

    def _adopt(self, base: Postings, lengths: Lengths) -> None:
        self._base = base
        self._recent = Recent()
        self._frequencies = np.diff(base.offsets)  # of current documents, by term of the base
        self._removed_postings = 0
        self._lengths = lengths

    def _any_removed(self, slots: Sequence[int]) -> bool:
        return any(self._lengths.of(slot) == REMOVED for slot in slots)

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

    def _append(self, bags: Sequence[tuple[int, Bag]], sizes: Sequence[int] | None) -> None:
        slots = [slot for slot, _ in bags]
        with self._lock:
            if not self._lengths.has_room(slots):
                self._lengths = self._lengths.grown(slots)
            for slot, bag in bags:
                self._recent.add(slot, bag)
            self._lengths.put(slots, [bag.length for _, bag in bags], sizes)

    def _merge_due(self, more: int = 0) -> bool:
        pending = self._recent.size + self._removed_postings + more
        return pending > max(_MERGE_LEAST, _MERGE_SHARE * len(self._base))

    def _merge(self, bags: Sequence[tuple[int, Bag]] = (), sizes: Sequence[int] | None = None) -> None:
        # Built outside the lock; readers see the old state until `_adopt`.
        everything, slots = [*self._recent.bags.items(), *bags], [slot for slot, _ in bags]
        lengths = self._lengths.grown(slots)
        gone = lengths.values == REMOVED
        if not everything and not gone.any():
            return
        base = self._base.merged(everything, gone)
        lengths.forget(np.flatnonzero(gone), ABSENT)
        lengths.put(slots, [bag.length for _, bag in bags], sizes)
        with self._lock:
            self._adopt(base, lengths)

    def _counts(self, norms: Norms) -> dict[int, int]:
        """How many documents have a term, of those that were asked for since the last change."""
        at, counts = self._counted
        if at is not norms or len(counts) > REMEMBERED:
            counts = {}
            self._counted = norms, counts
        return counts

    def _gather(self, keys: Sequence[int]) -> _Gathered:
        """The postings of each term in the base, then of each among the recent."""
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
            texts=in_base + np.array(recent_sizes, np.int64),
        )


def _frequencies(keys: Sequence[int], found: _Gathered | None, norms: Norms, counts: dict[int, int]) -> list[int]:
    """How many documents have each term. Those with the longest postings are asked for again and again."""
    new = [place for place, key in enumerate(keys) if key not in counts]
    if new and found is not None:
        counts |= zip([keys[place] for place in new], found.frequencies(norms, new), strict=True)
    return [counts[key] for key in keys]


def _weights(occurrences: Counter[str], frequencies: Sequence[int], documents: int) -> list[float]:
    """How much each term of a query counts: the rarer, the more."""
    return [
        times * math.log1p((documents - frequency + 0.5) / (frequency + 0.5))
        for times, frequency in zip(occurrences.values(), frequencies, strict=True)
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
