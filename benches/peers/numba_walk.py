#!/usr/bin/env python3
"""The cost of one hop of private descent by a token: Sottovoce beside numba, in turn, on this machine.

    python3 benches/peers/numba_walk.py [--rounds 5]

The task is the case sgd of `cargo bench --package sottovoce-sim --bench walk`: 2,000 agents with 8 points in 8 dimensions, 20,000 hops, logistic
loss, each example's gradient clipped, Gaussian noise at every hop, at most 12 contributions, double precision, one thread on both sides. The numba
side is one loop, compiled with fastmath, with numba's own normals. Numba is installed into target/peers by the script itself.
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

    n, m, p, hops = 2000, 8, 8, 20_000
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.5, 0.5, (n * m, p))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.choice([-1.0, 1.0], n * m)

    @njit(fastmath=True)
    def walk(x, y, n, m, hops, step, clip, sigma, most):
        p = x.shape[1]
        theta = np.zeros(p)
        gradient = np.empty(p)
        made = np.zeros(n, np.int64)
        for _ in range(hops):
            u = np.random.randint(n)
            gradient[:] = 0.0
            if made[u] < most:
                made[u] += 1
                for r in range(u * m, (u + 1) * m):
                    dot = 0.0
                    square = 0.0
                    for c in range(p):
                        dot += x[r, c] * theta[c]
                        square += x[r, c] * x[r, c]
                    slope = -y[r] / (1.0 + np.exp(y[r] * dot))
                    length = abs(slope) * np.sqrt(square)
                    if length > clip:
                        slope *= clip / length
                    for c in range(p):
                        gradient[c] += slope * x[r, c]
                for c in range(p):
                    gradient[c] /= m
            for c in range(p):
                theta[c] -= step * (gradient[c] + sigma * np.random.normal())
        return theta

    arguments = (x, y, n, m, hops, 0.03, 0.4, 1.6, 12)
    walk(*arguments)

    def nanoseconds():
        times = []
        for _ in range(31):
            start = time.perf_counter()
            walk(*arguments)
            times.append(time.perf_counter() - start)
        return min(times) / hops * 1e9

    return nanoseconds


def our_side():
    command = ["cargo", "bench", "--quiet", "--package", "sottovoce-sim", "--bench", "walk", "--", "sgd", "--json"]
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
        print(f"round {k + 1}: numba {theirs:7.0f} ns per hop, sottovoce {ours:7.0f} ns, ratio {ratios[-1]:.2f}", flush=True)
    print(f"sottovoce / numba, median of {rounds} rounds: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    inside_own_environment()
    main()
