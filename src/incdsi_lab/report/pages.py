"""The report: one Markdown file, one self-contained HTML page, LaTeX tables, figures as SVG and PNG."""

from __future__ import annotations

import base64
import html
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from incdsi_lab.report.figures import Figure
from incdsi_lab.report.sections import Aim, Section
from incdsi_lab.report.tables import Table

WIDE = 118


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a reader needs to do it again."""

    title: str
    summary: tuple[str, ...]
    command: str
    facts: Mapping[str, str]


def write_report(folder: Path | str, about: About, sections: Sequence[Section]) -> Path:
    """Write everything below `folder`; the path of the HTML page."""
    target = Path(folder)
    for name in ("figures", "tables"):
        (target / name).mkdir(parents=True, exist_ok=True)
    drawn: dict[str, bytes] = {}
    for figure in (figure for section in sections for figure in section.figures):
        drawn[figure.name] = figure.svg()
        (target / "figures" / f"{figure.name}.svg").write_bytes(drawn[figure.name])
        (target / "figures" / f"{figure.name}.png").write_bytes(figure.png())
    for table in (table for section in sections for table in section.tables):
        (target / "tables" / f"{table.name}.md").write_text(table.markdown(), encoding="utf-8")
        (target / "tables" / f"{table.name}.tex").write_text(table.latex(), encoding="utf-8")
    (target / "report.md").write_text(markdown(about, sections), encoding="utf-8")
    page = target / "report.html"
    page.write_text(webpage(about, sections, drawn), encoding="utf-8")
    return page


def markdown(about: About, sections: Sequence[Section]) -> str:
    """The report as Markdown, beside its folder of figures."""
    facts = "\n".join(f"| {name} | {value} |" for name, value in about.facts.items())
    blocks = [
        f"# {about.title}",
        *map(_wrapped, about.summary),
        f"```\n{about.command}\n```",
        *_aims_markdown(sections),
        *(block for section in sections for block in _section_markdown(section)),
        f"## How it was made\n\n| | |\n| --- | --- |\n{facts}",
    ]
    return "\n\n".join(blocks) + "\n"


def webpage(about: About, sections: Sequence[Section], drawn: Mapping[str, bytes]) -> str:
    """The report as one HTML page that needs nothing else; `drawn` are the figures' SVG by name."""
    facts = "".join(f"<tr><th scope=row>{_text(n)}</th><td>{_text(v)}</td></tr>" for n, v in about.facts.items())
    contents = "".join(f'<li><a href="#{section.name}">{_text(section.title)}</a></li>' for section in sections)
    return PAGE.substitute(
        title=_text(about.title),
        summary=_paragraphs(about.summary),
        command=_text(about.command),
        aims=_aims_html(sections),
        contents=contents,
        sections="".join(_section_html(section, drawn) for section in sections),
        facts=facts,
    )


def _aims_markdown(sections: Sequence[Section]) -> list[str]:
    lines = [f"- {_verdict(aim)}: {aim.text}. {aim.found}" for aim in _aims(sections)]
    against = [f"- {text}" for section in sections for text in section.against]
    return [
        *(["## Aims", "\n".join(lines)] if lines else []),
        *(["## Where our figures go against the paper's claims", "\n".join(against)] if against else []),
    ]


def _section_markdown(section: Section) -> list[str]:
    figures = [f"![{_alt(figure)}](figures/{figure.name}.svg)" for figure in section.figures]
    return [
        f"## {section.title}",
        *map(_wrapped, section.paragraphs),
        *figures,
        *(table.markdown().rstrip() for table in section.tables),
    ]


def _section_html(section: Section, drawn: Mapping[str, bytes]) -> str:
    figures = "".join(_figure_html(figure, drawn[figure.name]) for figure in section.figures)
    tables = "".join(_table_html(table) for table in section.tables)
    title = _text(section.title)
    return f'<section id="{section.name}"><h2>{title}</h2>{_paragraphs(section.paragraphs)}{figures}{tables}</section>'


def _figure_html(figure: Figure, svg: bytes) -> str:
    source = base64.b64encode(svg).decode()
    return (
        f'<figure><img src="data:image/svg+xml;base64,{source}" alt="{_alt(figure)}">'
        f"<figcaption>{_text(figure.caption)}</figcaption></figure>"
    )


def _table_html(table: Table) -> str:
    return table.html()


def _aims_html(sections: Sequence[Section]) -> str:
    rows = "".join(
        f'<li class="{"yes" if aim.reached else "no"}"><strong>{_verdict(aim)}</strong> '
        f"{_text(aim.text)}. {_text(aim.found)}</li>"
        for aim in _aims(sections)
    )
    against = "".join(f"<li>{_text(text)}</li>" for section in sections for text in section.against)
    return (f"<h2>Aims</h2><ul class=aims>{rows}</ul>" if rows else "") + (
        f"<h2>Where our figures go against the paper’s claims</h2><ul>{against}</ul>" if against else ""
    )


def _aims(sections: Sequence[Section]) -> list[Aim]:
    return [aim for section in sections for aim in section.aims]


def _verdict(aim: Aim) -> str:
    return "Reached" if aim.reached else "Not reached"


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"<p>{_text(text)}</p>" for text in texts)


def _text(text: str) -> str:
    """Escaped, with **bold** and `code`."""
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html.escape(text, quote=False))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)


def _alt(figure: Figure) -> str:
    return html.escape(figure.caption.replace("]", ")").replace("[", "("))


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDE, break_long_words=False, break_on_hyphens=False))


PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light; --ink: #1c1c1c; --soft: #5b5b5b; --line: #dcdcdc; --blue: #0072b2; --back: #fafafa; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 64rem; color: var(--ink); background: white;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .75rem; }
h2 { font-size: 1.2rem; margin: 2.75rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--line); }
p, li { max-width: 48rem; }
a { color: var(--blue); }
pre, code { font: .875em/1.5 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--back); }
pre { padding: .75rem 1rem; border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; }
nav ol { columns: 2; padding-left: 1.4rem; margin: .5rem 0; font-size: .94rem; }
.table { overflow-x: auto; margin: 1.25rem 0; }
table { border-collapse: collapse; font-size: .8125rem; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; font-weight: 600; padding: 0 0 .4rem; }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; white-space: nowrap; }
tbody th { white-space: nowrap; }
th, td { text-align: left; padding: .3rem .55rem; border-bottom: 1px solid var(--line); font-weight: 400; }
thead th { font-weight: 600; }
tbody tr:hover { background: var(--back); }
.number { text-align: right; white-space: nowrap; }
figure { margin: 1.25rem 0; }
figure img { max-width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .875rem; max-width: 48rem; }
.aims { list-style: none; padding: 0; }
.aims li { padding: .5rem .8rem; margin: .5rem 0; border-left: 4px solid; background: var(--back); }
.aims .yes { border-color: #007a5a; } .aims .no { border-color: #c44f00; }
.aims .yes strong:first-child { color: #00664b; } .aims .no strong:first-child { color: #a84300; }
@media (max-width: 40rem) { nav ol { columns: 1; } body { padding-top: 1.25rem; } }
@media print { nav { display: none; } section { break-inside: avoid-page; } }
</style>
</head>
<body>
<h1>$title</h1>
$summary
<pre>$command</pre>
$aims
<nav aria-label="Experiments"><h2>Experiments</h2><ol>$contents</ol></nav>
<main>$sections</main>
<section id="how"><h2>How it was made</h2><div class="table facts"><table>$facts</table></div></section>
</body>
</html>
""")
