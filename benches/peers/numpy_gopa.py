#!/usr/bin/env python3
"""A sum under masks that cancel: Sottovoce beside a numpy loop, in turn, on this machine.

    python3 benches/peers/numpy_gopa.py [--rounds 5]

The task is the case sum of `cargo bench --package sottovoce-sim --bench gopa`: 10,000 members with 20 picks each and one number. The numpy side is the arithmetic alone: for each
member its picks, a mask for each of them that it adds and the other subtracts, a share of noise, and the sum; no letters, no keys, no second masks, no ledger. Numpy is installed into
target/peers by the script itself.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = ROOT / "target" / "peers"


def inside_own_environment():
    """Starts again inside an environment that has numpy."""
    python = HOME / "bin" / "python"
    if pathlib.Path(sys.prefix) == HOME:
        return
    if not python.exists():
        print("installing numpy into target/peers ...", flush=True)
        venv.create(HOME, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "numba", "numpy"], check=True)
    os.execv(python, [str(python), *sys.argv])


def numpy_side():
    import numpy as np

    n, k = 10_000, 20
    x = np.random.default_rng(1).uniform(0, 1, n)

    def run(seed):
        rng = np.random.default_rng(seed)
        masked = np.rint(x * 2**32).astype(np.int64).view(np.uint64)
        for member in range(n):
            picks = rng.integers(0, n - 1, k)
            picks[picks >= member] += 1
            masks = rng.integers(0, 2**64, k, dtype=np.uint64)
            masked[member] += masks.sum(dtype=np.uint64)
            np.subtract.at(masked, picks, masks)
        masked += np.rint(rng.normal(0, 2**24, n)).astype(np.int64).view(np.uint64)
        return masked.sum(dtype=np.uint64).view(np.int64) / 2**32 / n

    assert abs(run(0) - x.mean()) < 0.01

    def seconds():
        times = []
        for seed in range(5):
            start = time.perf_counter()
            run(seed)
            times.append(time.perf_counter() - start)
        return min(times)

    return seconds


def our_side():
    command = ["cargo", "bench", "--quiet", "--package", "sottovoce-sim", "--bench", "gopa", "--", "sum", "--json"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each side runs, in turn (default 5)")
    rounds = parser.parse_args().rounds
    numpy_seconds = numpy_side()
    our_side()
    ratios = []
    for k in range(rounds):
        theirs, ours = numpy_seconds(), our_side()
        ratios.append(ours / theirs)
        print(f"round {k + 1}: numpy {theirs:6.3f} s, sottovoce {ours:6.3f} s, ratio {ratios[-1]:.2f}", flush=True)
    print(f"sottovoce / numpy, median of {rounds} rounds: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    inside_own_environment()
    main()
