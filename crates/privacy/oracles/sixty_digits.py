#!/usr/bin/env python3
"""Whether the accountants' epsilons are enough, by mpmath with 150 digits: a second opinion on tests/sixty_digits.rs.

    python3 sixty_digits.py COMMAND [WORD ..]               # what `cargo xtask test` runs; some ten seconds

COMMAND gets settings, one a line, as JSON, and prints what each accountant says. The settings are fresh at every run, and a failure
prints the setting. For an epsilon that was printed, delta(epsilon) is evaluated exactly as it stands in the papers:

- Gaussian steps: Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu), mu = sqrt(sum count / multiplier^2);
- equal answers of randomized response: the sum of Kairouz, Oh and Viswanath (2015), Theorem 3.3, over all answers;
- one Laplace step: 1 - exp((e - eps) / 2).

An epsilon is enough if delta(epsilon) <= delta. Where mpmath is absent, also from the environment that accounting.py has made in
target/oracle, the script says so and exits with 77.
"""

import json
import os
import pathlib
import random
import subprocess
import sys

UNAVAILABLE = 77
DIGITS = 150

try:
    from mpmath import erfc, exp, mp, mpf, sqrt
except ImportError as error:
    own = pathlib.Path(__file__).resolve().parents[3] / "target" / "oracle"
    if (own / "bin" / "python").exists() and pathlib.Path(sys.prefix) != own:
        os.execv(own / "bin" / "python", [str(own / "bin" / "python"), *sys.argv])
    print(f"mpmath cannot be imported: {error}", file=sys.stderr)
    sys.exit(UNAVAILABLE)

mp.dps = DIGITS


def gaussian(steps, epsilon):
    mu = sqrt(sum(mpf(count) / mpf(multiplier) ** 2 for multiplier, count in steps))
    upper = lambda x: erfc(x / sqrt(2)) / 2
    return upper(epsilon / mu - mu / 2) - exp(epsilon) * upper(epsilon / mu + mu / 2)


def answers(each, count, epsilon):
    each = mpf(each)
    odds, total = exp(each), mpf(0)
    mass = (1 + odds) ** -count
    for j in range(count + 1):
        loss = (2 * j - count) * each
        if loss > epsilon:
            total += mass * (1 - exp(epsilon - loss))
        mass *= odds * (count - j) / (j + 1)
    return total


def laplace(multiplier, epsilon):
    return max(1 - exp((epsilon - 1 / mpf(multiplier)) / 2), mpf(0))


def draw(rng, index):
    """Charges, a delta, and delta as a function of epsilon."""
    charge = lambda **keys: {"audience": "everyone", **keys}
    # Three in ten anywhere, the others where they matter.
    delta_for = lambda size: min(max(10 ** rng.uniform(-300, -0.05) if rng.random() < 0.3 else size * 10 ** rng.uniform(-20, -0.4), 1e-300), 0.9)
    if index % 10 == 8:
        count, each = rng.randrange(1, 200), 10 ** rng.uniform(-12, 1.5)
        delta = delta_for(min(1.0, each * count**0.5))
        charges = [charge(mechanism="randomized-response", epsilon=each, count=count)]
        return charges, delta, lambda epsilon: answers(each, count, epsilon)
    multiplier = 10 ** rng.uniform(-3, 18)
    if index % 10 == 9:
        charges = [charge(mechanism="laplace", noise_multiplier=multiplier, count=1)]
        return charges, delta_for(min(1.0, 1 / multiplier)), lambda epsilon: laplace(multiplier, epsilon)
    steps = [(multiplier * 10 ** rng.uniform(-0.5, 0.5), round(10 ** rng.uniform(0, 6))) for _ in range(rng.choice([1, 1, 1, 3]))]
    charges = [charge(mechanism="gaussian", noise_multiplier=m, count=n) for m, n in steps]
    mu = sum(n / m**2 for m, n in steps) ** 0.5
    return charges, delta_for(min(1.0, mu)), lambda epsilon: gaussian(steps, epsilon)


def main(command):
    rng = random.Random()
    settings = [draw(rng, index) for index in range(300)]
    lines = "".join(json.dumps({"charges": charges, "delta": delta}) + "\n" for charges, delta, _ in settings)
    said = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == len(settings), (len(said), len(settings))
    failures, compared = 0, 0
    for line, (charges, delta, exact) in zip(said, settings):
        for accountant, epsilon in json.loads(line).items():
            if epsilon is None:
                continue
            compared += 1
            if exact(mpf(epsilon)) > mpf(delta):
                failures += 1
                print(f"{accountant} says {epsilon!r}, which is below the truth: {json.dumps(charges)}, delta {delta!r}")
    print(f"{len(settings)} settings, {compared} epsilons by mpmath with {DIGITS} digits: {failures} below the truth")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
