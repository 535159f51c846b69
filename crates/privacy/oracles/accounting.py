#!/usr/bin/env python3
"""Epsilons of random ledgers by other means than this crate's: exact formulas to 40 digits, and Google's dp-accounting.

    python3 accounting.py golden > accounting.json          # writes the golden settings (some ten minutes)
    python3 accounting.py check COMMAND [WORD ..]           # what `cargo xtask test` runs

`check` makes one in eleven of the golden settings again and compares them with accounting.json, then draws 30 fresh settings
from another seed and compares them with what COMMAND says: it gets one a line, as JSON, and prints {"tight", "pld"}. It
takes a minute and a half at most; a machine on which that is too little time does fewer, and the last line says how many.
Both need dp-accounting, which the script installs into target/oracle itself; where that fails it says why and exits with 77.

What a setting holds, besides its charges and delta:

- `truth`: for Gaussian steps alone, equal or not, the closed form with mu = sqrt(sum 1 / multiplier^2); for equal answers of
  randomized response alone, the binomial sum of Kairouz, Oh and Viswanath (2015), Theorem 3.3; for a single Laplace step,
  eps + 2 ln(1 - delta). All by mpmath.
- `low`, `high` for everything else: a bracket of the truth. The laws of both sides are composed by dp-accounting and read
  by the formula delta(e) = E(1 - e^{e - L})_+.
  - high: dp-accounting's connect-the-dots laws of Laplace and Gaussian noise (its pessimistic estimate), at delta (1 - 1e-6).
  - low: of each step a law that has less to say. Laplace noise: outputs merged into cells whose loss is a point of the grid
    (post-processing); dp-accounting's own optimistic law rounds every step down by up to h, which for many steps is far off.
    Gaussian noise: all steps as one, its loss rounded down, as dp-accounting's optimistic law. At delta (1 + 1e-6).
  - Randomized response is exact on both sides: its epsilons are multiples of the grid's width h.
  The laws are tilted, p(l) e^{sl} / M, before dp-accounting composes them, and tilted back after: its transforms are
  accurate to 1e-16 of the largest mass, not of delta. The 1e-6 is for their rounding. h is refined until the bracket is
  narrower than WIDTH; a setting for which that would take too many cells is drawn again.
"""

import json
import math
import os
import pathlib
import random
import subprocess
import sys
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
HOME = HERE.parents[2] / "target" / "oracle"
PACKAGE = "dp-accounting==0.6.0"
UNAVAILABLE = 77

GOLDEN = 240
WIDTH = 3e-4
CELLS = 400_000
NOISE = 1e-6


