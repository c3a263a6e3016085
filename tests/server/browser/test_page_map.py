from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.server.browser.site import Site, Visit, map_says, ranked, search

LIGHTS = """async () => {
  const canvas = document.querySelector('#map');
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  const colour = getComputedStyle(canvas).getPropertyValue('--accent');
  const accent = colour.match(/[0-9a-f]{2}/gi).map(part => parseInt(part, 16));
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
  copy.drawImage(canvas, 0, 0);
  const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
  let lit = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] > 200 && accent.every((part, i) => Math.abs(part - data[at + i]) < 12)) lit++;
  }
  return lit;
}"""


def lights(page: Page) -> int:
    """How many pixels of the map have the accent's colour."""
    return int(page.evaluate(LIGHTS))


def test_every_document_is_on_the_map_and_hits_are_lit(visit: Visit) -> None:
    page = visit()
    expect(page.locator("#map")).to_have_attribute("data-points", "12")
    dark = lights(page)
    assert dark == 0
    search(page, "tent in the wind")
    expect(page.locator("#map")).to_have_attribute("data-hits", "10")
    assert lights(page) > 100


def test_a_new_document_appears_and_its_neighbours_light_up(visit: Visit, site: Site) -> None:
    page = visit(reduced_motion="no-preference")
    page.get_by_role("button", name="Add document").click()
    page.fill("#editor-id", "raincoat")
    page.fill("#editor-title", "Rain coat")
    page.fill("#editor-text", "A coat against wind and rain that folds into a pocket.")
    page.click("#editor-save")
    expect(page.locator("#map")).to_have_attribute("data-newest", "raincoat")
    expect(page.locator("#map")).to_have_attribute("data-points", "13")
    expect(page.locator("#map")).to_have_attribute("data-lit", "6")
    assert lights(page) > 100
    expect(page.locator("#neighbours-heading")).to_have_text("Near “Rain coat”")
    expect(page.locator("#neighbours-list li")).to_have_count(6)
    expect(page.locator("#neighbours-list li").first).to_have_text("Rain jacket")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#map")).to_have_attribute("data-points", "12")
    expect(page.locator("#neighbours")).to_be_hidden()


def test_looking_at_a_result_lights_its_neighbours(visit: Visit) -> None:
    page = visit()
    search(page, "lake")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#map")).to_have_attribute("data-selected", ranked(page)[0])
    expect(page.locator("#map")).to_have_attribute("data-lit", "6")


def test_arrow_keys_walk_over_the_map_and_enter_opens(visit: Visit) -> None:
    page = visit()
    page.keyboard.press("m")
    expect(page.locator("#map")).to_be_focused()
    walked = set()
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
        expect(page.locator("#map")).to_have_attribute("data-selected", re.compile(".+"))
        walked.add(map_says(page, "selected"))
        expect(page.locator("#map-caption")).not_to_contain_text("documents")
    assert len(walked) > 1
    title = page.locator("#map-caption").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("#reader-heading")).to_have_text(title)
    page.keyboard.press("Escape")
    expect(page.locator("#map")).to_be_focused()


def test_pointing_names_a_document_and_pressing_chooses_it(visit: Visit) -> None:
    page = visit()
    point = page.evaluate(
        """async () => {
          const {points} = await (await fetch('v1/map')).json();
          const {MapView} = await import('/page/mapview.js');
          const box = document.querySelector('#map').getBoundingClientRect();
          const view = new MapView();
          view.resize(box.width, box.height);
          view.cover(points);
          const lamp = points.find(point => point.id === 'lamp');
          const [x, y] = view.toScreen(lamp);
          return {x: box.x + x, y: box.y + y};
        }"""
    )
    page.mouse.move(point["x"], point["y"])
    expect(page.locator("#map-label")).to_have_text("Head lamp")
    page.mouse.click(point["x"], point["y"])
    expect(page.locator("#map")).to_have_attribute("data-selected", "lamp")
    expect(page.locator("#neighbours-heading")).to_have_text("Near “Head lamp”")
    page.locator("#neighbours-list button").first.click()
    expect(page.locator("#reader")).to_be_visible()


def test_zooming_in_and_dragging_moves_what_is_seen(visit: Visit) -> None:
    page = visit()
    snapshot = "document.querySelector('#map').toDataURL()"
    whole = page.evaluate(snapshot)
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function(f"before => {snapshot} !== before", arg=whole)
    near = page.evaluate(snapshot)
    box = page.locator("#map").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 150, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 160, steps=3)
    page.mouse.up()
    page.mouse.move(0, 0)
    page.wait_for_function(f"before => {snapshot} !== before", arg=near)
    assert map_says(page, "selected") == ""  # a drag chooses nothing
    page.get_by_role("button", name="Show the whole map").click()
    page.wait_for_function(f"before => {snapshot} === before", arg=whole)
