"""Files that are almost right: a sound one with a few bytes changed, or bytes out of nowhere."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from incdsi.errors import IncDSIError

SIGNS = b"""" "" , : ; { } [ ] [[[[[[[[ {"a": \\ \\u \\ud800 \\u0000 null true NaN -Infinity 1e999 -0 0 -1 1.5
00000000000000000000000000000000 9223372036854775808 id text title queries metadata taught doc_id split # ``` ../
\xff \xc3 \xed\xa0\x80 \xef\xbb\xbf \xe2\x80\xa8 \x7f \x00 \x1f\x8b""".split()
FRAGMENTS = [*SIGNS, b" ", b"\n", b"\r", b"\r\n", b"\t", b"\x85", b""]

CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, allow_nan=False),
        st.sampled_from([0, 0, 1, 1, 2, 5, 40, 10**9]),
        st.binary(max_size=6) | st.sampled_from(FRAGMENTS),
    ),
    min_size=1,
    max_size=4,
)


def damaged(sound: bytes) -> st.SearchStrategy[bytes]:
    """The file with some bytes cut, put in or replaced; seldom any bytes at all, or the damage gzipped."""

    def change(changes: list[tuple[float, int, bytes]]) -> bytes:
        content = sound
        for place, cut, put in changes:
            start = round(place * len(content))
            content = content[:start] + put + content[start + cut :]
        return content

    return st.one_of(CHANGES.map(change), CHANGES.map(change), CHANGES.map(change).map(gzip.compress), st.binary())


def budget(examples: int, *, always_the_same: bool) -> settings:
    return settings(
        max_examples=examples,
        derandomize=always_the_same,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )


few = budget(40, always_the_same=True)
many = budget(2000, always_the_same=False)


@contextlib.contextmanager
def only_ours() -> Iterator[None]:
    """What incdsi raises on purpose is an answer; anything else is a finding."""
    with contextlib.suppress(IncDSIError):
        yield


Target = Callable[[st.DataObject, Path], None]
