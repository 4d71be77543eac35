"""Doors for programs written for other tools: their modules, names and shapes, with wattle's recorder behind them."""
