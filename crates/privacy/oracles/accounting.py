"""Writes accounting.json: epsilons of random mixtures by Google's dp-accounting, on two grids each.

    python3 -m venv venv && venv/bin/pip install dp-accounting==0.6.0
    venv/bin/python accounting.py > accounting.json

dp-accounting's connect-the-dots value is an upper bound. For many steps its error falls with the square of the grid's width h:
`high` is its value at h/2, `low` is that minus the whole change from h to h/2, three times the error that is left. Few
steps have losses with atoms, which the grid moves by up to h/2 each, and dp-accounting rounds every answer of randomized
response up to its grid: `low` allows for that too.
"""

import json
import math
import random
from importlib.metadata import version

from dp_accounting.pld import privacy_loss_distribution as pld

TAIL = 1e-20


def step(charge, h):
    if charge["mechanism"] == "laplace":
        return pld.from_laplace_mechanism(charge["noise_multiplier"], value_discretization_interval=h)
    if charge["mechanism"] == "gaussian":
        return pld.from_gaussian_mechanism(
            charge["noise_multiplier"], value_discretization_interval=h, log_mass_truncation_bound=-60
        )
    # dp-accounting's parameter is the probability of a uniformly random answer.
    return pld.from_randomized_response(2 / (1 + math.exp(charge["epsilon"])), 2, value_discretization_interval=h)


def epsilon(charges, delta, h):
    whole = None
    for charge in charges:
        part = step(charge, h)
        if charge["count"] > 1:
            part = part.self_compose(charge["count"], tail_mass_truncation=TAIL)
        whole = part if whole is None else whole.compose(part, tail_mass_truncation=TAIL)
    return whole.get_epsilon_for_delta(delta)


def deviation(charge):
    """Of one step's privacy loss, roughly."""
    if charge["mechanism"] == "randomized-response":
        return charge["epsilon"]
    return 1 / charge["noise_multiplier"]


def setting(rng):
    charges = []
    for _ in range(rng.choice([1, 2, 2, 3, 4, 6])):
        mechanism = rng.choice(["laplace", "laplace", "gaussian", "randomized-response"])
        count = round(10 ** rng.uniform(0, 3))
        size = 10 ** rng.uniform(-1.5, 0.7) / math.sqrt(count)
        parameter = {"epsilon": size} if mechanism == "randomized-response" else {"noise_multiplier": 1 / size}
        charges.append({"mechanism": mechanism, **parameter, "audience": "everyone", "count": count})
    return charges, 10 ** rng.uniform(-8, -2)


def main():
    rng = random.Random(20180409)
    settings = []
    while len(settings) < 60:
        charges, delta = setting(rng)
        steps = sum(charge["count"] for charge in charges)
        spread = math.sqrt(sum(charge["count"] * deviation(charge) ** 2 for charge in charges))
        h = min(spread / math.sqrt(steps) / 60, spread / 20_000)
        coarse, fine = epsilon(charges, delta, h), epsilon(charges, delta, h / 2)
        if 1e-3 <= fine <= 1e3 and 0 <= coarse - fine <= 2e-4 * fine:
            responses = sum(charge["count"] for charge in charges if charge["mechanism"] == "randomized-response")
            low = fine - (coarse - fine) - h / 2 * (steps if steps < 30 else responses)
            settings.append({"charges": charges, "delta": delta, "low": low, "high": fine})
    lines = ",\n".join(json.dumps(setting) for setting in settings)
    print(f'{{"dp_accounting": "{version("dp-accounting")}", "settings": [\n{lines}\n]}}')


main()
