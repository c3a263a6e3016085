"""A generator's identity as plain values or as a user types it, and the generator made from them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from incdsi.errors import InvalidInput
from incdsi.text.generators.protocol import Generator
from incdsi.text.generators.spans import Spans


def named(text: str) -> Generator:
    """The generator that users call `spans:N`, or `t5:MODEL` (a folder or a name); InvalidInput for anything else."""
    kind, _, of = text.partition(":")
    if kind == "t5" and of:
        from incdsi.text.generators.seq2seq import Seq2Seq  # here: it imports torch

        return Seq2Seq(of)
    if kind == "spans" and of.isascii() and of.isdigit() and int(of) > 0:
        return Spans(limit=int(of))
    raise InvalidInput(
        f"unknown generator {text!r}; write spans:N for at most N sentences a document, "
        "or t5:MODEL with the folder or name of a T5"
    )


def described(generator: Generator) -> dict[str, Any]:
    """Its name and parameters; for the caller's own, where it is defined."""
    if type(generator) is Spans:
        return {"name": "spans", **asdict(generator)}
    one: Any = generator
    seq2seq = sys.modules.get("incdsi.text.generators.seq2seq")  # never imported here: it imports torch
    if seq2seq is not None and type(one) is seq2seq.Seq2Seq:
        return {"name": "seq2seq", "model": one.model, "sampling": asdict(one.sampling)}
    kind = one if hasattr(one, "__qualname__") else type(one)
    return {"name": "own", "defined": f"{kind.__module__}.{kind.__qualname__}"}


def restored(described: Mapping[str, Any]) -> Generator:
    """The generator with that name and these parameters; InvalidInput if it cannot be restored."""
    name, parameters = described["name"], {key: value for key, value in described.items() if key != "name"}
    if name == "own":
        raise InvalidInput(
            f"the queries of this index are written by a generator of your own, {parameters.get('defined')}; "
            "open the index with generator=... to add or update documents"
        )
    unknown = InvalidInput(
        f"the queries of this index are written by the generator {name!r} with {parameters}, "
        "unknown to this version; upgrade incdsi, or open the index with generator=..."
    )
    try:
        if name == "spans":
            return Spans(**parameters)
        if name == "seq2seq":
            from incdsi.text.generators.seq2seq import Sampling, Seq2Seq  # here: it imports torch

            return Seq2Seq(parameters["model"], sampling=Sampling(**parameters["sampling"]))
    except (TypeError, KeyError) as error:  # parameters of a newer version
        raise unknown from error
    raise unknown
