"""The server under test, what is in its index, and the presses that several tests share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from playwright.sync_api import Locator, Page, expect

from incdsi.documents import Document
from incdsi.index import Index
from incdsi.server.run import Server, address, bind
from incdsi.server.settings import ServerSettings

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 20_000  # milliseconds; a machine may be busy
Visit = Callable[..., Page]  # opens the page, see conftest.py
REFUSED = "Failed to load resource"  # what the browser itself says about an answer that is an error


def _document(id: str, title: str, text: str) -> Document:
    return Document(id=id, title=title, text=text)


DOCUMENTS = [
    _document("boots", "Waterproof boots", "Boots for hiking in rain and snow. They stay dry in a river."),
    _document("sandals", "River sandals", "Light sandals for crossing a river on a warm day."),
    _document("tent", "Two-person tent", "A tent for two, for wind on a summit and rain in a valley."),
    _document("stove", "Gas stove", "A small stove that boils water for food in three minutes."),
    _document("lamp", "Head lamp", "A lamp for the trail at night, with a red light for the map."),
    _document("compass", "Compass", "A compass and a map find the way through a forest without a phone."),
    _document("rope", "Climbing rope", "A rope for the summit, sixty metres, dry treated against snow."),
    _document("jacket", "Rain jacket", "A jacket against wind and rain that folds into its own pocket."),
    _document("bottle", "Steel bottle", "A bottle keeps water warm for a night and cold for a day."),
    _document("gloves", "Wool gloves", "Gloves for snow and wind, warm even when wet."),
    _document("bridge", "The bridge in the valley", "The old bridge over the lake is closed at night until spring."),
    _document("cabin", "Mountain cabin", "The cabin by the lake has a fire, twelve beds and a view of the stars."),
]
QUERIES = {"boots": ["shoes for rain"], "cabin": ["where to sleep near the lake"]}


class Site:
    """The real server in a thread, on a port that stays the same when it is stopped and started again."""

    def __init__(self, index: Index, folder: Path, **settings: Any) -> None:
        self.index = index
        self.folder = folder
        self.url = ""
        self.settings = settings
        self.expected: list[str] = []  # what may be said in the browser's console

    def start(self) -> None:
        port = int(self.url.rpartition(":")[2] or 0)
        settings = ServerSettings(index=self.folder, port=port, stop_seconds=1, **self.settings)
        listening = threading.Event()
        bound = bind(settings)
        self.url = address(bound)
        self._server = Server(self.index, settings, listening.set)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [bound]}, daemon=True)
        self._thread.start()
        assert listening.wait(20), "expected the server to listen, found it does not"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def restart(self, **settings: Any) -> None:
        self.stop()
        self.settings = settings
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def search(page: Page, query: str) -> None:
    """Type a query and wait for its results."""
    page.fill("#query", query)
    shows(page, query)


def shows(page: Page, query: str) -> None:
    """Wait until the results on screen are those of a query."""
    expect(page.locator("#results")).to_have_attribute("data-query", query)


def rows(page: Page) -> Locator:
    return page.locator("#results > li")


def row(page: Page, id: str) -> Locator:
    return page.locator(f"#results > li[data-id='{id}']")


def ranked(page: Page) -> list[str]:
    """The ids on screen, best first."""
    return [str(id) for id in rows(page).evaluate_all("rows => rows.map(row => row.dataset.id)")]


def map_says(page: Page, name: str) -> str:
    """What the map shows: the number of points, hits or lit neighbours, or the newest's or selected's id."""
    return page.locator("#map").get_attribute(f"data-{name}") or ""
