#!/usr/bin/env python3
"""A million exchanges of gosta among a thousand agents: Sottovoce beside a numba loop, in turn, on this machine.

    python3 benches/peers/numba_gosta.py [--rounds 5] [--program target/release/sottovoce]

Both draw the two that meet at random on the complete graph, average their estimates, add |x - a| with a falling weight and swap a.
The numba side is arrays and a loop; Sottovoce's is `sottovoce measure`, whose agents write each other letters that are encoded,
charged to a ledger, delivered and decoded. The time is that of the run, without loading, compiling and measuring. Numba is
installed into target/peers by the script itself.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

from numba_wake import ROOT, inside_own_environment

AGENTS, EXCHANGES = 1_000, 1_000_000
TASK = """algorithm = "gosta"
[data]
train = "rows.csv"
[statistic]
kind = "gini"
columns = ["x"]
[graph]
kind = "complete"
[run]
wakes-per-agent = {wakes}
"""


def numba_side(values):
    import numpy as np
    from numba import njit

    @njit(fastmath=True)
    def exchange(x, exchanges):
        n = x.shape[0]
        held, z, meetings = x.copy(), np.zeros(n), np.zeros(n)
        for _ in range(exchanges):
            one = np.random.randint(0, n)
            other = np.random.randint(0, n - 1)
            if other >= one:
                other += 1
            mean = (z[one] + z[other]) / 2
            meetings[one] += 1
            meetings[other] += 1
            z[one] = mean + (abs(x[one] - held[one]) - mean) / meetings[one]
            z[other] = mean + (abs(x[other] - held[other]) - mean) / meetings[other]
            held[one], held[other] = held[other], held[one]
        return z

    x = np.array(values)
    exchange(x, 10)

    def seconds():
        start = time.perf_counter()
        exchange(x, EXCHANGES)
        return time.perf_counter() - start

    return seconds


def our_side(values, program, folder):
    place = pathlib.Path(folder)
    rows = "".join(f"a{k:04},{value!r}\n" for k, value in enumerate(values))
    (place / "rows.csv").write_text("agent,x\n" + rows)
    (place / "task.toml").write_text(TASK.format(wakes=EXCHANGES // AGENTS))

    def seconds():
        command = [program, "measure", "task.toml", "--out", "run", "--force", "--threads", "1", "--json"]
        summary = json.loads(subprocess.run(command, cwd=place, check=True, capture_output=True, text=True).stdout)
        assert summary["wakes"] == EXCHANGES and summary["error"] < 0.01 * summary["exact"], summary
        return summary["seconds"]

    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each side runs, in turn (default 5)")
    parser.add_argument("--program", default=str(ROOT / "target" / "release" / "sottovoce"))
    arguments = parser.parse_args()
    values = [(k * k % 1009) / 100 for k in range(AGENTS)]
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = numba_side(values), our_side(values, arguments.program, folder)
        ratios = []
        for k in range(arguments.rounds):
            numba, simulator = theirs(), ours()
            ratios.append(simulator / numba)
            print(f"round {k + 1}: numba {1e3 * numba:.1f} ms, sottovoce {1e3 * simulator:.1f} ms, ratio {ratios[-1]:.1f}", flush=True)
        print(f"sottovoce / numba, median of {arguments.rounds} rounds: {statistics.median(ratios):.1f}")


if __name__ == "__main__":
    inside_own_environment()
    main()
