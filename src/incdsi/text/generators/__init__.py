"""From a document to the queries it should answer.

`Spans` is built in and needs no model; `seq2seq.Seq2Seq` uses a T5 (extra `train`); any callable from Document
to strings will do.
"""

from incdsi.text.generators.identity import described, named, restored
from incdsi.text.generators.protocol import BatchGenerator, Generator, generate_all
from incdsi.text.generators.spans import Spans

__all__ = ["BatchGenerator", "Generator", "Spans", "described", "generate_all", "named", "restored"]
