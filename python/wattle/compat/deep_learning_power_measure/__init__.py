"""AIPowerMeter's module tree: change `deep_learning_power_measure` to `wattle.compat.deep_learning_power_measure`.

    from wattle.compat.deep_learning_power_measure.power_measure import experiment, parsers

    driver = parsers.JsonParser("output_folder")
    p, q = experiment.Experiment(driver).measure_yourself(period=2)
    ...
    q.put(experiment.STOP_MESSAGE)
    experiment.ExpResults(driver).print()

Recorded data and differences: docs/migrate-aipowermeter.md.
"""
from ._program import main

__all__ = ["main"]
