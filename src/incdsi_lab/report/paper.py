"""The paper's own figures (old/new documents), to stand beside ours where the data is the paper's."""

from __future__ import annotations

from incdsi_lab.report.tables import Table

COLUMNS = ("method", "new documents", "H@1 old/new", "H@10 old/new", "time")
NQ320K = (
    ("initial model, before additions", "0", "68.0", "88.4", "-"),
    ("IncDSI", "1,000", "67.8/62.0", "87.9/81.7", "16 s (A6000)"),
    ("IncDSI", "10,000", "64.4/61.1", "86.3/86.3", "2.7 min"),
    ("IncDSI, generated queries only", "1,000", "67.7/53.5", "87.9/81.7", "14 s"),
    ("DSI-Scratch, 10 more epochs", "1,000", "67.8/67.6", "88.0/84.5", "274 min"),
    ("DSI-DPR, 10 epochs", "1,000", "63.2/60.6", "87.1/85.9", "159 min"),
    ("DPR", "1,000", "46.6/45.1", "75.0/74.6", "-"),
)
MSMARCO = (
    ("IncDSI", "10,000", "47.5/61.0", "80.2/86.0", "6.9 min"),
    ("DSI-Scratch, 5 epochs", "10,000", "48.2/51.8", "79.8/80.1", "675 min"),
    ("DPR", "10,000", "39.2/42.1", "68.8/62.8", "-"),
)
PRINTED = {"nq320k": NQ320K, "msmarco": MSMARCO}
CAUTION = (
    "The paper's new-document figures rest on 10, 42 (validation queries), 71 and 738 queries: standard errors of "
    "12.6, 7.1, 5.8 and 1.8 points. Its times leave out encoding and the search for the best rival."
)


def printed_table(dataset: str) -> Table | None:
    """What the paper prints for this dataset; None when it is not one of the paper's."""
    rows = PRINTED.get(dataset)
    if rows is None:
        return None
    return Table(name="paper", caption=f"Printed in the paper, {dataset}", columns=COLUMNS, rows=rows)
