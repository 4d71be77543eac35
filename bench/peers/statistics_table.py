"""Means with confidence intervals, and the Markdown tables of bench/peers."""
import math
import statistics

# Student's t, two-sided 95 %, by degrees of freedom; beyond them the normal distribution's value is near enough.
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def interval(values):
    """(mean, half width of the 95 % interval); the half is None for fewer than two values."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, None
    t = T95[len(values) - 2] if len(values) - 2 < len(T95) else 1.96
    return mean, t * statistics.stdev(values) / math.sqrt(len(values))


def relative_error_percent(found, truth):
    return None if found is None or not truth else 100 * (found / truth - 1)


def cell(values, digits=1, signed=False):
    values = [value for value in values if value is not None]
    if not values:
        return "n/a"
    mean, half = interval(values)
    sign = "+" if signed else ""
    return f"{mean:{sign}.{digits}f}" + (f" ± {half:.{digits}f}" if half is not None else "")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
