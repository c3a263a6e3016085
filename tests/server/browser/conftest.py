"""A real server on a free port, a real browser, and a page whose console must stay silent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.server.browser.site import ARGUMENTS, DOCUMENTS, PATIENCE, QUERIES, Site, Visit
from tests.server.servers import make

DESKTOP = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's chromium; without one the tests are skipped, except where they must run.

    One a module: while it runs, its process has a running event loop, which other tests must not meet.
    """
    executable = shutil.which("chromium")
    if executable is None:
        if os.environ.get("CI") or os.environ.get("INCDSI_REQUIRE_BROWSER"):
            pytest.fail("expected chromium on the path, found none; install it (apt install chromium)")
        pytest.skip("needs chromium on the path")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server over a small index of outdoor things."""
    with make(tmp_path / "shop") as index:
        index.add_many(DOCUMENTS, QUERIES)
        with Site(index, tmp_path / "shop") as started:
            yield started


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    """Opens the page in a context of its own; afterwards nothing unexpected may have been said in its console."""
    contexts: list[BrowserContext] = []
    said: list[str] = []

    def open_page(path: str = "/", *, ready: bool = True, **options: object) -> Page:
        settings = {"viewport": DESKTOP, "reduced_motion": "reduce", **options}
        context = browser.new_context(base_url=site.url, **settings)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path)
        if ready:
            expect(page.locator("html[data-ready]")).to_be_attached()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for text in said if not any(expected in text for expected in site.expected)] == []
