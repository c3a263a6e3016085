"""Prometheus metrics: latencies by step, documents, version, conflicts, queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from incdsi.documents import Addition

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """One index's metrics, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._add = self._histogram("incdsi_add_seconds", "From a document's arrival to its answer.")
        self._add_part = self._histogram("incdsi_add_part_seconds", "Each step of adding a document.", "part")
        self._search = self._histogram("incdsi_search_seconds", "One query, from its turn to its hits.")
        self._search_part = self._histogram("incdsi_search_part_seconds", "Each step of one query.", "part")
        self._conflicts = Counter(
            "incdsi_conflicts", "Documents that additions conflicted with.", registry=self.registry
        )
        self._requests = Counter(
            "incdsi_requests", "Requests by route and status.", ("route", "status"), registry=self.registry
        )
        self._group = Histogram(
            "incdsi_group_documents",
            "Documents added together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 1024),
            registry=self.registry,
        )

    def watch(self, documents: Callable[[], int], version: Callable[[], int], waiting: Callable[[], int]) -> None:
        """Also report the size and version of the index, and the length of its write queue."""
        self._gauge("incdsi_documents", "Documents in the index.", documents)
        self._gauge("incdsi_version", "Version of the index.", version)
        self._gauge("incdsi_queue_waiting", "Writes waiting their turn.", waiting)

    def added(self, additions: Sequence[Addition], seconds: float) -> None:
        """Record documents written together, and how long it took."""
        for addition in additions:
            self._add.observe(seconds)
            self._conflicts.inc(len(addition.conflicts))
            for part, spent in addition.seconds.items():
                self._add_part.labels(part).observe(spent)

    def searched(self, seconds: float, parts: Mapping[str, float]) -> None:
        """Record one query."""
        self._search.observe(seconds)
        for part, spent in parts.items():
            self._search_part.labels(part).observe(spent)

    def grouped(self, documents: int) -> None:
        """Record documents, of one or more requests, solved together."""
        self._group.observe(documents)

    def requested(self, route: str, status: int) -> None:
        """Record an answered request."""
        self._requests.labels(route, str(status)).inc()

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _histogram(self, name: str, help: str, *labels: str) -> Histogram:
        return Histogram(name, help, labels, buckets=BUCKETS, registry=self.registry)

    def _gauge(self, name: str, help: str, value: Callable[[], int]) -> None:
        Gauge(name, help, registry=self.registry).set_function(value)


class Labelled(Collector):
    """The metrics of several registries, each sample labelled with its registry's name."""

    def __init__(self, registries: Mapping[str, CollectorRegistry]) -> None:
        self._registries = registries

    def collect(self) -> Iterable[Metric]:
        found: dict[str, Metric] = {}
        for name, registry in self._registries.items():
            for one in registry.collect():
                same = found.setdefault(one.name, Metric(one.name, one.documentation, one.type))
                same.samples += [sample._replace(labels={"index": name, **sample.labels}) for sample in one.samples]
        return found.values()


def together(registries: Mapping[str, CollectorRegistry]) -> bytes:
    """All metrics of several indexes in Prometheus' text format."""
    every = CollectorRegistry()
    every.register(Labelled(registries))
    return generate_latest(every)
