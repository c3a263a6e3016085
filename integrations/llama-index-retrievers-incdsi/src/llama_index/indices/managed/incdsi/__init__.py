"""incdsi as an index of LlamaIndex."""

from llama_index.indices.managed.incdsi.index import IncDSIIndex

__all__ = ["IncDSIIndex"]
