"""A disk that refuses the n-th call, for every n: what a verb says then, and what it leaves."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from powerloss_recorder import Fault, Recorder, recording

from incdsi.errors import IncDSIError


class Closable(Protocol):
    def close(self) -> None: ...


Opened = TypeVar("Opened", bound=Closable)
KINDS = [(number, lasting) for number in (errno.ENOSPC, errno.EIO) for lasting in (False, True)]


@dataclass(frozen=True, kw_only=True)
class Trial(Generic[Opened]):
    """A verb on what `open` opens in a copy of `template`; `look` is what is there, `use` goes on afterwards.

    When the verb raises, nothing of it was kept. All of it may have been when it only tidies up (`tidying`), and on
    a disk that fails for good, where nothing can be taken back.
    """

    template: Path
    scratch: Path
    open: Callable[[Path], Opened]
    verb: Callable[[Opened, Path], object]
    look: Callable[[Path], Any]
    use: Callable[[Opened], None]
    tidying: bool = False

    def problems(self, *, every: int, seed: int) -> Iterator[str]:
        """What goes wrong when a call fails: every call in every way, or every so many of them."""
        with self._copied() as root:
            before = self.look(root)
            with recording(root) as recorder, contextlib.closing(self.open(root)) as opened:
                recorder.calls = 0
                self.verb(opened, root)
                calls = recorder.calls
            after = self.look(root)
        assert calls > 0
        faults = (Fault(call, *kind) for call in range(1, calls + 1) for kind in KINDS)
        for fault in itertools.islice(faults, seed % every, None, every):
            with self._copied() as root, recording(root) as recorder:
                for problem in self._tried(root, recorder, fault, before, after):
                    lasting = "and all after it" if fault.lasting else "alone"
                    yield f"call {fault.call} of {calls} {lasting}, {os.strerror(fault.errno)}: {problem}"

    def _tried(self, root: Path, recorder: Recorder, fault: Fault, before: Any, after: Any) -> Iterator[str]:
        opened = self.open(root)
        try:
            recorder.calls, recorder.fault = 0, fault
            allowed = [after]
            try:
                self.verb(opened, root)
            except Exception as error:
                failing = fault.lasting and fault.errno == errno.EIO
                allowed = [before, after] if self.tidying or failing else [before]
                if not isinstance(error, IncDSIError):
                    yield f"raised {error!r}"
            recorder.fault = None
            found = self.look(root)
            if found not in allowed:
                yield f"left {found!r:.200}, expected one of {allowed!r:.400}"
            self.use(opened)
            used = self.look(root)
        except Exception as error:
            yield f"could not go on: {error!r}"
            return
        finally:
            recorder.fault = None
            opened.close()
        if self.look(root) != used:
            yield "opened again it is another"

    @contextlib.contextmanager
    def _copied(self) -> Iterator[Path]:
        root = self.scratch / "trial"
        shutil.copytree(self.template, root)
        try:
            yield root
        finally:
            shutil.rmtree(root)
