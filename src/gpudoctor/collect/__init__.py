"""Runs the probe declarations against a source, under limits, and keeps account of what was asked and what came."""
