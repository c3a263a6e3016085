"""Power cuts at every moment of a recorded run, and what must be found after each of them."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from powerloss_images import Cut, Disk, Image, cuts, found_in, lay_out
from powerloss_recorder import Mark, Recorder, recording

from incdsi.store import Store

ACKNOWLEDGED, COMMITTED = "acknowledged", "committed"
State = Mapping[str, Any]  # by name of what one can look at: an index, a backup, the answers
Look = Callable[[Path], State]


class Run:
    """A recorded run: the log, and the state at every mark, as the ordinary VFS finds it."""

    def __init__(self, recorder: Recorder, look: Look, scratch: Path) -> None:
        self.log, self._folders = recorder.log, recorder.folders
        self._look, self._scratch = look, scratch
        self._states, self._acknowledged = self._marked_states()

    def cuts(self, *, every: int, seed: int, acknowledged: int = 0) -> Iterator[Cut]:
        """Power cuts at every position, or every so many, after so many acknowledgements.

        An image that asks nothing new is left out.
        """
        seen, start = set(), [0, *self._acknowledged][acknowledged]
        for cut in cuts(self.log, self._folders, set(range(start + seed % every, len(self.log) + 1, every)), seed):
            key = (self.allowed(cut.position), _digest(cut.image))
            if key not in seen:
                seen.add(key)
                yield cut

    def allowed(self, position: int) -> tuple[int, int]:
        """The states that may be found: from the last one acknowledged to the one that was under way."""
        marks = [place for place in self._acknowledged if place <= position]
        ahead = [place for place in self._acknowledged if place > position]
        first = self._acknowledged[marks[-1]] if marks else 0
        return first, self._acknowledged[ahead[0]] if ahead else len(self._states) - 1

    def _loss(self, cut: Cut, folder: Path, use: Callable[[Path], None]) -> str | None:
        """What is wrong after a power cut, looked at in a folder that holds its image."""
        try:
            found = self._look(folder)
            use(folder)
        except Exception as error:
            return f"{cut.kind} at {cut.position}: {error!r}"
        first, last = self.allowed(cut.position)
        for name, value in found.items():
            if value not in [state[name] for state in self._states[first : last + 1]]:
                return f"{cut.kind} at {cut.position}: {name} is not as in states {first} to {last}: {value!r:.300}"
        return None

    def losses(self, use: Callable[[Path], None] = lambda folder: None, **which: int) -> Iterator[str]:
        """All that goes wrong after power cuts; each disk that is sound is used again by `use`."""
        for cut in self.cuts(**which):
            with self._laid_out(cut.image) as folder:
                problem = self._loss(cut, folder, use)
            if problem is not None:
                yield f"{problem} ({which})"

    def _marked_states(self) -> tuple[list[State], dict[int, int]]:
        disk, states, acknowledged = Disk(), [], {}
        with self._laid_out({}) as empty:
            states.append(self._look(empty))
        for position, event in enumerate(self.log):
            disk.take(event)
            if isinstance(event, Mark):
                with self._laid_out(disk.after(disk.pending).image(self._folders)) as folder:
                    states.append(self._look(folder))
                if event.text == ACKNOWLEDGED:
                    acknowledged[position + 1] = len(states) - 1
        return states, acknowledged

    @contextlib.contextmanager
    def _laid_out(self, image: Image) -> Iterator[Path]:
        folder = self._scratch / "image"
        lay_out(image, folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def recorded(root: Path, act: Callable[[Path, Callable[[], None]], None], look: Look, scratch: Path) -> Run:
    """Runs `act(root, acknowledge)` and returns what it did to the disk; nothing it did may be missing in the log."""
    with recording(root) as recorder, _marked_commits(recorder):
        act(root, lambda: recorder.mark(ACKNOWLEDGED))
    disk = Disk()
    for event in recorder.log:
        disk.take(event)
    assert disk.after(disk.pending).image(recorder.folders) == found_in(root), "the log does not tell the whole story"
    return Run(recorder, look, scratch)


@contextlib.contextmanager
def _marked_commits(recorder: Recorder) -> Iterator[None]:
    """Marks the end of every transaction: a verb may take more than one."""
    transaction, amend_answer = Store.transaction, Store.amend_answer

    @contextlib.contextmanager
    def marked(store: Store) -> Iterator[Any]:
        with transaction(store) as changes:
            yield changes
        recorder.mark(COMMITTED)

    def amended(store: Store, *answer: Any) -> None:
        amend_answer(store, *answer)
        recorder.mark(COMMITTED)

    with mock.patch.multiple(Store, transaction=marked, amend_answer=amended):
        yield


def _digest(image: Image) -> bytes:
    whole = hashlib.blake2b(digest_size=16)
    for path, content in image.items():
        whole.update(f"{path}\0{-1 if content is None else len(content)}\0".encode())
        whole.update(content or b"")
    return whole.digest()
