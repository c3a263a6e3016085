"""Tables, figures and pages: well-formed, escaped, the same for the same data."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from incdsi.errors import InvalidInput
from incdsi_lab.report.figures import Figure, Panel, Series
from incdsi_lab.report.machine import machine
from incdsi_lab.report.pages import About, markdown, write_report
from incdsi_lab.report.paper import printed_table
from incdsi_lab.report.sections import Aim, Section
from incdsi_lab.report.tables import Table

TABLE = Table(
    name="t",
    caption="50 % & more",
    columns=("method", "H@1", "p"),
    rows=(("a_b <c>", "**46.5**", "-"), ("d | e", "47.0 [46.0, 48.0]", "+1.0*")),
)
FIGURE = Figure(
    name="f",
    caption="Two <kinds>",
    panels=(
        Panel(
            title="lines",
            x="x",
            y="y",
            series=(
                Series(label="general", style="general", x=(1, 10), y=(2, 3), spread=(0.1, 0.2)),
                Series(label="level", kind="level", style="retraining", y=(2.5,)),
                Series(label="points", kind="points", x=(1.0,), y=(2.0,), labels=("here",)),
            ),
            log_x=True,
        ),
        Panel(title="bars", x="s", y="", series=(Series(label="", kind="bars", y=(1, 20), labels=("BM25", "dense")),)),
    ),
)
ABOUT = About(title="A <title>", summary=("One `code` & **bold**.",), command="incdsi repro x", facts={"seed": "0"})
SECTION = Section(
    name="one",
    title="One",
    paragraphs=("Text.",),
    tables=(TABLE,),
    figures=(FIGURE,),
    aims=(Aim(text="Be good", found="Found 1.", reached=True), Aim(text="Be best", found="Found 0.", reached=False)),
    against=("They say <this>.",),
)


class Balanced(HTMLParser):
    """Fails on a tag that is closed without being open, or never."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_markdown_keeps_bars_inside_cells() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[0] == "**50 % & more**"
    assert lines[3] == "| --- | ---: | ---: |"
    assert "d \\| e" in lines[5]


def test_latex_escapes_and_marks() -> None:
    text = TABLE.latex()
    assert r"50 \% \& more" in text
    assert r"a\_b" in text
    assert r"\textbf{46.5}" in text
    assert text.count(r"\\") == 3
    assert r"\begin{tabular}{lrr}" in text


def test_html_escapes_and_marks() -> None:
    text = TABLE.html()
    assert "a_b &lt;c&gt;" in text
    assert "<strong>46.5</strong>" in text
    Balanced().feed(text)


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match="expected 2 cells, found 1"):
        Table(name="t", caption="c", columns=("a", "b"), rows=(("1",),))


def test_figures_are_the_same_bytes_for_the_same_data() -> None:
    assert FIGURE.svg() == FIGURE.svg()
    root = ElementTree.fromstring(FIGURE.svg())
    assert root.tag.endswith("svg")
    assert FIGURE.png().startswith(b"\x89PNG")


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    page = write_report(tmp_path, ABOUT, [SECTION])
    parser = Balanced()
    parser.feed(page.read_text())
    assert parser.open == []
    assert all(source.startswith(("data:", "#")) for source in parser.sources)
    assert "A &lt;title&gt;" in page.read_text()
    assert "They say &lt;this&gt;." in page.read_text()
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["f.png", "f.svg"]
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["t.md", "t.tex"]


def test_aims_say_whether_they_are_reached() -> None:
    text = markdown(ABOUT, [SECTION])
    assert "- Reached: Be good. Found 1." in text
    assert "- Not reached: Be best. Found 0." in text
    assert "They say <this>." in text


def test_the_papers_figures_stand_beside_its_own_datasets_only() -> None:
    printed = printed_table("nq320k")
    assert printed is not None
    assert ("IncDSI", "10,000", "64.4/61.1", "86.3/86.3", "2.7 min") in printed.rows
    assert printed_table("msmarco") is not None
    assert printed_table("squad_plus") is None


def test_the_machine_is_described() -> None:
    found = machine(("numpy", "no-such-package"))
    assert found["cores"] >= 1
    assert found["no-such-package"] == "not installed"
