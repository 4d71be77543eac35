"""De Feo's measurement tools, on wattle's counters: change `from measurement import …` and keep the rest.

    from wattle.compat.measurement import EnergyMeasurementTool

EnergyMeasurementTool        joules of stretches of code: elapsed s, CPU kWh, GPU kWh
AsynchronousMeasurementTool  the machine over time, by a process of its own: elapsed s, CPU kWh, CPU %, CPU °C, GPU kWh,
                             GPU %, GPU °C, GPU W
LayerwiseMeasurementTool     joules of each layer of a PyTorch model: layer type, mean J per call

All three write CSV without a header. 1 kWh is 3.6e6 J. A figure that could not be had is `nan`, which float(), numpy
and pandas read as such; it is never 0. docs/migrate-defeo.md says what differs from the original.
"""
from .asynchronous import AsynchronousMeasurementTool
from .energy import EnergyMeasurementTool
from .layerwise import LayerwiseMeasurementTool

__all__ = ["AsynchronousMeasurementTool", "EnergyMeasurementTool", "LayerwiseMeasurementTool"]
