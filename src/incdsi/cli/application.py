"""The application every command registers with, and how it ends.

0 done · 1 refused, one sentence on stderr · 2 wrong usage · 3 `verify` found problems · 130 stopped by Ctrl-C
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from incdsi import __version__
from incdsi.cli.output import printable
from incdsi.errors import IncDSIError

REFUSED, PROBLEMS, STOPPED = 1, 3, 130
FIRST = (
    "add",
    "search",
    "teach",
    "learn",
    "gaps",
    "get",
    "update",
    "upsert",
    "delete",
    "resolve",
    "sync",
    "info",
    "tune",
    "train",
)
WrongUsage: Any = typer.BadParameter.__mro__[1]  # click's, or the one inside typer


class Commands(TyperGroup):
    """Errors that incdsi raises on purpose, the disk's and Ctrl-C end in a sentence and a code, never a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The daily ones first."""
        others = [name for name in super().list_commands(ctx) if name not in FIRST]
        return [*FIRST, *others]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for argument in args:
            if argument != argument.encode("utf-8", "replace").decode("utf-8"):
                raise typer.BadParameter(f"not UTF-8: {argument!r:.80}")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except WrongUsage as error:
            error.message = printable(error.message)
            raise
        except IncDSIError as error:
            leave(REFUSED, str(error))
        except UnicodeDecodeError as error:
            leave(REFUSED, f"stdin is not UTF-8: byte 0x{error.object[error.start]:02x}; convert it first")
        except KeyboardInterrupt as stop:
            leave(STOPPED, str(stop) or "stopped; nothing was left half-written")
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            leave(REFUSED, f"{error.filename}: {error.strerror}" if error.filename else str(error))


@contextlib.contextmanager
def stopping(sentence: Callable[[], str]) -> Iterator[None]:
    """When Ctrl-C ends the block it leaves this sentence, unless what was stopped left its own."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(str(stop) or sentence()) from stop


def leave(code: int, sentence: str) -> NoReturn:
    """End with a sentence on stderr."""
    typer.secho(printable(sentence), err=True, fg=typer.colors.YELLOW if code == STOPPED else typer.colors.RED)
    raise typer.Exit(code)


app = typer.Typer(
    cls=Commands,
    name="incdsi",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"incdsi {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A search index that learns. Begin with: incdsi add docs.jsonl --index shop"""


def run() -> None:
    """Do what the command line says, with the commands that are registered."""
    try:
        app()
    except KeyboardInterrupt:  # before a command began
        raise SystemExit(STOPPED) from None
