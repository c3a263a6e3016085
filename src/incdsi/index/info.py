"""What there is to know about an index."""

from __future__ import annotations

from collections import Counter

from incdsi.engine.protocol import Engine
from incdsi.index.quality import probes, quality
from incdsi.info import Info, Tuning


def info_of(engine: Engine, last_tuning: Tuning | None) -> Info:
    """Reads every document, one after another."""
    view, version = engine.view(), engine.version
    settings, counts = view.settings, Counter[str]()
    general = settings.method == "general"
    for record in engine.records():
        counts["documents"] += 1
        for query in record.queries:
            counts.update(name for name in ("generated", "held_out", "preserved") if getattr(query, name))
        counts["queries"] += len(record.queries)
    # The paper's form holds nothing out: what older versions marked so in its indexes was given up.
    asked = list(probes(engine.records(), counts["held_out"])) if general and counts["held_out"] else []
    return Info(
        documents=counts["documents"],
        queries=counts["queries"],
        generated_queries=counts["generated"],
        held_out_queries=counts["held_out"] if general else 0,
        preserve_rows=counts["preserved"] if general else counts["documents"],
        unresolved=len(engine.unresolved()),
        dimension=settings.dimension,
        encoder=settings.fingerprint,
        language=settings.language,
        method=settings.method,
        hyperparameters=settings.hyperparameters,
        lexical_weight=settings.lexical_weight,
        nearest_share=settings.nearest_share,
        tuning=settings.tuning,
        last_tuning=last_tuning,
        version=version,
        vector_search=engine.vector_search,
        quality=quality(view, engine.records(), asked) if asked else {},
    )
