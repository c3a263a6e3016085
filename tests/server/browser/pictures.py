"""The page's pictures in docs/pictures, from a real server over Python's own documentation.

`python -m tests.server.browser.pictures` takes some minutes; `--index FOLDER` keeps the index for the next time.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from playwright.sync_api import Browser, Page, expect, sync_playwright

from incdsi.demo.corpus import package_documentation, python_documentation
from incdsi.documents import Document
from incdsi.errors import IndexNotFound
from incdsi.index import Index
from incdsi.readers import read_documents
from incdsi.server.settings import ServerSettings
from incdsi.server.shelf import Shelf
from tests.server.browser.site import ARGUMENTS, PATIENCE, Site, row, search
from tests.server.servers import serving

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "docs" / "pictures"
MOST = 384  # documents of the standard library
ASKED = 2  # one in so many gets three of its own sentences as questions, of which some are held out
LIVE = "rich"  # the package whose documents are added while the server runs
ROUNDS, EACH = 3, 5
FEW = 20  # documents of an index that is only listed
QUESTION, ANSWER = "why is my program slow", "sys.setprofile"
DESKTOP, PHONE = {"width": 1360, "height": 940}, {"width": 390, "height": 844}
MANUALS = [ROOT / "docs" / name for name in ("TRUST.md", "how-to/notes.md", "how-to/table.md")]  # dropped on the page
LONG = "what happens when the server is killed while it writes"
GAPS = ["stop a download that hangs", "stop a download that hangs", "make two lists one", "what day is it tomorrow"]
NOVELTY = {
    "id": "recipes.first_done",
    "title": "Take the first answer",
    "text": "Start several tasks, return the result of the one that is done first, and cancel the others. "
    "Useful when the same question goes to several servers and only the quickest answer counts.",
    "queries": "race several coroutines\nwait only for the fastest task",
}


def filled(folder: Path) -> Index:
    """The index in that folder, made and filled when it is not there."""
    try:
        return Index.open(folder)
    except IndexNotFound:
        documents = python_documentation()[:MOST]
        index = Index.create(folder)
        index.add_many(documents, {one.id: sentences(one) for one in documents[::ASKED]})
        return index


def sentences(document: Document) -> list[str]:
    """Three of a document's own sentences, or none."""
    flat = " ".join(document.text.split())
    found = [one.strip() for one in flat.split(". ") if 20 < len(one) < 160][:3]
    return found if len(found) == 3 else []


def add_live(site: Site) -> None:
    """Documents in small groups, with time between them to look at the quality."""
    live = iter(package_documentation(LIVE))
    with httpx2.Client(base_url=site.url, timeout=60) as http:
        for _ in range(ROUNDS):
            measured = len(http.get("/v1/figures").json()["quality"])
            for document in [one for one, _ in zip(live, range(EACH), strict=False)]:
                asked = {"queries": sentences(document)}
                body = {"id": document.id, "title": document.title, "text": document.text, **asked}
                http.post("/v1/documents", json=body).raise_for_status()
            wait_for_quality(http, measured)


def wait_for_quality(http: httpx2.Client, measured: int, seconds: int = 40) -> None:
    end = time.monotonic() + seconds
    while len(http.get("/v1/figures").json()["quality"]) <= measured and time.monotonic() < end:
        time.sleep(0.5)


@contextmanager
def opened(browser: Browser, site: Site, theme: str, size: dict[str, int]) -> Iterator[Page]:
    context = browser.new_context(
        base_url=site.url, viewport=size, color_scheme=theme, device_scale_factor=1.5, reduced_motion="reduce"
    )  # type: ignore[call-overload]
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/")
    expect(page.locator("html[data-ready]")).to_be_attached()
    yield page
    context.close()


def take(page: Page, name: str) -> None:
    page.wait_for_timeout(1500)  # for figures and neighbours to arrive
    page.mouse.move(0, 0)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=PICTURES / f"page-{name}.png", scale="device")


def take_parts(browser: Browser, site: Site) -> None:
    """Files that were dropped, a hit with its passages, and the questions that are answered badly."""
    with opened(browser, site, "light", DESKTOP) as page:
        page.set_input_files("#choose-files", MANUALS)
        expect(page.locator("#files .done")).to_have_count(len(MANUALS), timeout=10 * PATIENCE)
        refused = {"name": "prices.csv", "mimeType": "text/csv", "buffer": b"sku,name\n7,Boots\n"}
        page.set_input_files("#choose-files", [refused])  # type: ignore[list-item]
        expect(page.locator("#files .refused")).to_be_visible()
        take(page, "files")
    with opened(browser, site, "light", DESKTOP) as page:
        search(page, LONG)
        page.locator("#results summary").first.click()
        page.locator("#query").blur()
        take(page, "passages")
    with opened(browser, site, "dark", DESKTOP) as page:
        search(page, LONG)
        page.locator("#results .path").first.click()
        expect(page.locator("#reader .here")).to_be_visible()
        take(page, "reader")
    for theme, size, name in (("light", DESKTOP, "gaps"), ("dark", PHONE, "gaps-phone")):
        with opened(browser, site, theme, size) as page:
            page.keyboard.press("g")
            expect(page.locator("#gaps-list > li").first).to_be_visible()
            take(page, name)


def take_list(browser: Browser, folder: Path) -> None:
    """The list of several indexes."""
    settings = ServerSettings(indexes=folder, port=0)
    with Shelf(settings) as shelf, serving(shelf, settings) as url:
        context = browser.new_context(base_url=url, viewport={"width": 900, "height": 560}, device_scale_factor=1.5)
        page = context.new_page()
        page.goto("/")
        expect(page.locator("#indexes li")).to_have_count(len(shelf.open))
        take(page, "indexes")
        context.close()


def take_all(browser: Browser, site: Site) -> None:
    with opened(browser, site, "light", DESKTOP) as page:
        search(page, QUESTION)
        row(page, ANSWER).locator("[data-act=teach]").click()
        expect(page.locator("#receipt")).to_be_visible()
        take(page, "light")
    with opened(browser, site, "dark", DESKTOP) as page:
        search(page, "wait until several tasks are done")
        page.click("#open-add")
        for name, text in NOVELTY.items():
            page.fill(f"#editor-{name}", text)
        page.click("#editor-save")
        expect(page.locator("#neighbours")).to_be_visible()
        take(page, "dark")
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#neighbours")).to_be_hidden()
    with opened(browser, site, "light", PHONE) as page:
        search(page, "round a number to two digits")
        page.locator("#query").blur()
        take(page, "phone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, help="folder of the index, made when it is not there")
    given = parser.parse_args().index
    PICTURES.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "indexes" / "python"  # what the pictures change is changed there
        with filled(given or Path(scratch) / "index") as index:
            index.backup(copy)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            log = Path(scratch) / "queries.jsonl"
            with Index.open(copy) as index, Site(index, copy, quality_seconds=0.5, log_queries=log) as site:
                add_live(site)
                take_all(browser, site)
                ask(site, GAPS)
                take_parts(browser, site)
            for name, some in (("rich", package_documentation(LIVE)[:FEW]), ("manual", manual())):
                with Index.create(copy.parent / name) as index:
                    index.add_many(some)
            take_list(browser, copy.parent)
            browser.close()


def ask(site: Site, queries: list[str]) -> None:
    for query in queries:
        httpx2.post(f"{site.url}/v1/search", json={"query": query}, timeout=60).raise_for_status()


def manual() -> list[Document]:
    return [document for document, _ in read_documents(ROOT / "docs" / "how-to")]


if __name__ == "__main__":
    main()
