"""Nodes of LlamaIndex as documents of incdsi."""

from __future__ import annotations

from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from incdsi import Document
from incdsi.adapter import packed, unpacked


def to_document(node: BaseNode) -> Document:
    """Whole, with its relationships, and its metadata to filter on."""
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    return packed(node.node_id, text, node_to_metadata_dict(node, remove_text=True))


def to_node(document: Document) -> BaseNode:
    """The node it was, or a text node of what something else than LlamaIndex put into the index."""
    metadata, _ = unpacked(document)
    if "_node_content" in metadata:
        return metadata_dict_to_node(metadata, document.text)
    return TextNode(id_=document.id, text=document.text, metadata=metadata)
