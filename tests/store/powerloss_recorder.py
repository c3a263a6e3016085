"""Everything a process does to the files below a folder, in order: SQLite's by a VFS, ours by Python's own calls.

`recording(root)` logs every write, truncation, sync and change of a name; `powerloss_images.py` makes of that log
what a power cut may leave. With `fault` it also makes the n-th call fail.
"""

# ruff: noqa: N802  (SQLite's names)
from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import apsw

ROOT = 0  # the number of the folder itself
SHARED = "-shm"  # memory that SQLite's processes share: made anew after a power cut


class Write(NamedTuple):
    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    file: int
    size: int


class Rename(NamedTuple):
    """`old` in folder `source` becomes `new` in folder `file`; without `old` it is made, without `new` removed."""

    file: int
    old: str | None
    new: str | None
    inode: int
    source: int


class Sync(NamedTuple):
    """A file's bytes, or a folder's names, are on the disk."""

    file: int


class Mark(NamedTuple):
    """What the program said, or where it was."""

    text: str


Event = Write | Truncate | Rename | Sync | Mark


class Fault(NamedTuple):
    """The n-th call (from 1) fails with this errno, and every one after it if it lasts."""

    call: int
    errno: int
    lasting: bool = False


class Recorder:
    """Files and folders below `root` have a number each; a name may change, a number does not."""

    def __init__(self, root: Path, fault: Fault | None = None) -> None:
        self.log: list[Event] = []
        self.calls = 0
        self.fault = fault
        self.folders = {ROOT}
        self._root = os.path.realpath(root)
        self._numbers = {self._root: ROOT}
        self._next = ROOT
        for parent, folders, names in os.walk(self._root):  # what is there already is on the disk
            for name in sorted([*folders, *(name for name in names if not name.endswith(SHARED))]):
                self._given(os.path.join(parent, name))
        self.log += [Sync(number) for number in sorted(self.folders)]

    def mark(self, text: str) -> None:
        self.log.append(Mark(text))

    def step(self, error: Callable[[int], Exception], *, needs_room: bool = True) -> None:
        """Counts a call that changes something; fails when its turn has come. A full disk refuses no removal."""
        self.calls += 1
        fault = self.fault
        if fault is None or not (needs_room or fault.errno != errno.ENOSPC):
            return
        if self.calls == fault.call or (fault.lasting and self.calls > fault.call):
            raise error(fault.errno)

    def number(self, path: str) -> int | None:
        """The number of what is under that path; None outside the folder."""
        return self._numbers.get(os.path.realpath(path))

    def within(self, path: str) -> bool:
        return _place(path).startswith(self._root + os.sep)

    def created(self, path: str, *, folder: bool = False) -> int:
        """A new file or folder; the number it has."""
        place = _place(path)
        if place not in self._numbers:
            self._next += 1
            self._numbers[place] = self._next
            if folder:
                self.folders.add(self._next)
            folder = self._folder(place)
            self.log.append(Rename(folder, None, os.path.basename(place), self._next, folder))
        return self._numbers[place]

    def removed(self, path: str) -> None:
        place = _place(path)
        number, folder = self._numbers.pop(place), self._folder(place)
        self.log.append(Rename(folder, os.path.basename(place), None, number, folder))

    def renamed(self, old: str, new: str) -> None:
        source, target = _place(old), _place(new)
        number, folders = self._numbers[source], (self._folder(target), self._folder(source))
        for place in [p for p in self._numbers if p == source or p.startswith(source + os.sep)]:
            self._numbers[target + place[len(source) :]] = self._numbers.pop(place)
        names = (os.path.basename(source), os.path.basename(target))
        self.log.append(Rename(folders[0], *names, number, folders[1]))

    def synced(self, path: str) -> None:
        self.log.append(Sync(self._numbers[_place(path)]))

    def _folder(self, place: str) -> int:
        return self._numbers[os.path.dirname(place)]

    def _given(self, path: str) -> None:
        number = self.created(path, folder=os.path.isdir(path))
        if number not in self.folders:
            self.log += [Write(number, 0, Path(path).read_bytes()), Sync(number)]