def inside_own_environment():
    """Starts again inside an environment that has dp-accounting, or says why there is none."""
    if pathlib.Path(sys.prefix) == HOME:
        return
    python, ready = HOME / "bin" / "python", HOME / PACKAGE
    if not ready.exists():
        print(f"installing {PACKAGE} into target/oracle ...", file=sys.stderr, flush=True)
        try:
            import venv

            venv.create(HOME, with_pip=True, clear=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
            subprocess.run([*pip, "--timeout", "20", PACKAGE], check=True, timeout=300, stderr=subprocess.PIPE)
            ready.touch()
        except (Exception, SystemExit) as error:
            said = getattr(error, "stderr", None) or b""
            last = said.decode(errors="replace").strip().splitlines()[-1:] or [str(error)]
            print(f"{PACKAGE} cannot be installed: {last[0]}", file=sys.stderr)
            sys.exit(UNAVAILABLE)
    os.execv(python, [str(python), *sys.argv])


# Drawing settings. A step is (mechanism, size, count): size is the epsilon of pure steps and mu of Gaussian ones.


def log_moment(steps, s):
    """ln E e^{sL} of all steps."""
    total, c = 0.0, s + 0.5
    for mechanism, size, count in steps:
        x = c * size
        if mechanism == "gaussian":
            one = size * size * s * (s + 1) / 2
        elif mechanism == "laplace":
            one = x - size / 2 + math.log((1 + math.exp(-2 * x)) / 2 - math.expm1(-2 * x) / (4 * c))
        else:
            one = x - size / 2 + math.log1p(math.exp(-2 * x)) - math.log1p(math.exp(-size))
        total += count * one
    return total


def rough(steps, delta):
    """The tilt s with the least Renyi bound on epsilon, and that bound."""

    def at(s):
        return (log_moment(steps, s) - math.log(delta) - math.log1p(s)) / s - math.log1p(1 / s)

    s = min((10 ** (k / 20) for k in range(-140, 140)), key=at)
    pure = sum(size * count for mechanism, size, count in steps)
    gaussian = any(mechanism == "gaussian" for mechanism, _, _ in steps)
    return s, at(s) if gaussian else min(at(s), pure)


def scaled(steps, delta, epsilon):
    """The steps with all sizes multiplied so that the rough epsilon is this one."""
    low, high = 1e-9, 1e9
    for _ in range(60):
        middle = math.sqrt(low * high)
        times = [(mechanism, size * middle, count) for mechanism, size, count in steps]
        if rough(times, delta)[1] > epsilon:
            high = middle
        else:
            low = middle
    return [(mechanism, size * low, count) for mechanism, size, count in steps]


def draw(rng, index):
    """Steps and a delta: by turns Gaussian alone, equal answers alone, equal Laplace steps, and mixtures."""
    delta, epsilon = 10 ** rng.uniform(-12, -1), 10 ** rng.uniform(-3, 3)
    count = lambda: round(10 ** rng.uniform(0, 6))
    kind = ["gaussian", "randomized-response", "laplace", "mixture", "mixture", "distinct"][index % 6]
    if kind == "gaussian":
        entries = rng.choice([1, 1, 2, 30, 1000])
        steps = [(kind, 10 ** rng.uniform(-1, 1), count() if entries < 30 else 1) for _ in range(entries)]
    elif kind == "mixture":
        mechanisms = ["laplace", "gaussian", "randomized-response"]
        rng.shuffle(mechanisms)
        mechanisms = mechanisms[: rng.choice([2, 3])] + rng.choices(mechanisms, k=rng.choice([0, 0, 1, 3]))
        counts = [count() for _ in mechanisms]
        # Each of them matters: the sizes are over the root of the count.
        steps = [(m, 10 ** rng.uniform(-0.5, 0.5) / math.sqrt(n), n) for m, n in zip(mechanisms, counts)]
    elif kind == "distinct":
        mechanism = rng.choice(["laplace", "mixed"])
        choice = lambda: "laplace" if mechanism == "laplace" else rng.choice(["laplace", "gaussian"])
        steps = [(choice(), 10 ** rng.uniform(-0.7, 0.7), 1) for _ in range(rng.choice([2, 5, 12, 25]))]
    else:
        steps = [(kind, 1.0, rng.choice([1, 2, 3, count(), count(), count(), 1_000_000]))]
    steps = scaled(steps, delta, epsilon)
    # The answers' epsilons are small multiples of a common one.
    answers = [size for mechanism, size, _ in steps if mechanism == "randomized-response"]
    if len(answers) > 1:
        unit = min(answers) / 4
        steps = [(m, unit * round(size / unit) if m == "randomized-response" else size, n) for m, size, n in steps]
    return steps, delta


def charges(steps):
    def of(mechanism, size):
        return {"epsilon": size} if mechanism == "randomized-response" else {"noise_multiplier": 1 / size}

    return [{"mechanism": m, **of(m, size), "audience": "everyone", "count": n} for m, size, n in steps]


# Exact values, to 40 digits.


def gaussian_truth(multipliers, delta):
    from mpmath import erfc, exp, mp, mpf, sqrt

    mp.dps = 40
    mu = sqrt(sum(mpf(count) / mpf(multiplier) ** 2 for multiplier, count in multipliers))
    phi = lambda x: erfc(-x / sqrt(2)) / 2

    def excess(epsilon):
        return phi(mu / 2 - epsilon / mu) - exp(epsilon) * phi(-mu / 2 - epsilon / mu) > delta

    return bisect(excess, mu * mu / 2 + mu * sqrt(-2 * mp.log(delta)) + 1)


def answers_truth(epsilon, count, delta):
    """One walk from the top: above the loss l_j, delta(e) = sum_{i >= j} b_i - e^e sum_{i >= j} b_i e^{-l_i}."""
    from mpmath import exp, log, loggamma, mp, mpf

    mp.dps = 40
    eps, k = mpf(epsilon), mpf(count)
    log_mass = lambda j: loggamma(k + 1) - loggamma(j + 1) - loggamma(k - j + 1) - (k - j) * eps - k * log(1 + exp(-eps))
    # Start where the masses are far below delta.
    low, high = int(count / (1 + math.exp(-epsilon))), count
    if log_mass(mpf(count)) < log(mpf(delta)) - 80:
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if log_mass(mpf(middle)) > log(mpf(delta)) - 80 else (low, middle)
    above, below, mass, j = mpf(0), mpf(0), exp(log_mass(mpf(high))), high
    odds = exp(-eps)
    while j >= 0:
        loss = (2 * j - count) * eps
        above, below = above + mass, below + mass * exp(-loss)
        if above > delta:
            solution = log((above - delta) / below)
            # The solution below this loss and above the next one down.
            if solution >= loss - 2 * eps:
                return max(float(solution), 0.0)
        mass *= odds * j / (count - j + 1)
        j -= 1
    return 0.0


def bisect(excess, high):
    low, high = 0 * high, high
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) else (low, middle)
    return float(high)


