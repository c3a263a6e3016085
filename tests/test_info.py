"""What an index says of itself, in a line and as plain values."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from incdsi.hyperparameters import SAFE
from incdsi.info import Info, Quality, Trial, Tuning

BEFORE = Quality(hits_at_1=60.1, hits_at_10=80.0, mrr_at_10=70.0, queries=400)
AFTER = replace(BEFORE, hits_at_1=64.0)
TUNING = Tuning(
    version=42,
    queries=400,
    hyperparameters=SAFE,
    lexical_weight=0.5,
    nearest_share=0.8,
    before={"learned": BEFORE, "fused": BEFORE},
    after={"learned": BEFORE, "fused": AFTER},
    trials=(Trial(hyperparameters=SAFE, quality=BEFORE),) * 50,
)


def info() -> Info:
    numbers = dict.fromkeys(("documents", "generated_queries", "preserve_rows", "unresolved", "dimension"), 3)
    named = dict.fromkeys(Info.__dataclass_fields__, None)
    return Info(
        **{
            **named,
            **numbers,
            "queries": 1200,
            "held_out_queries": 40,
            "hyperparameters": SAFE,
            "last_tuning": TUNING,
            "version": 45,
            "quality": {"fused": AFTER},
        }
    )


def test_each_shows_itself_in_one_short_line() -> None:
    assert repr(info()) == "Info(3 documents, 1,200 queries, version 45, fused H@1 64.0)"
    assert repr(TUNING) == "Tuning(400 questions at version 42, learned H@1 60.1 -> 60.1, fused H@1 60.1 -> 64.0)"
    assert repr(replace(info(), quality={})) == "Info(3 documents, 1,200 queries, version 45)"


def test_each_comes_back_from_json() -> None:
    assert Info.from_json(json.loads(json.dumps(asdict(info())))) == info()
    assert Tuning.from_json(json.loads(json.dumps(TUNING.to_json()))) == TUNING
