"""Tables as Markdown, LaTeX and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from incdsi.errors import InvalidInput

NUMBER = re.compile(r"^[-+−]?[\d.,]+\b|^-$|^$")
LATEX = {"\\": r"\textbackslash{}", **{sign: rf"\{sign}" for sign in "&%$#_{}"}, "~": r"\textasciitilde{}"}
LATEX |= {"^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "×": r"$\times$"}
LATEX |= {"β": r"$\beta$", "∗": "$^{*}$", "λ": r"$\lambda$", "γ": r"$\gamma$"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with a file name, a caption, column heads and rows of text; `**bold**` marks what stands out."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InvalidInput(f"table {self.name}: expected {len(self.columns)} cells, found {len(row)}: {row}")

    def markdown(self) -> str:
        """A pipe table under its caption."""
        marks = ["---:" if right else "---" for right in self._numeric()]
        lines = [self.columns, marks, *self.rows]
        body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        return f"**{self.caption}**\n\n{body}\n"

    def latex(self) -> str:
        """A booktabs table, ready to be included."""
        layout = "".join("r" if right else "l" for right in self._numeric())
        head, *body = (" & ".join(_latex(cell) for cell in line) + r" \\" for line in (self.columns, *self.rows))
        return "\n".join(
            [
                r"\begin{table}[t]",
                rf"\caption{{{_latex(self.caption)}}}\label{{tab:{self.name}}}",
                rf"\centering\begin{{tabular}}{{{layout}}}",
                r"\toprule",
                head,
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def html(self) -> str:
        """A table element with its caption."""
        sides = self._numeric()
        head = "".join(
            f'<th scope="col"{_side(right)}>{_html(c)}</th>' for c, right in zip(self.columns, sides, strict=True)
        )
        return (
            f"<div class=table><table><caption>{_html(self.caption)}</caption><thead><tr>{head}</tr></thead><tbody>"
            + "".join(_html_row(row, sides) for row in self.rows)
            + "</tbody></table></div>"
        )

    def _numeric(self) -> list[bool]:
        """Which columns stand on the right: those with numbers, or nothing, in every cell."""
        columns: list[Sequence[str]] = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        return [bool(cells) and all(NUMBER.match(cell.strip("* ")) for cell in cells) for cells in columns]


def _html_row(row: tuple[str, ...], sides: Sequence[bool]) -> str:
    first = f'<th scope="row">{_html(row[0])}</th>'
    rest = (f"<td{_side(right)}>{_html(cell)}</td>" for cell, right in zip(row[1:], sides[1:], strict=True))
    return f"<tr>{first}{''.join(rest)}</tr>"


def _side(right: bool) -> str:
    return " class=number" if right else ""


def _html(text: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text))


def _latex(text: str) -> str:
    escaped = "".join(LATEX.get(letter, letter) for letter in text.replace("**", "\0"))
    return re.sub("\0(.+?)\0", r"\\textbf{\1}", escaped)
