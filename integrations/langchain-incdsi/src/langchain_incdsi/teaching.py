"""A tool by which an agent teaches the index what it learned."""

from __future__ import annotations

from pathlib import Path

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from incdsi import SearchIndex
from incdsi.adapter import opened
from incdsi.errors import IncDSIError


def teach_tool(index: SearchIndex | str | Path) -> BaseTool:
    """A tool `teach(query, document_id)`; what the index refuses is told to the agent, not raised."""
    there = opened(index)

    def teach(query: str, document_id: str) -> str:
        """Make a search query find a document from now on. Use it when a user says which document was right."""
        try:
            return there.teach(query, document_id).explanation
        except IncDSIError as error:
            raise ToolException(str(error)) from error

    return StructuredTool.from_function(teach, handle_tool_error=True)
