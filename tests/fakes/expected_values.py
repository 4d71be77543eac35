"""True energy of a zone of powercap_sim between two instants, from the truth.json that powercap_sim writes."""
import json
import math


def load(folder):
    with open(f"{folder}/truth.json") as file:
        return json.load(file)


def _term_j(term, t_s):
    watts, period = term["watts"], term["period_s"]
    whole = math.floor(t_s / period)
    rest = t_s - whole * period
    if term["shape"] == "sin":
        return watts * period / (2 * math.pi) * (1 - math.cos(2 * math.pi * t_s / period))
    if term["shape"] == "step":
        return watts * (whole * period / 2 + max(0.0, rest - period / 2))
    if term["shape"] == "ramp":
        return watts * (whole * period / 2 + rest * rest / (2 * period))
    return watts * t_s


def energy_j(truth, zone, from_ns, to_ns):
    """Joules of `zone` between two instants of CLOCK_MONOTONIC (time.monotonic_ns())."""
    terms = next(z["terms"] for z in truth["zones"] if z["zone"] == zone)

    def until(t_ns):
        t_s = (t_ns - truth["origin_ns"]) / 1e9
        return sum(_term_j(term, t_s) for term in terms)

    return until(to_ns) - until(from_ns)


def late_s(truth):
    """Excess of the oldest value that a reader found over one tick, because a busy machine delays the simulator too.
    Known once the simulator has ended."""
    return truth["late_ns"] / 1e9


def max_w(truth, zone):
    """An upper limit of the zone's power."""
    return sum(max(term["watts"], 0) for z in truth["zones"] if z["zone"] == zone for term in z["terms"])
