"""Compatibility layers for programs written for other tools: their modules, names and formats, with wattle's recorder."""
