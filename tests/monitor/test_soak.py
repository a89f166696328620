"""A short run of bench/soak.py: nothing grows. The long run (2,000 cycles) is for releases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from nvml.build import scenario_env

SOAK = Path(__file__).resolve().parents[2] / "bench/soak.py"


def test_a_short_soak(lib_dir):
    env = os.environ | scenario_env("h100x8", lib_dir)
    done = subprocess.run(
        [sys.executable, SOAK, "120"], check=True, capture_output=True, text=True, env=env, timeout=300
    )
    figures = {
        line[:21].strip(): [float(number) for number in re.findall(r"[-+]?\d+(?:\.\d+)?", line[21:])]
        for line in done.stdout.splitlines()
    }
    cycles, judged = figures["cycles measured"]
    assert judged < cycles / 3
    assert figures["CPU per cycle"][0] < 120  # three times what an idle machine needs
    assert figures["resident"][1] < 100
    assert figures["resident"][2] < 10  # the first cycles still fill caches
    assert figures["with its children"][1] < 120
    assert figures["descriptors"][0] == figures["descriptors"][1]
