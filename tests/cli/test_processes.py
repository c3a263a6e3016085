"""What only a process of its own can show: start-up, streams, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from incdsi.cli.progress import progress
from incdsi.store import Store
from tests.cli.conftest import Run, write

# Ctrl-C is ignored in children of a background shell: here it never is.
START = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from incdsi.cli import main; main()"
MANY = 6000


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", START, *map(str, arguments)]


def imported(*arguments: str) -> set[str]:
    code = (
        "import sys\nfrom incdsi.cli import main\ntry: main()\n"
        "except SystemExit: print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert result.stdout
    return {name.split(".")[0] for name in result.stderr.split()}


def test_help_imports_nothing_heavy() -> None:
    assert not imported("--help") & {"torch", "onnxruntime", "transformers", "rich"}


def test_search_does_not_import_torch(shop: Path) -> None:
    assert "torch" not in imported("search", "sea")


def test_a_refusal_is_one_sentence_without_a_traceback(run: Run) -> None:
    result = subprocess.run(command("search", "sea"), capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1


def test_quick_work_leaves_a_log_as_it_was(run: Run, encoder: str) -> None:
    docs = write("docs.jsonl", [{"id": "a", "text": "the sea"}])
    result = subprocess.run(command("add", docs, "--encoder", encoder), capture_output=True, text=True, check=True)
    assert result.stderr == ""
    assert result.stdout.startswith("added 1 document in ")


def test_progress_with_the_time_left_is_shown_on_a_terminal() -> None:
    code = (
        "import time\nfrom incdsi.cli.progress import progress\n"
        "with progress('adding') as report:\n"
        "    for done in range(1, 31): report(done, 40); time.sleep(0.02)\n"
        "with progress('hidden', hidden=True) as report: report(1, 2)\n"
    )
    master, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    result = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=terminal, env=environment)
    shown = os.read(master, 100_000).decode()
    os.close(terminal)
    os.close(master)
    assert (result.returncode, result.stdout) == (0, b"")
    assert "adding" in shown
    assert "30/40" in shown
    assert re.search(r"\d:\d\d:\d\d", shown)
    assert "hidden" not in shown


def test_long_work_leaves_a_line_a_minute_in_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("incdsi.cli.progress.time.monotonic", lambda: now)
    with progress("studying") as report:
        for done in range(1, 181):  # half a second each
            now += 0.5
            report(done, 360)
    assert capsys.readouterr().err == "studying: 120 of 360, about 2 min left\n"


def test_ctrl_c_keeps_what_it_says_and_skip_bad_goes_on(run: Run, encoder: str) -> None:
    rows = [{"id": f"d{number}", "text": f"the river {number} flows to the sea"} for number in range(MANY)]
    adding = subprocess.Popen(
        command("add", write("docs.jsonl", rows), "--encoder", encoder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _wait_for_a_document(adding)
        adding.send_signal(signal.SIGINT)
        said, complaint = adding.communicate(timeout=60)
    finally:
        adding.kill()
    assert (adding.returncode, said) == (130, "")
    assert "Traceback" not in complaint
    told = re.match(
        r"stopped; (?:at least ([\d,]+) documents? were added and are|what was written is) kept;", complaint
    )
    assert told is not None, complaint
    kept = {json.loads(line)["id"] for line in run("export").stdout.splitlines()}
    assert int((told[1] or "0").replace(",", "")) <= len(kept) < MANY
    assert kept == {f"d{number}" for number in range(len(kept))}
    assert run("verify").exit_code == 0
    rest = write("rest.jsonl", rows[: len(kept) + 10])
    assert json.loads(run("add", rest, "--skip-bad", "--json").stdout)["added"] == 10


def _wait_for_a_document(adding: subprocess.Popen[str]) -> None:
    for _ in range(1200):
        assert adding.poll() is None, adding.communicate()
        if Path("shop/store.db").is_file():  # it appears whole
            with Store.open("shop", writer=False) as store:
                if len(store):
                    return
        time.sleep(0.05)
    raise AssertionError("no document was added in a minute")
