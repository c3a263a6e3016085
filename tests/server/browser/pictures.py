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
from tests.server.browser.site import ARGUMENTS, PATIENCE, Site, row, search

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
MOST = 900  # documents of the standard library
ASKED = 2  # one in so many gets three of its own sentences as questions, of which some are held out
LIVE = "rich"  # the package whose documents are added while the server runs
ROUNDS, EACH = 3, 5
QUESTION, ANSWER = "give up when it takes too long", "asyncio.tasks.wait_for"
DESKTOP, PHONE = {"width": 1360, "height": 940}, {"width": 390, "height": 844}
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
        search(page, "read a zip file")
        page.locator("#query").blur()
        take(page, "phone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, help="folder of the index, made when it is not there")
    given = parser.parse_args().index
    PICTURES.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "copy"  # what the pictures change is changed there
        with filled(given or Path(scratch) / "index") as index:
            index.backup(copy)
        with Index.open(copy) as index, Site(index, copy, quality_seconds=0.5) as site, sync_playwright() as playwright:
            add_live(site)
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            take_all(browser, site)
            browser.close()


if __name__ == "__main__":
    main()
