"""Doors for programs written for other tools: their module tree, their names and shapes, wattle's recorder behind them."""
