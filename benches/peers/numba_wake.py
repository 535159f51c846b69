#!/usr/bin/env python3
"""The cost of one wake of coordinate descent: Sottovoce beside numba, in turn, on this machine.

    python3 benches/peers/numba_wake.py [--rounds 5]

The task is the small case of `cargo bench --package sottovoce-sim --bench wake`: 100 agents on a circulant graph with 38
neighbours, dimension 100, 10 to 100 points each, logistic loss, double precision, one thread on both sides. The numba
side is compiled with fastmath and streams each row once (dot, then axpy while the row is in cache). Numba is installed
into target/peers by the script itself.
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
    """Starts again inside an environment that has numba."""
    python = HOME / "bin" / "python"
    if pathlib.Path(sys.prefix) == HOME:
        return
    if not python.exists():
        print("installing numba into target/peers ...", flush=True)
        venv.create(HOME, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "numba", "numpy"], check=True)
    os.execv(python, [str(python), *sys.argv])


def numba_side():
    import numpy as np
    from numba import njit

    n, p, k = 100, 100, 38
    rng = np.random.default_rng(1)
    m = rng.integers(10, 101, n)
    offsets = np.concatenate([[0], np.cumsum(m)])
    x = rng.uniform(-1, 1, (offsets[-1], p))
    y = rng.choice([-1.0, 1.0], offsets[-1])
    peers = np.array([[(i + s) % n for d in range(1, k // 2 + 1) for s in (d, -d)] for i in range(n)])
    weights = np.ones((n, k))
    confidence = m / m.max()
    regularization = 1.0 / m
    smoothness = np.array(
        [0.25 * (x[a:b] ** 2).sum(1).max() + 2 / (b - a) for a, b in zip(offsets[:-1], offsets[1:])]
    )
    alpha = 1.0 / (1.0 + confidence * smoothness)
    theta = np.zeros((n, p))

    @njit(fastmath=True)
    def advance(theta, x, y, offsets, peers, weights, alpha, confidence, regularization, wakes):
        p = theta.shape[1]
        k = peers.shape[1]
        average = np.empty(p)
        gradient = np.empty(p)
        for w in range(wakes.shape[0]):
            i = wakes[w]
            average[:] = 0.0
            gradient[:] = 0.0
            degree = 0.0
            for e in range(k):
                j = peers[i, e]
                weight = weights[i, e]
                degree += weight
                for c in range(p):
                    average[c] += weight * theta[j, c]
            for r in range(offsets[i], offsets[i + 1]):
                dot = 0.0
                for c in range(p):
                    dot += x[r, c] * theta[i, c]
                slope = -y[r] / (1.0 + np.exp(y[r] * dot))
                for c in range(p):
                    gradient[c] += slope * x[r, c]
            a = alpha[i]
            size = offsets[i + 1] - offsets[i]
            weight = confidence[i]
            for c in range(p):
                theta[i, c] = (1 - a) * theta[i, c] + a * (
                    average[c] / degree
                    - weight * (gradient[c] / size + 2 * regularization[i] * theta[i, c])
                )

    wakes = rng.integers(0, n, 50_000)
    arguments = (theta, x, y, offsets, peers, weights, alpha, confidence, regularization)
    advance(*arguments, wakes[:10])

    def nanoseconds():
        times = []
        for _ in range(31):
            start = time.perf_counter()
            advance(*arguments, wakes)
            times.append(time.perf_counter() - start)
        return min(times) / len(wakes) * 1e9

    return nanoseconds


def our_side():
    command = ["cargo", "bench", "--quiet", "--package", "sottovoce-sim", "--bench", "wake", "--", "small", "--json"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])["threads_1"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each side runs, in turn (default 5)")
    rounds = parser.parse_args().rounds
    numba_nanoseconds = numba_side()
    our_side()
    ratios = []
    for k in range(rounds):
        theirs, ours = numba_nanoseconds(), our_side()
        ratios.append(ours / theirs)
        print(f"round {k + 1}: numba {theirs:7.0f} ns per wake, sottovoce {ours:7.0f} ns, ratio {ratios[-1]:.2f}", flush=True)
    print(f"sottovoce / numba, median of {rounds} rounds: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    inside_own_environment()
    main()
