"""Ratios to the peers, figures beside their aims, and everything else line by line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.index.run import MODES, Result


def ratios(parts: dict[str, Result]) -> dict[str, float]:
    """How many times faster than the peer, by median; under 1 is slower."""
    if not {"squad", "peers"} <= parts.keys():
        return {}
    searches, adds = parts["squad"]["reading"]["search"], parts["squad"]["adds"]
    theirs, their_adds = parts["peers"]["search"], parts["peers"]["adds"]
    found = {
        f"{mode} search / sentence-transformers + {peer}": theirs[f"encode + {peer}"]["p50_ms"]
        / searches[mode]["whole"]["p50_ms"]
        for peer in ("faiss", "chroma")
        for mode in MODES
    }
    for mode in MODES:
        ours = searches[mode]["without_encoding"]["p50_ms"]
        found[f"{mode} search / Chroma, both without encoding"] = theirs["chroma"]["p50_ms"] / ours
    single, batch = adds["one_by_one"], adds["batch"]
    their_single, their_batch = their_adds["one_by_one"], their_adds["batch"]
    for peer in ("faiss", "chroma"):
        found[f"add / sentence-transformers + {peer}, which encode no query"] = (
            their_single[f"encode + {peer}"]["p50_ms"] / single["whole"]["p50_ms"]
        )
    found["add / Chroma, both without encoding"] = (
        their_single["chroma"]["p50_ms"] / single["without_encoding"]["p50_ms"]
    )
    found["batch add / Chroma, both without encoding"] = their_batch["chroma_ms"] / batch["without_encoding_ms"]
    return found


@dataclass(frozen=True)
class Aim:
    """A figure beside what it should be: at most, or at least."""

    what: str
    figure: float
    most: float | None = None
    least: float | None = None

    @property
    def met(self) -> bool:
        return self.figure <= self.most if self.most is not None else self.figure >= (self.least or 0.0)

    def __str__(self) -> str:
        wanted = f"<= {self.most:g}" if self.most is not None else f">= {self.least or 0.0:g}"
        return f"{self.what:<72}{self.figure:>10.3f}  {wanted:<8}{'met' if self.met else 'MISSED'}"


def aims(parts: dict[str, Result]) -> list[Aim]:
    found = []
    if squad_ := parts.get("squad"):
        single, batch = squad_["adds"]["one_by_one"], squad_["adds"]["batch"]
        found += [
            Aim("constrain + solve + commit, one by one, p50 ms", single["core"]["p50_ms"], most=15),
            Aim("constrain + solve + commit, in batches, ms a document", batch["core_ms"], most=4),
        ]
    for name, ratio in ratios(parts).items():
        if "faiss" in name and name.startswith("add"):
            found.append(Aim(f"times as long: {name}", 1 / ratio, most=1.5))
        elif "faiss" in name and name.startswith(("learned search", "fused search")):
            found.append(Aim(f"times faster: {name}", ratio, least=3 if name.startswith("learned") else 2))
    if scale_ := parts.get("scale"):
        found.append(Aim(f"open at {scale_['documents']:,}, seconds", scale_["reading"]["open_seconds"], most=1))
    if rounds_ := parts.get("rounds"):
        found.append(
            Aim(f"memory growth over {rounds_['rounds']:,} add-delete rounds, MB", rounds_["growth_mb"], most=5)
        )
    return found + _quality_aims(parts)


def _quality_aims(parts: dict[str, Result]) -> list[Aim]:
    """No way of searching that anybody could have is better; above them by two where questions are known."""
    wanted = {"quality-squad": 2.0, "quality-nq": 0.0, "quality-clinc": 0.0}
    found = []
    for name, least in wanted.items():
        if part := parts.get(name):
            pairs = {f"fused - {part['best_anchor']}": least, "learned - dense": 0.0, "learned - retrained": -0.3}
            found += [_above(name, part, pair, least) for pair, least in pairs.items() if pair in part["differences"]]
            if (told := part["confidence"]) is not None:
                what = f"{name}: calibration error of the first hit's confidence (n = {told['n']:,})"
                found.append(Aim(what, told["calibration_error"], most=0.05))
            ms = part["fill"]["without_encoding_ms"]
            found.append(Aim(f"{name}: filling without encoding and tuning, ms a document", ms, most=15))
            found.append(Aim(f"{name}: the same with tuning", ms + part["fill"]["tuning_ms"], most=15))
    return found


def _above(name: str, part: Result, pair: str, least: float) -> Aim:
    one = part["differences"][pair]
    low, high = one["interval"]
    return Aim(f"{name}: {pair}, H@1 (n = {one['n']:,}, [{low:+.1f}, {high:+.1f}])", one["h@1"], least=least)


def show(parts: dict[str, Result]) -> None:
    """Ratios first, then aims, then what they come from."""
    for name, ratio in ratios(parts).items():
        print(f"{name:<72}{ratio:>9.2f}x")
    for aim in aims(parts):
        print(aim)
    for name, part in parts.items():
        print(f"\n{name}")
        for line in _lines(part):
            print(f"  {line}")


def _lines(found: Result, above: str = "") -> Iterable[str]:
    """One line a figure or spread, nested names joined."""
    for name, value in found.items():
        label = f"{above}{name.replace('_', ' ')}"
        if isinstance(value, dict) and "p50_ms" in value:
            yield f"{label:<60}p50 {value['p50_ms']:9.2f}  p99 {value['p99_ms']:9.2f} ms  n = {value['n']:,}"
        elif isinstance(value, dict) and "hits_at_1" in value:
            low, high = value.get("h@1_interval", (0.0, 100.0))
            first = f"H@1 {value['hits_at_1']:6.2f} [{low:.1f}, {high:.1f}]"
            measures = f"{first}  H@10 {value['hits_at_10']:6.2f}  MRR@10 {value['mrr_at_10']:6.2f}"
            yield f"{label:<60}{measures}  n = {value['queries']:,}"
        elif isinstance(value, dict) and "standard_error" in value:
            low, high = value["interval"]
            yield f"{label:<60}H@1 {value['h@1']:+6.2f}  [{low:+.2f}, {high:+.2f}]  n = {value['n']:,}"
        elif isinstance(value, dict):
            yield from _lines(value, f"{label}, ")
        elif isinstance(value, float):
            yield f"{label:<60}{value:.3f}"
        elif not isinstance(value, list):
            yield f"{label:<60}{value}"
