"""Runs again and again on many nodes: what a site expects and lives with, and the loop that watches a machine."""
