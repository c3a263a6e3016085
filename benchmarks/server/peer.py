"""The plain server beside ours: FastAPI, sentence-transformers, a flat faiss index, all in memory."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from benchmarks.server.load import K


class Asked(BaseModel):
    """What the peer is asked."""

    query: str
    k: int = K


class Given(BaseModel):
    """What the peer is given."""

    id: str
    text: str
    title: str = ""


def peer(folder: Path) -> None:
    """The plain server: FastAPI, sentence-transformers, a flat faiss index, all in memory."""
    import faiss
    import numpy as np
    import torch
    import uvicorn
    from fastapi import FastAPI
    from sentence_transformers import SentenceTransformer

    from incdsi.text.encoders.fetch import HUB_NAME, installed_model

    torch.set_num_threads(1)  # as ours: requests are what runs in parallel
    model = SentenceTransformer(str(installed_model() or HUB_NAME), device="cpu")
    kept = np.load(folder / "peer.npz")
    documents = dict(enumerate(json.loads((folder / "peer.json").read_text())))
    numbers = {row["id"]: number for number, row in documents.items()}
    index: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(kept["embeddings"].shape[1]))
    index.add_with_ids(kept["embeddings"], np.arange(len(documents)))
    mutex, app = threading.Lock(), FastAPI()

    def encoded(text: str) -> Any:
        return model.encode([text], normalize_embeddings=True, show_progress_bar=False)

    @app.post("/v1/search")
    def search(asked: Asked) -> dict[str, Any]:
        embedding = encoded(asked.query)
        with mutex:
            scores, found = index.search(embedding, asked.k)
            rows = [documents[number] for number in found[0].tolist() if number >= 0]
        return {"hits": [{"score": float(s), "document": row} for s, row in zip(scores[0], rows, strict=False)]}

    @app.post("/v1/documents", status_code=201)
    def add(given: Given) -> dict[str, Any]:
        embedding = encoded(f"{given.title}\n{given.text}".strip())
        with mutex:
            number = max(documents) + 1
            index.add_with_ids(embedding, np.array([number]))
            documents[number] = given.model_dump()
            numbers[given.id] = number
        return {"id": given.id}

    @app.delete("/v1/documents/{id}")
    def delete(id: str) -> dict[str, int]:
        with mutex:
            number = numbers.pop(id)
            del documents[number]
            index.remove_ids(np.array([number]))
        return {"deleted": 1}

    class Said(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            print(json.dumps({"address": f"http://{host}:{port}"}), flush=True)

    Said(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False)).run()