# Brackets, by dp-accounting.


def laplace_below(size, h):
    """Outputs merged so that each cell's loss is a point of the grid.

    Between -eps and eps a cell (a, b) of losses has P = (e^{b/2} - e^{a/2}) e^{-eps/2} / 2 and Q = (e^{-a/2} - e^{-b/2}) e^{-eps/2} / 2,
    so its loss is the middle. The top cell holds the atom at eps, P = 1/2, too: with all above b it has the loss
    eps + ln(1 - (1 - y)^2), y = e^{(b - eps) / 2}. The lower half mirrors the upper; what is left in the middle has loss 0.
    """
    import numpy as np

    top = math.floor(size / h)
    y = 1 - math.sqrt(-math.expm1(min(top * h - size, 0.0)))
    if top == 0 or y <= 0 or size + 2 * math.log(y) <= 0:
        return 0, np.ones(1)
    edge = size + 2 * math.log(y)
    probs = np.zeros(2 * top + 1)
    probs[2 * top], probs[0] = 1 - y / 2, math.exp(-size) / (2 * y)
    index = math.floor(edge / h)
    while index > 0:
        lower = 2 * index * h - edge
        if lower < 0:
            break
        # P of the cell, and of its mirror image: Q of the cell.
        width = math.sinh(max(edge - lower, 0.0) / 4)
        probs[top + index] += math.exp(((edge + lower) / 2 - size) / 2) * width
        probs[top - index] += math.exp((-(edge + lower) / 2 - size) / 2) * width
        edge, index = lower, index - 1
    probs[top] += 2 * math.exp(-size / 2) * math.sinh(edge / 2) / 2
    return -top, probs


def gaussian_below(mu, h):
    """The loss is N(mu^2 / 2, mu^2); every loss rounded down."""
    import numpy as np
    from scipy.special import ndtr

    first, last = (math.floor((mu * mu / 2 + side * 20 * mu) / h) for side in (-1, 1))
    edges = (h * np.arange(first, last + 2) - mu * mu / 2) / mu
    lower, upper = np.diff(ndtr(edges)), -np.diff(ndtr(-edges))
    return first, np.where(edges[:-1] > 0, upper, lower)


