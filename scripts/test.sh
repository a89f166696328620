#!/bin/sh
# Installs gpudoctor with what the tests need into .venv and runs everything that must hold: formatting, lint, types, rules, tests.
EXTRAS=test
. "$(dirname "$0")/environment.sh"
bin="$venv/bin"
"$bin/ruff" format --check --quiet .
"$bin/ruff" check --quiet .
"$bin/mypy"
"$bin/gpudoctor" rules lint
exec "$bin/python" -m pytest -n auto "$@"
