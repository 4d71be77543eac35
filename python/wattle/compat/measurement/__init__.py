"""De Feo's measurement tools, on wattle's counters: change `from measurement import …` and keep the rest.

    from wattle.compat.measurement import EnergyMeasurementTool

EnergyMeasurementTool        energy of code sections: elapsed s, CPU kWh, GPU kWh
AsynchronousMeasurementTool  the machine over time, by a process of its own: elapsed s, CPU kWh, CPU %, CPU °C, GPU kWh,
                             GPU %, GPU °C, GPU W
LayerwiseMeasurementTool     energy of each layer of a PyTorch model: layer type, mean J per call

All three write CSV without a header. 1 kWh is 3.6e6 J. Unknown figures are `nan`, which float(), numpy
and pandas read as such, never 0. docs/migrate-defeo.md lists the differences from the original.
"""
from .asynchronous import AsynchronousMeasurementTool
from .energy import EnergyMeasurementTool
from .layerwise import LayerwiseMeasurementTool

__all__ = ["AsynchronousMeasurementTool", "EnergyMeasurementTool", "LayerwiseMeasurementTool"]
