"""A collection of ir_datasets with its parts: `irds:beir/scifact`."""

from __future__ import annotations

from incdsi.errors import InvalidFile
from incdsi.readers import irds
from incdsi_lab.collection import Collection, Gathering, Judged, Part
from incdsi_lab.data.fields import numbered

NAMES: dict[Part, tuple[str, ...]] = {"train": ("train",), "val": ("dev", "val", "validation"), "test": ("test",)}


def read_irds(source: str) -> Collection:
    """The collection of that name, with the queries of its parts train, dev and test, which are other names below it.

    Judgements above zero count. A query with several documents becomes one for each, as in `read_beir`.
    """
    parts = _parts(source)
    gathering = Gathering(source.removeprefix(irds.PREFIX).replace("/", "-"))
    for line, (_, document) in enumerate(irds.documents(source), start=1):
        if isinstance(document, InvalidFile):
            raise document
        gathering.add_document(document, source, line)
    for part, name in parts.items():
        seen: dict[str, int] = {}
        for line, (query_id, query) in enumerate(irds.judged_with_ids(source, name, None), start=1):
            judged = Judged(
                id=f"{part}/{numbered(query_id, seen)}", text=query.text, document_id=query.document_id, split=part
            )
            gathering.add_query(judged, f"{source}/{name}", line)
    return gathering.collection(source)


def _parts(source: str) -> dict[Part, str]:
    """What each part is called here; refused when there is nothing to learn from or to measure with."""
    found = {part: name for part, names in NAMES.items() for name in names if irds.is_known(f"{source}/{name}")}
    missing = [part for part in ("train", "test") if part not in found]
    if missing and irds.is_known(source):
        above = source.rpartition("/")[0]
        named = f"; name {above}, not a part of it" if irds.is_known(f"{above}/train") else ""
        raise InvalidFile(f"a study needs the parts train and test, and there is no {missing[0]}{named}", path=source)
    return found
