"""What a power cut may leave of a recorded disk.

What was synced is there. Of what was not, each write and each change of a name may be there or not, in any
combination; the last write may be torn, and bytes that were not synced may be anything. A rename is atomic.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from powerloss_recorder import ROOT, Event, Mark, Rename, Sync, Truncate, Write

SECTORS = (512, 4096)
Image = dict[str, bytes | None]  # by path: what is in a file; None for a folder


class Disk:
    """What is on the disk for certain, and what is on its way there."""

    def __init__(self) -> None:
        self.files: dict[int, bytearray] = {}
        self.folders: dict[int, dict[str, int]] = {ROOT: {}}
        self.pending: list[Write | Truncate | Rename] = []

    def take(self, event: Event) -> None:
        """What happens next."""
        if isinstance(event, Sync):
            synced = self._synced_by(event)
            self.apply(self.pending[place] for place in sorted(synced))
            self.pending = [one for place, one in enumerate(self.pending) if place not in synced]
        elif not isinstance(event, Mark):
            self.pending.append(event)

    def _synced_by(self, sync: Sync) -> set[int]:
        """Which of what is pending; with a rename between two folders, what happened before it in the other one."""
        until = {sync.file: len(self.pending)}  # by file: the changes before this place are synced
        for place in reversed(range(len(self.pending))):
            one = self.pending[place]
            both = {one.file, one.source} if isinstance(one, Rename) else {one.file}
            if any(place < until.get(file, 0) for file in both):
                until |= {file: max(until.get(file, 0), place + 1) for file in both}
        return {place for place, one in enumerate(self.pending) if place < until.get(one.file, 0)}

    def apply(self, changes: Iterable[Write | Truncate | Rename]) -> None:
        """They reached the disk."""
        for change in changes:
            if isinstance(change, Rename):
                if change.old is not None:
                    self.folders.setdefault(change.source, {}).pop(change.old, None)
                if change.new is not None:
                    self.folders.setdefault(change.file, {})[change.new] = change.inode
            else:
                _apply(self.files.setdefault(change.file, bytearray()), change)

    def after(self, changes: Iterable[Write | Truncate | Rename]) -> Disk:
        """This disk with some of what is pending."""
        new = copy.copy(self)
        new.folders = {number: dict(names) for number, names in self.folders.items()}
        changes = list(changes)
        touched = {change.file for change in changes}
        new.files = {number: bytearray(held) if number in touched else held for number, held in self.files.items()}
        new.apply(changes)
        return new

    def image(self, folders: set[int]) -> Image:
        """Everything that has a name."""
        found: Image = {}

        def walk(number: int, path: str) -> None:
            for name, inode in sorted(self.folders.get(number, {}).items()):
                if inode in folders:
                    found[path + name] = None
                    walk(inode, f"{path}{name}/")
                else:
                    found[path + name] = bytes(self.files.get(inode, b""))

        walk(ROOT, "")
        return found


def _apply(held: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        del held[change.size :]
        held.extend(bytes(change.size - len(held)))
    else:
        held.extend(bytes(max(0, change.offset - len(held))))
        held[change.offset : change.offset + len(change.data)] = change.data


class Cut(NamedTuple):
    """One thing that a power cut after `position` events may leave."""

    position: int
    kind: str
    image: Image


def cuts(log: Sequence[Event], folders: set[int], positions: set[int], seed: int) -> Iterator[Cut]:
    """Images of power cuts at these positions of the log, each position in every way."""
    disk = Disk()
    for position in range(len(log) + 1):
        if position in positions:
            choice = random.Random(f"{seed} {position}")
            for kind, changes in ways(disk.pending, choice):
                yield Cut(position, kind, disk.after(changes).image(folders))
        if position < len(log):
            disk.take(log[position])


def ways(
    pending: Sequence[Write | Truncate | Rename], choice: random.Random
) -> Iterator[tuple[str, list[Write | Truncate | Rename]]]:
    """What may have reached the disk of what was under way."""
    everything = list(pending)
    yield "nothing", []
    if not pending:
        return
    yield "everything", everything
    yield "prefix", everything[: choice.randrange(len(everything))]
    for number in range(3):
        yield f"subset {number}", [one for one in everything if choice.random() < 0.5]
    data = [place for place, one in enumerate(everything) if isinstance(one, Write)]
    names = [one for one in everything if isinstance(one, Rename)]
    if names:
        yield "names without bytes", list(names)
    if not data:
        return
    yield "bytes without names", [one for one in everything if not isinstance(one, Rename)]
    last = data[-1]
    for sector in SECTORS:
        torn = _torn(everything[last], sector, choice)
        yield f"torn at {sector}", [*everything[:last], torn, *everything[last + 1 :]]
    yield "garbage", [_garbage(one, choice) for one in everything]
    yield "some garbage", [_garbage(one, choice) if choice.random() < 0.3 else one for one in everything]
    yield "zeros", [one._replace(data=bytes(len(one.data))) if isinstance(one, Write) else one for one in everything]


def _torn(write: Event, sector: int, choice: random.Random) -> Write:
    """The first sectors of a write, at least none and not all; sectors are places on the disk, not in the write."""
    assert isinstance(write, Write)
    ends = range(-(-(write.offset + 1) // sector) * sector, write.offset + len(write.data), sector)
    kept = choice.choice(ends) - write.offset if ends else 0
    return write._replace(data=write.data[:kept])


def _garbage(change: Write | Truncate | Rename, choice: random.Random) -> Write | Truncate | Rename:
    return change._replace(data=choice.randbytes(len(change.data))) if isinstance(change, Write) else change


def lay_out(image: Image, folder: Path) -> None:
    """Puts an image into a new folder."""
    folder.mkdir()
    for path, content in image.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def found_in(folder: Path) -> Image:
    """What is in a folder now."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith("-shm")
    }
