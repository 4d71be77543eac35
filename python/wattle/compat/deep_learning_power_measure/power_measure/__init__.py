"""The modules of AIPowerMeter by their names: experiment, parsers, rapl_power, rapl, gpu_power, model_complexity."""
