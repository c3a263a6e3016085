"""A few dozen documents in every true format, made here: what each reader should find is known exactly."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

TOPICS = ("river", "bridge", "lighthouse", "orchard", "glacier", "harbour", "meadow", "quarry")
COUNT = 32


def title(number: int) -> str:
    return f"{TOPICS[number % len(TOPICS)].title()} no. {number}"


def body(number: int) -> str:
    return f"The {TOPICS[number % len(TOPICS)]} called number {number} (est. {1800 + number}) lies by the sea."


def question(number: int, part: str) -> str:
    return f"{part}: where is {TOPICS[number % len(TOPICS)]} {number}?"


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    return write_text(path, text)


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def ours(folder: Path) -> Path:
    write_jsonl(folder / "docs.jsonl.gz", ({"id": f"d{i}", "title": title(i), "text": body(i)} for i in range(COUNT)))
    parts = [("train", 0), ("train", 1), ("val", 2), ("test", 3)]
    write_jsonl(
        folder / "queries.jsonl.gz",
        (
            {"id": f"{part}:{k}:{i}", "text": question(i, part), "doc_id": f"d{i}", "split": part, "answers": ["x"]}
            for i in range(COUNT)
            for part, k in parts
        ),
    )
    return folder


def beir(folder: Path) -> Path:
    write_jsonl(
        folder / "corpus.jsonl",
        ({"_id": f"d{i}", "title": title(i), "text": body(i), "metadata": {}} for i in range(COUNT)),
    )
    write_jsonl(
        folder / "queries.jsonl",
        (
            {"_id": f"{p}{i}", "text": question(i, p), "metadata": {}}
            for p in ("train", "dev", "test")
            for i in range(COUNT)
        ),
    )
    for part in ("train", "dev", "test"):
        lines = ["query-id\tcorpus-id\tscore"]
        lines += [f"{part}{i}\td{i}\t1" for i in range(COUNT)]
        lines += [f"{part}0\td1\t1", f"{part}1\td2\t0"]
        write_text(folder / "qrels" / f"{part}.tsv", "\n".join(lines) + "\n")
    return folder


def nq_address(number: int, revision: int = 1) -> str:
    name = title(number).replace(" ", "_")
    return f"https://en.wikipedia.org//w/index.php?title={name}&amp;oldid={814071202 + revision}"


def nq_text(number: int) -> str:
    words = body(number).replace("(", "( ").replace(")", " )").replace(".", " .")
    return f"<H1> {title(number)} </H1> <P> {words} </P> <Table> <Tr> <Td> 5 < 7 </Td> </Tr> </Table>"


def nq_row(number: int, part: str, example: int) -> dict[str, Any]:
    """A row as released: the simplified train file has document_text, the dev file document_tokens."""
    row: dict[str, Any] = {
        "example_id": example,
        "question_text": question(number, part),
        "document_url": nq_address(number, example),
        "long_answer_candidates": [{"start_token": 3, "end_token": 9, "top_level": True}],
        "annotations": [{"yes_no_answer": "NONE", "long_answer": {"start_token": 3, "end_token": 9}}],
    }
    if part == "train":
        return {**row, "document_text": nq_text(number)}
    tokens = nq_text(number).split(" ")
    is_tag = [token.startswith("<") and token.endswith(">") for token in tokens]
    return {
        **row,
        "document_title": title(number),
        "document_tokens": [
            {"token": token, "start_byte": 0, "end_byte": 1, "html_token": tag}
            for token, tag in zip(tokens, is_tag, strict=True)
        ],
    }


def natural_questions(folder: Path) -> Path:
    """Pages 0..27 are asked for in train, two of them twice, in another revision; dev asks for 24..31."""
    train = [*range(28), 3, 7]
    write_jsonl(
        folder / "v1.0-simplified_simplified-nq-train.jsonl.gz",
        (nq_row(page, "train", 1000 + n) for n, page in enumerate(train)),
    )
    write_jsonl(
        folder / "v1.0-simplified_nq-dev-all.jsonl.gz",
        (nq_row(page, "dev", 5000 + n) for n, page in enumerate(range(24, COUNT))),
    )
    return folder


def msmarco(folder: Path) -> Path:
    """Documents in TREC's format, address and title first; the last four have no query."""
    docs = "".join(
        f"<DOC>\n<DOCNO>D{i}</DOCNO>\n<TEXT>\nhttps://example.org/{i}\n{title(i)}\n{body(i)}\nSecond line.\n</TEXT>\n"
        "</DOC>\n"
        for i in range(COUNT)
    )
    write_text(folder / "docs.trec.gz", docs)
    for part, first, places in (("train", 100, range(24)), ("dev", 300, range(20, 28))):
        queries = "".join(f"{first + i}\t{question(i, part)}\n" for i in places)
        write_text(folder / f"{part}-queries.tsv.gz", queries)
        more = ["320 0 D1 1\n", "321 0 D31 0\n"] if part == "dev" else []  # a second document; one judged useless
        write_text(folder / f"{part}-qrels.tsv.gz", "".join([*(f"{first + i} 0 D{i} 1\n" for i in places), *more]))
    return folder


RELEASED = {"old_docs": range(24), "new_docs": range(24, 29), "tune_docs": range(29, COUNT)}


def released(folder: Path, *, array: bool = False) -> Path:
    """Odd documents have no train query: their generated ones are in passages_unseen."""
    for name, places in RELEASED.items():
        files: dict[str, list[dict[str, Any]]] = {
            "trainqueries": [{"question": question(i, "train"), "doc_id": i} for i in places if i % 2 == 0],
            "valqueries": [{"question": question(i, "val"), "doc_id": i} for i in places if i % 2 == 0],
            "testqueries": [{"question": question(i, "test"), "doc_id": i} for i in places],
        }
        for kind, odd in (("seen", 0), ("unseen", 1)):
            files[f"passages_{kind}"] = [
                {"gen_question": f"generated {k} for {i}", "doc_id": i} for i in places if i % 2 == odd for k in (0, 1)
            ]
        for file, rows in files.items():
            path = folder / name / f"{file}.json"
            if array:
                write_text(path, "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
            else:
                write_jsonl(path, rows)
        (folder / name / "doc_class.pkl").write_bytes(b"\x80\x04never opened")
    return folder