def law(step, h, below):
    """The law of one step's loss on the grid: the first index and the masses."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    import numpy as np

    mechanism, size, _ = step
    if mechanism == "randomized-response":
        probs = np.zeros(2 * round(size / h) + 1)
        probs[-1] = 1 / (1 + math.exp(-size))
        probs[0] = probs[-1] * math.exp(-size)
        return -round(size / h), probs
    if mechanism == "laplace" and below:
        return laplace_below(size, h)
    if mechanism == "gaussian" and below:
        return gaussian_below(size, h)
    if mechanism == "laplace":
        made = pld.from_laplace_mechanism(1 / size, value_discretization_interval=h)
    else:
        made = pld.from_gaussian_mechanism(1 / size, value_discretization_interval=h, log_mass_truncation_bound=-200)
    dense = made._pmf_remove.to_dense_pmf()
    return dense._lower_loss, np.maximum(dense._probs, 0.0)


def trimmed(law):
    """Without the ends that have a mass of 1e-18 each. What a self-composition adds for those at infinity is left out."""
    import numpy as np

    law._infinity_mass = 0.0
    ends = [np.searchsorted(np.cumsum(np.maximum(side, 0.0)), 1e-18) for side in (law._probs, law._probs[::-1])]
    law._lower_loss += int(ends[0])
    law._probs = law._probs[ends[0] : len(law._probs) - ends[1]]
    return law


def repeated(law, count):
    """The law of a sum of so many. In two stages: dp-accounting finds a narrow window only for some hundred at a time."""
    if count == 1:
        return law
    if count <= 1000:
        return trimmed(law.self_compose(count, tail_mass_truncation=1e-18))
    root = math.isqrt(count)
    whole = repeated(repeated(law, root), count // root)
    return trimmed(whole.compose(repeated(law, count % root))) if count % root else whole


def composed(steps, s, h, below):
    """The law of the sum, by dp-accounting on tilted laws, as a function epsilon -> ln delta."""
    from dp_accounting.pld import pld_pmf
    import numpy as np

    whole, log_scale = None, 0.0
    for step in steps:
        first, probs = law(step, h, below)
        with np.errstate(divide="ignore"):
            exponent = np.log(probs) + s * h * (first + np.arange(len(probs)))
        most = exponent.max()
        tilted = np.exp(exponent - most)
        log_scale += step[2] * (most + math.log(math.fsum(tilted)))
        part = repeated(pld_pmf.DensePLDPmf(h, first, tilted / math.fsum(tilted), 0.0, not below), step[2])
        whole = part if whole is None else trimmed(whole.compose(part))
        if whole.size > 4 * CELLS:
            return None
    losses = h * (whole._lower_loss + np.arange(whole.size))
    masses = np.maximum(whole._probs, 0.0)

    def log_delta(epsilon):
        above = losses > epsilon
        terms = masses[above] * np.exp(-s * (losses[above] - epsilon)) * -np.expm1(epsilon - losses[above])
        return log_scale - s * epsilon + math.log(max(terms.sum(), 1e-300))

    return log_delta


def solve(log_delta, target, guess):
    low, high = 0.0, guess
    while log_delta(high) > target:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) > target else (low, middle)
        if high - low < 1e-12 * high:
            break
    return high


def bracket(steps, delta):
    """(low, high) around the truth, or none if it would take too many cells."""
    # All Gaussian steps are one.
    mu = math.sqrt(sum(count * size * size for mechanism, size, count in steps if mechanism == "gaussian"))
    steps = [step for step in steps if step[0] != "gaussian"] + ([("gaussian", mu, 1)] if mu else [])
    s, epsilon = rough(steps, delta)
    number = sum(count for _, _, count in steps)
    step = 0.3 * min(1.0, 1 / s)
    spread = math.sqrt(max(log_moment(steps, s + step) - 2 * log_moment(steps, s) + log_moment(steps, s - step), 0)) / step
    h = min(math.sqrt(6e-3 * epsilon / ((s + 1) * number)), epsilon * 6e-5)
    sizes = [size for mechanism, size, _ in steps if mechanism == "randomized-response"]
    unit = None
    if sizes:
        unit = min(sizes) if len(sizes) == 1 else min(sizes) / 16
        unit = max(unit / k for k in (1, 2, 3, 4, 16) if all(abs(x / (unit / k) - round(x / (unit / k))) < 1e-6 for x in sizes))
    elif any(mechanism == "laplace" for mechanism, _, _ in steps):
        unit = max(size for mechanism, size, _ in steps if mechanism == "laplace")
    for _ in range(2):
        width = h if unit is None else unit / math.ceil(unit / h)
        largest = max(size if mechanism != "gaussian" else 20 * size for mechanism, size, _ in steps)
        if max(16 * spread, 2 * largest) / width > CELLS:
            return None
        sides = [composed(steps, s, width, below) for below in (True, False)]
        if None in sides:
            return None
        low = solve(sides[0], math.log(delta) + NOISE, epsilon)
        high = solve(sides[1], math.log(delta) - NOISE, epsilon)
        if high <= low * (1 + WIDTH):
            return low, high
        h = width / 4
    return None


def setting(seed, index):
    """The setting of this number: its first draw that has an epsilon in range and a narrow bracket."""
    for attempt in range(100):
        rng = random.Random(f"{seed}/{index}/{attempt}")
        steps, delta = draw(rng, index)
        made = {"charges": charges(steps), "delta": delta}
        kinds = {mechanism for mechanism, _, _ in steps}
        if kinds == {"gaussian"}:
            multipliers = [(charge["noise_multiplier"], charge["count"]) for charge in made["charges"]]
            made["truth"] = gaussian_truth(multipliers, delta)
        elif kinds == {"randomized-response"} and len(steps) == 1:
            made["truth"] = answers_truth(steps[0][1], steps[0][2], delta)
        elif kinds == {"laplace"} and len(steps) == 1 and steps[0][2] == 1:
            made["truth"] = max(1 / made["charges"][0]["noise_multiplier"] + 2 * math.log1p(-delta), 0.0)
        else:
            found = bracket(steps, delta)
            if found is None:
                continue
            made["low"], made["high"] = found
        if 1e-3 <= made.get("truth", made.get("low")) <= 1e3:
            return {"redrawn": attempt, **made}
    raise SystemExit(f"no setting {index} can be drawn")


def golden():
    from importlib.metadata import version

    lines = []
    for index in range(GOLDEN):
        began = time.monotonic()
        made = setting("golden", index)
        lines.append(json.dumps(made))
        print(index, f"{time.monotonic() - began:.1f} s", made["redrawn"], file=sys.stderr, flush=True)
    print(f'{{"dp_accounting": "{version("dp-accounting")}", "settings": [\n' + ",\n".join(lines) + "\n]}")


def check(command):
    """Whether the golden file is what this script makes, and whether fresh settings agree with the command."""
    failures = []
    stored = json.loads((HERE / "accounting.json").read_text())["settings"]
    began = time.monotonic()

    def some(seed, indices, seconds):
        """The settings of these numbers, or as many as there is time for, but some in any case."""
        made = []
        for index in indices:
            if len(made) < 6 or time.monotonic() - began < seconds:
                made.append((index, setting(seed, index)))
        return made

    # 11 is prime to the 6 kinds of settings.
    again = some("golden", range(0, len(stored), 11), 30)
    for index, made in again:
        if not same(made, stored[index]):
            failures.append(f"golden setting {index} is not what the script makes: {made}")
    fresh = [made for _, made in some("fresh", range(30), 60)]
    lines = "".join(json.dumps({"charges": made["charges"], "delta": made["delta"]}) + "\n" for made in fresh)
    answer = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    if len(answer) != len(fresh):
        failures.append(f"{len(answer)} answers to {len(fresh)} settings")
    for made, line in zip(fresh, answer):
        said = json.loads(line)
        # The closest ones; the others are upper bounds, and may be far above.
        for name in ("tight", "pld"):
            epsilon = said[name]
            low = made.get("truth", made.get("low")) * (1 - 1e-9)
            high = made.get("truth", made.get("high")) * (1 + 1e-3)
            if not low <= epsilon <= high:
                failures.append(f"{name} says {epsilon}, not within [{low}, {high}]: {json.dumps(made)}")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(again)} golden settings made again, {len(fresh)} fresh ones compared, {len(failures)} failures")
    return not failures


def same(a, b):
    """Equal but for the last digits, which differ between machines."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return math.isclose(a, b, rel_tol=1e-7) if isinstance(a, float) else a == b


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("golden", "check"):
        sys.exit(__doc__)
    inside_own_environment()
    try:
        import dp_accounting.pld.privacy_loss_distribution
        import mpmath
    except ImportError as error:
        print(f"{PACKAGE} is installed in {HOME}, but cannot be used: {error}", file=sys.stderr)
        sys.exit(UNAVAILABLE)
    # Of overflows inside dp-accounting, on the way to numbers that are not used.
    warnings.simplefilter("ignore", RuntimeWarning)
    if sys.argv[1] == "golden":
        golden()
    elif not check(sys.argv[2:]):
        sys.exit(1)
