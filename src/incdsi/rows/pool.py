"""Rows in several tables under one numbering: what another table holds already is not held twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from incdsi.rows.growing import Growing
from incdsi.rows.products import Doubles, Floats
from incdsi.rows.table import Table

OWN = 0  # the pool's own table; others are 1, 2, ...
NOBODY = -1  # in place of a number
Indices = NDArray[np.integer[Any]]


class Where(NamedTuple):
    """In which table each of some rows lies (m,), and at which index of it (m,); an index in OWN means nothing yet."""

    tables: NDArray[np.int8]
    indices: Indices

    @classmethod
    def nowhere(cls, count: int) -> Where:
        """Of rows that no other table holds."""
        return cls(np.full(count, OWN, dtype=np.int8), np.zeros(count, dtype=np.intp))

    @classmethod
    def joined(cls, some: Sequence[Where]) -> Where:
        return cls(*(np.concatenate(parts) for parts in zip(cls.nowhere(0), *some, strict=True)))

    def of(self, here: Any) -> Where:
        """The same of some of these rows."""
        return Where(self.tables[here], self.indices[here])

    def by_table(self) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """Each table with the places among these rows of those it holds, and their indices in it."""
        for table in np.flatnonzero(np.bincount(self.tables)).tolist():
            here = np.flatnonzero(self.tables == table)
            yield table, here, self.indices[here].astype(np.intp)


class Pool:
    """Rows (n, h) by number, in the order in which they came; a row of another table is its only once."""

    def __init__(self, own: Table, others: Sequence[Table]) -> None:
        self.tables = (own, *others)
        self._tables, self._indices = Growing(np.int8), Growing(np.int32)
        self._numbers = tuple(Growing(np.int32) for _ in self.tables)

    def __len__(self) -> int:
        return len(self._tables.values)

    @property
    def where(self) -> Where:
        """Where all rows lie, by number."""
        return Where(self._tables.values, self._indices.values)

    def numbers(self, table: int) -> NDArray[np.int32]:
        """The numbers of the first rows of a table, NOBODY for one that is not in here; none in here is beyond them."""
        return self._numbers[table].values

    def append(self, where: Where) -> None:
        """The next rows lie there."""
        first = len(self)
        for table, here, indices in where.by_table():
            numbers, beyond = self._numbers[table], int(indices.max()) + 1
            numbers.append(np.full(max(beyond - len(numbers.values), 0), NOBODY, dtype=np.int32))
            numbers.values[indices] = first + here
        self._tables.append(where.tables)
        self._indices.append(where.indices)

    def gather(self, numbers: Indices) -> Floats:
        """The rows of these numbers, (m, h)."""
        return self._rows(numbers, Table.gather)

    def approximate(self, numbers: Indices) -> Floats:
        """The rows of these numbers as the screen knows them, (m, h)."""
        return self._rows(numbers, Table.approximate)

    def lengths(self, numbers: Indices) -> Doubles:
        """The lengths of these rows, (m,)."""
        return self.gathered(numbers, [table.lengths for table in self.tables])

    def errors(self, numbers: Indices) -> Doubles:
        """How far these rows may be from what the screen makes of them, (m,)."""
        return self.gathered(numbers, [table.errors for table in self.tables])

    def gathered(self, numbers: Indices, values: Sequence[NDArray[np.floating[Any]]]) -> Doubles:
        """Of values that lie as the rows do, table by table, those of these rows, (m,)."""
        found = np.empty(len(numbers))
        for table, here, indices in self.where.of(numbers).by_table():
            found[here] = values[table][indices]
        return found

    def _rows(self, numbers: Indices, get: Callable[[Table, NDArray[np.intp]], Floats]) -> Floats:
        parts = list(self.where.of(numbers).by_table())
        if len(parts) == 1:  # as almost always: nothing is copied twice
            table, _, indices = parts[0]
            return get(self.tables[table], indices)
        found = np.empty((len(numbers), self.tables[OWN].width), dtype=np.float32)
        for table, here, indices in parts:
            found[here] = get(self.tables[table], indices)
        return found
