"""From token vectors to one embedding: the modules behind the transformer, as an ONNX graph."""

from __future__ import annotations

import numpy as np

from incdsi.text.encoders.fingerprint import Prompts
from incdsi.text.encoders.graph import FLOAT, Graph
from incdsi.text.encoders.sentence_model import Module, SentenceModel, needs_torch

DENSE_ACTIVATIONS = {"Identity": "Identity", "Tanh": "Tanh", "ReLU": "Relu", "Sigmoid": "Sigmoid"}
FEATURES = (None, "sentence_embedding")  # what a Dense reads and writes, unless it is of another kind of model
SMALLEST = 1e-12  # torch's divisor for a vector of zeros


def embedding(graph: Graph, model: SentenceModel, vectors: str, mask: str) -> tuple[str, int]:
    """(b, length, h) token vectors and (b, length) mask -> (b, dimension), and the dimension."""
    dimension = model.width
    for module in model.modules:
        if module.kind == "Pooling":
            vectors = _pooled(graph, module, model, vectors, mask)
        elif module.kind == "Dense":
            vectors, dimension = _dense(graph, module, vectors), module.tensors["linear.weight"].shape[0]
        elif module.kind == "Normalize":
            length = graph.node("ReduceL2", vectors, graph.integers(-1))
            vectors = graph.node("Div", vectors, graph.node("Max", length, graph.number(SMALLEST)))
        elif module.kind != "Dropout":  # which does nothing outside training
            raise needs_torch(f"the model has a module {module.kind!r}")
    return vectors, dimension


def _pooled(graph: Graph, module: Module, model: SentenceModel, vectors: str, mask: str) -> str:
    if model.prompts != Prompts() and not module.config.get("include_prompt", True):
        raise needs_torch("the model leaves its prompts out of the pooling")
    ones = graph.integers(1)
    if model.pooling == "cls":
        return graph.node("Gather", vectors, graph.constant(np.array(0, np.int64)), axis=1)
    if model.pooling == "lasttoken":
        last = graph.node("Sub", graph.node("ReduceSum", mask, ones), ones)  # (b, 1)
        return graph.node("GatherND", vectors, last, batch_dims=1)
    weights = graph.node("Unsqueeze", graph.node("Cast", mask, to=FLOAT), graph.integers(2))
    if model.pooling == "max":
        absent = graph.node("Equal", weights, graph.number(0.0))
        kept = graph.node("Where", absent, graph.number(-np.inf), vectors)
        return graph.node("ReduceMax", kept, ones, keepdims=0)
    total = graph.node("ReduceSum", graph.node("Mul", vectors, weights), ones, keepdims=0)
    count = graph.node("ReduceSum", weights, ones, keepdims=0)  # at least 1: no text has no tokens
    if model.pooling == "mean":
        return graph.node("Div", total, count)
    if model.pooling == "mean_sqrt_len_tokens":
        return graph.node("Div", total, graph.node("Sqrt", count))
    raise needs_torch(f"the model pools by {model.pooling}")


def _dense(graph: Graph, module: Module, vectors: str) -> str:
    config = module.config
    activation = DENSE_ACTIVATIONS.get(str(config.get("activation_function", "Tanh")).rsplit(".", 1)[-1])
    named = {config.get("module_input_name"), config.get("module_output_name")}
    if activation is None or config.get("use_residual") or not named <= set(FEATURES):
        raise needs_torch("the model has a Dense module of an unknown kind")
    weight = graph.node("Transpose", graph.tensor(module.tensors["linear.weight"]), perm=(1, 0))
    vectors = graph.node("MatMul", vectors, weight)
    if "linear.bias" in module.tensors:
        vectors = graph.node("Add", vectors, graph.tensor(module.tensors["linear.bias"]))
    return graph.node(activation, vectors)
