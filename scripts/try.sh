#!/bin/sh
# Installs gpudoctor into .venv, examines this machine, then diagnoses a sample bundle.
EXTRAS=
. "$(dirname "$0")/environment.sh"
echo "== this machine: gpudoctor --text"
"$venv/bin/gpudoctor" --text --exit-zero
echo
echo "== a sample: gpudoctor diagnose fixtures/bug-report-lost-gpu"
"$venv/bin/gpudoctor" diagnose --text --exit-zero fixtures/bug-report-lost-gpu