def _place(path: str) -> str:
    """An absolute path whose last name may be a new one."""
    parent, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(parent), name)


@contextlib.contextmanager
def recording(root: Path, fault: Fault | None = None) -> Iterator[Recorder]:
    """Logs whatever happens below `root` in this process while the block lasts."""
    recorder = Recorder(root, fault)
    vfs = RecordingVFS(recorder)
    try:
        with _own_calls(recorder), mock.patch.object(apsw, "Connection", QuietlyClosed):
            yield recorder
    finally:
        apsw.set_default_vfs("unix")
        vfs.unregister()


# SQLite's files


class QuietlyClosed(apsw.Connection):
    """Closing never fails for SQLite, whatever becomes of the files; only a VFS in Python makes it seem so."""

    def close(self, force: bool = False) -> None:
        with contextlib.suppress(apsw.IOError, apsw.FullError):
            super().close(force)

    @contextlib.contextmanager
    def backup(self, *arguments: Any) -> Iterator[apsw.Backup]:  # type: ignore[override]
        backup = super().backup(*arguments)
        try:
            yield backup
        finally:
            with contextlib.suppress(apsw.IOError, apsw.FullError):
                backup.close()


class RecordingVFS(apsw.VFS):
    """The ordinary VFS, watched."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        super().__init__("recording", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not self._recorder.within(path):
            return apsw.VFSFile("unix", name, flags)
        return RecordingFile(self._recorder, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self._recorder.step(_sqlite_error, needs_room=False)
        super().xDelete(filename, syncdir)
        self._recorder.removed(filename)
        if syncdir:
            self._recorder.synced(os.path.dirname(filename))


class RecordingFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, path: str, name: Any, flags: list[int]) -> None:
        if not os.path.exists(path):
            recorder.step(_sqlite_error)
        super().__init__("unix", name, flags)
        self._recorder, self._path = recorder, path
        self._number = recorder.created(path)
        # Of a journal or log that it may have created, SQLite syncs the folder together with the file, once:
        # test_store_durability.py sees it from outside.
        logs = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
        self._folder_too = bool(flags[0] & logs and flags[0] & apsw.SQLITE_OPEN_CREATE)

    def xWrite(self, data: Any, offset: int) -> None:
        try:
            self._recorder.step(_sqlite_error)
        except apsw.Error:
            self._write(bytes(data)[: len(data) // 2], offset)  # a disk fills in the middle of a write
            raise
        self._write(bytes(data), offset)

    def _write(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._recorder.log.append(Write(self._number, offset, data))

    def xTruncate(self, newsize: int) -> None:
        self._recorder.step(_sqlite_error)
        super().xTruncate(newsize)
        self._recorder.log.append(Truncate(self._number, newsize))

    def xSync(self, flags: int) -> None:
        self._recorder.step(_sqlite_error)
        super().xSync(flags)
        self._recorder.log.append(Sync(self._number))
        if self._folder_too:
            self._recorder.synced(os.path.dirname(self._path))
            self._folder_too = False


def _sqlite_error(number: int) -> Exception:
    return apsw.FullError("full") if number == errno.ENOSPC else apsw.IOError("disk I/O error")


# Our own files


class _File(io.FileIO):
    """A file that Python writes."""

    def __init__(self, recorder: Recorder, path: str, mode: str) -> None:
        recorder.step(_os_error)
        super().__init__(path, mode)
        self._recorder, self._number = recorder, recorder.created(path)
        if "w" in mode:
            recorder.log.append(Truncate(self._number, 0))

    def write(self, data: Any) -> int:
        content = bytes(data)
        try:
            self._recorder.step(_os_error)
        except OSError:
            self._write(content[: len(content) // 2])
            raise
        return self._write(content)

    def _write(self, content: bytes) -> int:
        offset = self.tell()
        written = super().write(content)
        assert written == len(content)
        self._recorder.log.append(Write(self._number, offset, content))
        return written


@contextlib.contextmanager
def _own_calls(recorder: Recorder) -> Iterator[None]:
    """Python's calls that change files, watched; `copyfile` takes the ones it has everywhere."""
    real = {name: getattr(os, name) for name in ("open", "pwrite", "ftruncate", "fsync", "rename", "unlink", "mkdir")}
    real["rmdir"], plain_open = os.rmdir, io.open

    def opened(file: Any, mode: str = "r", buffering: int = -1, *text: Any, **options: Any) -> Any:
        if isinstance(file, int) or not set(mode) & set("wxa+") or not recorder.within(os.fspath(file)):
            return plain_open(file, mode, buffering, *text, **options)
        assert "+" not in mode, f"mode {mode} was not modelled yet"
        buffered = io.BufferedWriter(_File(recorder, os.fspath(file), mode.strip("bt")))
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *text, **options)

    def open_descriptor(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        new = bool(flags & os.O_CREAT) and recorder.within(os.fspath(path)) and not os.path.exists(path)
        if new:
            recorder.step(_os_error)
        descriptor: int = real["open"](path, flags, *arguments, **options)
        if new:
            recorder.created(os.fspath(path))
        return descriptor

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        watched = _watched(recorder, descriptor)
        written: int = real["pwrite"](descriptor, data, offset)
        recorder.log += [Write(number, offset, data[:written]) for number in watched]
        return written

    def ftruncate(descriptor: int, size: int) -> None:
        watched = _watched(recorder, descriptor)
        real["ftruncate"](descriptor, size)
        recorder.log += [Truncate(number, size) for number in watched]

    def fsync(descriptor: int) -> None:
        watched = _watched(recorder, descriptor)
        real["fsync"](descriptor)
        recorder.log += [Sync(number) for number in watched]

    def rename(source: Any, target: Any) -> None:
        watched = recorder.within(os.fspath(source)) and not os.fspath(source).endswith(SHARED)
        if watched:
            recorder.step(_os_error)
        real["rename"](source, target)
        if watched:
            recorder.renamed(os.fspath(source), os.fspath(target))

    def removing(call: str) -> Callable[..., None]:
        def remove(path: Any, *, dir_fd: int | None = None) -> None:
            full = os.fspath(path) if dir_fd is None else os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
            known = recorder.within(full) and os.path.lexists(full)
            if known:
                recorder.step(_os_error, needs_room=False)
            real[call](path, dir_fd=dir_fd)
            if known and not full.endswith(SHARED):
                recorder.removed(full)

        return remove

    def mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        assert dir_fd is None
        watched = recorder.within(os.fspath(path)) and not os.path.lexists(path)
        if watched:
            recorder.step(_os_error)
        real["mkdir"](path, mode)
        if watched:
            recorder.created(os.fspath(path), folder=True)

    calls = {
        "open": open_descriptor,
        "pwrite": pwrite,
        "ftruncate": ftruncate,
        "fsync": fsync,
        "rename": rename,
        "replace": rename,
        "unlink": removing("unlink"),
        "remove": removing("unlink"),
        "rmdir": removing("rmdir"),
        "mkdir": mkdir,
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.multiple(os, **calls))
        stack.enter_context(mock.patch.object(shutil, "_USE_CP_SENDFILE", False))
        for module in (builtins, io):
            stack.enter_context(mock.patch.object(module, "open", opened))
        yield


def _watched(recorder: Recorder, descriptor: int) -> list[int]:
    """The number of an open file of ours, if it is one; counted as a call on it."""
    number = recorder.number(os.readlink(f"/proc/self/fd/{descriptor}"))
    if number is None:
        return []
    recorder.step(_os_error)
    return [number]


def _os_error(number: int) -> Exception:
    return OSError(number, os.strerror(number))
