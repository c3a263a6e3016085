"""`make bench-server`."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks.index.__main__ import work_folder
from benchmarks.index.adding import fill
from benchmarks.index.run import Result, say
from benchmarks.index.sources import cut_sets
from benchmarks.machine import machine, write
from benchmarks.real import real_data
from benchmarks.server import __doc__ as about
from benchmarks.server.load import CONNECTIONS, SHARES, Client, load
from benchmarks.server.peer import peer
from benchmarks.server.processes import SMALL, Size, measured, ours, started, theirs
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home


def prepare(folder: Path, size: Size) -> Result:
    """Fill the index, and leave for the others what they need."""
    import numpy as np

    data = real_data(str(folder / "squad_plus") if size.cut else "squad_plus")
    index, filled = fill(folder / "shop", data, range(len(data.documents)), tuning=False)
    index.close()
    np.savez(folder / "peer.npz", embeddings=data.embeddings)
    plain = [{"id": one.id, "title": one.title, "text": one.text} for one in data.documents]
    (folder / "peer.json").write_text(json.dumps(plain))
    (folder / "load.json").write_text(json.dumps({"questions": data.test.texts, "documents": _newcomers(size)}))
    return filled


def _newcomers(size: Size) -> list[dict[str, str]]:
    documents = read_jsonl(data_home() / "nq_passages").documents[: size.additions]
    return [{"id": f"new-{one.id}", "title": one.title, "text": one.text} for one in documents]


def survived(folder: Path, found: Result) -> Result:
    """Start the killed server again and look for every acknowledged write."""
    with started(ours(folder)) as server:
        address = urlsplit(server.url)

        async def statuses(ids: Sequence[str]) -> list[int]:
            client = Client(address.hostname or "", address.port or 0)
            return [await client.ask("GET", f"/v1/documents/{quote(id, safe='')}") for id in ids]

        there, gone = (asyncio.run(statuses(found[name])) for name in ("there", "gone"))
    return {
        "acknowledged_additions": len(there),
        "additions_lost": sum(status != 200 for status in there),
        "acknowledged_deletions": len(gone),
        "deletions_lost": sum(status != 404 for status in gone),
    }


def run(folder: Path, size: Size) -> Result:
    if size.cut is not None:
        cut_sets(folder, size.cut)
    say("filling the index")
    command = [sys.executable, "-m", "benchmarks.server", "--child", "prepare", "--folder", str(folder)]
    command += ["--small"] if size.cut else []
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    filled = json.loads(child.stdout.splitlines()[-1])
    say(f"{size.seconds:g} s of load on incdsi serve, then a kill")
    with started(ours(folder), signal.SIGKILL) as server:
        mine = measured(server, folder, size)
    kept = survived(folder, mine)
    say(f"{size.seconds:g} s of load on the faiss server")
    with started(theirs(folder), signal.SIGKILL) as server:
        other = measured(server, folder, size)
    for one in (mine, other):
        del one["there"], one["gone"]
    ratio = mine["searches_per_second"] / other["searches_per_second"]
    return {
        "search_throughput_over_peer": ratio,
        "connections": CONNECTIONS,
        "seconds": size.seconds,
        "filled": {"documents": filled["documents"], "tuning": False},
        "incdsi": mine,
        "after_kill_and_restart": kept,
        "fastapi_sentence_transformers_faiss": other,
    }


def show(found: Result) -> None:
    print(f"\n{found['filled']['documents']:,} documents, {CONNECTIONS} connections, {found['seconds']:g} s")
    heads = f"{'search p50/p99 ms':>20}{'add p50/p99':>18}{'delete p50/p99':>18}"
    print(f"{'':36}{'req/s':>8}{'CPU ms':>8}{heads}{'MB':>14}{'errors':>8}")
    for name in ("incdsi", "fastapi_sentence_transformers_faiss"):
        one = found[name]
        times = [f"{one[what]['p50_ms']:.1f} / {one[what]['p99_ms']:.1f}" if what in one else "-" for what, _ in SHARES]
        memory = f"{one['memory_start_mb']:.0f} > {one['memory_end_mb']:.0f}"
        rate = f"{one['requests_per_second']:8.1f}{one['cpu_ms_per_request']:8.1f}"
        row = f"{name:36}{rate}{times[0]:>20}{times[1]:>18}{times[2]:>18}"
        print(f"{row}{memory:>14}{one['errors']:>8}")
        if one["errors"]:
            print(f"  first errors: {'; '.join(one['first_errors'])}")
    print(f"searches a second over the peer's: {found['search_throughput_over_peer']:.2f}")
    print("after SIGKILL and restart:", json.dumps(found["after_kill_and_restart"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs; nothing is written")
    parser.add_argument("--child", choices=["prepare", "load", "peer"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help="how long the load lasts; nothing is written")
    arguments = parser.parse_args()
    size = SMALL if arguments.small else Size()
    size = size if arguments.seconds is None else replace(size, seconds=arguments.seconds)
    if arguments.child == "prepare":
        print(json.dumps(prepare(arguments.folder, size)))
    elif arguments.child == "load":
        print(json.dumps(load(arguments.folder, arguments.url, arguments.seconds)))
    elif arguments.child == "peer":
        peer(arguments.folder)
    else:
        print(json.dumps(machine()))
        with tempfile.TemporaryDirectory(dir=work_folder(), prefix="server-") as folder:
            found = run(Path(folder), size)
        show(found)
        if not arguments.small and arguments.seconds is None:
            print("written to", write("server", found))
        lost = found["after_kill_and_restart"]
        if lost["additions_lost"] or lost["deletions_lost"] or found["incdsi"]["errors"]:
            sys.exit("something was lost or went wrong: see above")


if __name__ == "__main__":
    main()
