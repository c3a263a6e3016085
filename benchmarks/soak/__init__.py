"""An hour of load on `incdsi serve`, killed and started again every minute, on a disk that fills twice: `make soak`.

Eight clients search, add one and many, change, teach and delete, every write with an Idempotency-Key. A write whose
answer was lost to a kill, or refused because the disk was full, is sent again with its key until it is done. After
every restart, and at the end, all documents are read and compared with what was acknowledged: each change is there
exactly once. The number of documents stays about the same, so memory must too.
"""
