"""The demo itself: `python -m incdsi.demo` or `make demo`."""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import textwrap
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from incdsi.demo.corpus import choice, package_documentation, python_documentation
from incdsi.documents import Document
from incdsi.errors import IncDSIError
from incdsi.index import Index
from incdsi.progress import announcing
from incdsi.text.encoders import Encoder

LIVE = "rich"  # the package whose documents are added live; installed with incdsi
QUESTIONS = (
    "wait until several coroutines are done",
    "compare two texts and show what changed",
    "how do I read a zip file",
)
LESSON = ("a cache that forgets what nobody uses", "weakref.WeakValueDictionary")
DEFAULT = Path("demo-index")
MOST = 2000  # documents; embedding them is most of the demo's time


class Demo:
    """Fills an empty index, adds documents live, searches, teaches, deletes, and says what to type next."""

    def __init__(self, console: Console, folder: Path, most: int, encoder: Encoder | None = None) -> None:
        self.console = console
        self.folder = folder
        self.most = most
        self.encoder = encoder

    def run(self) -> None:
        self._say("1", "An index of your own Python's documentation, built from nothing, without training.")
        found = python_documentation()
        documents = choice(found, self.most)
        if len(documents) < len(found):
            self.console.print(
                f"   {len(documents):,} of its {len(found):,} documents; for all of them: `--documents {len(found)}`",
                style="dim",
                highlight=False,
            )
        if self.folder == DEFAULT:  # the last demo's; any other folder must be empty
            shutil.rmtree(self.folder, ignore_errors=True)
        with announcing(lambda said: self.console.print(f"   {said} ...", style="dim", highlight=False)):
            index = Index.create(self.folder, self.encoder)
        with index:
            self._fill(index, documents)
            self._say("2", f"Documentation of [bold]{LIVE}[/], added live: no retraining, no other vector touched.")
            live = self._add_live(index)
            self._say("3", "Search: learned scores and BM25, fused.")
            for question in QUESTIONS:
                self._search(index, question)
            self._say("4", "Teach: from now on, this question finds that document.")
            self._teach(index, *LESSON)
            self._say("5", "Delete: gone from the index at once, and from the files after `incdsi compact`.")
            self._delete(index, live)
        self._next_steps()

    def _fill(self, index: Index, documents: list[Document]) -> None:
        begin = time.perf_counter()
        columns = (TextColumn("   {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=self.console) as progress:
            task = progress.add_task("adding", total=len(documents))
            additions = index.add_many(documents, progress=lambda done, total: progress.update(task, completed=done))
        seconds = time.perf_counter() - begin
        encoding = sum(addition.seconds["encode"] for addition in additions)
        each = 1e3 * (seconds - encoding) / len(documents)
        self.console.print(
            f"   {len(documents):,} documents in {seconds:.0f} s: {encoding:.0f} s to embed their texts, "
            f"then {each:.1f} ms each to place and store"
        )

    def _add_live(self, index: Index) -> str:
        table = Table(
            "document", "embed", "solve", "on disk", "total", "outcome", box=None, padding=(0, 2), header_style="dim"
        )
        added = ""
        for document in itertools.islice(package_documentation(LIVE), 8):
            begin = time.perf_counter()
            addition = index.add(document)
            total = time.perf_counter() - begin
            spent = addition.seconds
            parts = (spent["encode"], spent["constrain"] + spent["solve"], spent["commit"], total)
            outcome = f"close to {addition.conflicts[0]}" if addition.conflicts else "wins its queries"
            table.add_row(document.id, *(f"{1e3 * part:.0f} ms" for part in parts), outcome)
            added = document.id
        self.console.print(table)
        return added

    def _search(self, index: Index, question: str) -> None:
        begin = time.perf_counter()
        hits = index.search(question, k=3)
        spent = time.perf_counter() - begin
        self.console.print(f"   [bold]{question}[/]  [dim]{1e3 * spent:.0f} ms[/]", highlight=False)
        for hit in hits:
            line = textwrap.shorten(hit.document.text, 72, placeholder=" …")
            self.console.print(
                f"     {hit.rank}. [cyan]{hit.document_id}[/]  [dim]{line}[/]", highlight=False, soft_wrap=True
            )

    def _teach(self, index: Index, question: str, id: str) -> None:
        if id not in index:
            id = index.search(question, k=20)[-1].document_id
        before = _rank(index, question, id)
        begin = time.perf_counter()
        index.teach(question, id)
        spent = time.perf_counter() - begin
        self.console.print(
            f"   [bold]{question}[/] -> [cyan]{id}[/]: rank {before} before, "
            f"[green]{_rank(index, question, id)}[/] after, {1e3 * spent:.1f} ms"
        )

    def _delete(self, index: Index, id: str) -> None:
        begin = time.perf_counter()
        index.delete(id)
        spent = time.perf_counter() - begin
        self.console.print(
            f"   [cyan]{id}[/] deleted in {1e3 * spent:.1f} ms; {len(index):,} documents, {_problems(index)}"
        )

    def _next_steps(self) -> None:
        self._say("→", f"The index is in [bold]{self.folder}[/]. Try next:")
        for line in (
            f'incdsi search "open a file for writing" --index {self.folder}',
            f'incdsi teach "keep my secrets safe" secrets --index {self.folder}',
            f"incdsi info --index {self.folder}",
            "incdsi add your-documents.jsonl --index shop",
        ):
            self.console.print(f"   [green]{_programs()}/{line}[/]", highlight=False, soft_wrap=True)

    def _say(self, number: str, sentence: str) -> None:
        self.console.print(f"\n[bold magenta]{number}[/]  {sentence}")


def _programs() -> Path:
    """Where `incdsi` is installed, as one would type it here."""
    folder = Path(sys.executable).parent
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _rank(index: Index, question: str, id: str) -> str:
    """Its rank by learned score, which is what teaching changes."""
    ids = [hit.document_id for hit in index.search(question, k=100, mode="learned")]
    return str(ids.index(id) + 1) if id in ids else "beyond 100"


def _at_least_one(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return number


def _problems(index: Index) -> str:
    found = index.verify()
    return "every byte verified" if not found else found[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="incdsi.demo", description=__doc__)
    parser.add_argument("--index", type=Path, default=DEFAULT, help="where to build the index")
    parser.add_argument("--documents", type=_at_least_one, default=MOST, help=f"at most this many; default {MOST}")
    arguments = parser.parse_args()
    console = Console()
    try:
        Demo(console, arguments.index, arguments.documents).run()
    except KeyboardInterrupt:
        console.print(f"\nStopped. What was added so far is kept in [bold]{arguments.index}[/].")
        sys.exit(130)
    except IncDSIError as error:
        console.print(f"[red]{error}[/]")
        sys.exit(1)


if __name__ == "__main__":
    main()
