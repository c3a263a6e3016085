"""sync: the index follows a folder of text files."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incdsi.cli.application import app
from incdsi.cli.opening import TOGETHER, is_there, open_index, open_or_create
from incdsi.cli.options import AsJson, EncoderName, IndexPlace, Language, Quiet, SkipBad, is_address
from incdsi.cli.output import count, emit, note, sentences, show
from incdsi.cli.progress import progress
from incdsi.cli.reading import left_out, read_batches
from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, InvalidInput
from incdsi.progress import Progress

if TYPE_CHECKING:
    from incdsi.search_index import SearchIndex

MARK = "source"  # metadata that names the folder a document came from
OWN_MARK = "original_source"  # what a file's front matter calls so


@app.command()
def sync(
    folder: Annotated[Path, typer.Argument(help="A folder of .txt, .md and .rst files.")],
    index: IndexPlace,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done and do nothing.")] = False,
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Put before every id.")] = "",
    encoder: EncoderName = None,
    language: Language = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Add new files, update changed ones, delete vanished ones.

    A document's id is the file's path inside the folder; its metadata field "source" names the folder,
    and only documents with that mark are changed or deleted. A second folder with the same file names
    needs a --prefix.

    \b
    Examples:
      incdsi sync notes/ --index shop --dry-run
      incdsi sync notes/ --index shop
      incdsi sync manual/ --index shop --prefix manual/
    """
    mark = _mark(folder, index)
    documents, skipped = _read(folder, prefix, skip_bad, mark)
    with ExitStack() as stack:
        opened = stack.enter_context(open_index(index)) if is_there(index) else None
        plan = _plan(opened, folder, prefix, documents, mark)
        if not dry_run and plan.any:
            hidden = as_json or quiet
            if opened is None:
                opened = stack.enter_context(open_or_create(index, encoder, language=language, hidden=hidden))
            with progress("syncing", hidden=hidden) as report:
                plan.carry_out(opened, report)
    if skipped and not as_json:
        note(sentences(skipped, "files"), quiet=quiet)
    for sentence in left_out(folder):
        note(sentence, quiet=as_json or quiet)
    if as_json:
        emit({"dry_run": dry_run, **plan.as_json(), "skipped": skipped})
    else:
        show(*plan.lines(dry_run))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What brings the index to the folder's state."""

    added: list[Document]
    updated: list[Document]
    deleted: list[str]
    unchanged: int

    @property
    def any(self) -> bool:
        return bool(self.added or self.updated or self.deleted)

    def carry_out(self, index: SearchIndex, report: Progress) -> None:
        """Delete, update, add: a renamed file does not meet its old self."""
        done, total = 0, len(self.deleted) + len(self.updated) + len(self.added)
        try:
            for start in range(0, len(self.deleted), TOGETHER):
                done += index.delete(self.deleted[start : start + TOGETHER])
                report(done, total)

            def written(count: int, of: int) -> None:
                nonlocal done
                done = max(done, min(before + count, total))  # when the index tunes itself, all are in
                report(*((done, total) if of == len(documents) else (count, of)))

            for write, documents in ((index.upsert_many, self.updated), (index.add_many, self.added)):
                before = done
                write(documents, progress=written)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(
                f"stopped; at least {done} of {total} changes are kept; run the same command for the rest"
            ) from stop

    def lines(self, dry_run: bool) -> list[str]:
        marks = [
            *(f"- {id}" for id in self.deleted),
            *(f"~ {document.id}" for document in self.updated),
            *(f"+ {document.id}" for document in self.added),
        ]
        done = f"{len(self.added):,} added, {len(self.updated):,} updated, {len(self.deleted):,} deleted"
        would = "would be: " if dry_run else ""
        return [*(marks if dry_run else []), f"{would}{done}, {self.unchanged:,} unchanged"]

    def as_json(self) -> dict[str, object]:
        return {
            "added": [document.id for document in self.added],
            "updated": [document.id for document in self.updated],
            "deleted": self.deleted,
            "unchanged": self.unchanged,
        }


def _read(folder: Path, prefix: str, skip_bad: bool, mark: str) -> tuple[list[Document], list[str]]:
    from incdsi.readers.beir import is_beir

    if not folder.is_dir() or is_beir(folder):
        found = "a BEIR folder" if folder.is_dir() else "not a folder"
        raise InvalidInput(f"{folder} is {found}; sync takes a folder of text files, use add or upsert for the rest")
    (batch,) = read_batches(str(folder))
    if batch.problems and not skip_bad:
        raise InvalidInput(
            f"{sentences(batch.problems, 'files')}\nnothing was changed; fix this, or leave it out with --skip-bad"
        )
    return [_marked(document, prefix, mark) for document in batch.documents], batch.problems


def _marked(document: Document, prefix: str, mark: str) -> Document:
    own = {OWN_MARK if name == MARK else name: value for name, value in document.metadata.items()}
    return replace(document, id=prefix + document.id, metadata={**own, MARK: mark})


def _mark(folder: Path, place: str) -> str:
    """The folder's name; behind a server with this machine's, where another may have a folder of that name."""
    path = folder.resolve().as_posix()
    return f"{socket.gethostname()}:{path}" if is_address(place) else path


def _plan(index: SearchIndex | None, folder: Path, prefix: str, documents: list[Document], mark: str) -> Plan:
    there = {document.id: document for document in index.documents()} if index is not None else {}
    mine = {id: document for id, document in there.items() if document.metadata.get(MARK) == mark}
    foreign = [document.id for document in documents if document.id in there and document.id not in mine]
    if foreign:
        raise DuplicateDocument(
            f"{count(len(foreign))} with the same id came from elsewhere than {folder}, {foreign[0]!r} first; "
            f"delete them, or keep both with --prefix"
        )
    present = {document.id for document in documents}
    return Plan(
        added=[document for document in documents if document.id not in mine],
        updated=[document for document in documents if document.id in mine and document != mine[document.id]],
        deleted=sorted(id for id in mine if id not in present and not _still_there(folder, prefix, id)),
        unchanged=sum(document == mine.get(document.id) for document in documents),
    )


def _still_there(folder: Path, prefix: str, id: str) -> bool:
    """Whether the file is there: one that was left out as bad has not vanished."""
    return id.startswith(prefix) and (folder / id.removeprefix(prefix)).is_file()
