# Sourced by try.sh and test.sh: makes a virtual environment in .venv and installs gpudoctor into it.
# usage: set EXTRAS (without durable) before sourcing. PYTHON chooses the interpreter (default: the newest python3 found).
set -eu
cd "$(dirname "$0")/.."

newest() {
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "gpudoctor needs Python 3.10 or newer; name one with PYTHON=/path/to/python3" >&2
    exit 1
}

venv=${VENV:-.venv}
if [ ! -x "$venv/bin/python" ]; then
    "$(newest)" -m venv "$venv"
fi
pip="$venv/bin/python -m pip --disable-pip-version-check --quiet"
echo "Installing into $venv (the first time it takes a minute or more)" >&2
# durable-rules has no wheels: where it can't be built (no compiler), gpudoctor does without it.
$pip install -e ".[durable${EXTRAS:+,$EXTRAS}]" 2>"$venv/durable.log" || {
    echo "durable-rules can't be built here (see $venv/durable.log); the built-in engine does its work" >&2
    $pip install -e ".${EXTRAS:+[$EXTRAS]}"
}
# Compile once, as pip does for packages that aren't editable: the modules, and (by a first run) the rules.
env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -m compileall -q src/gpudoctor || true
echo compile | env -u PYTHONDONTWRITEBYTECODE "$venv/bin/gpudoctor" diagnose --json --exit-zero - >/dev/null
