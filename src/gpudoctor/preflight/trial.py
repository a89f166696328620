"""The try-out: a child process that sees the device, allocates, multiplies and convolves, with a deadline."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from gpudoctor.preflight.model import Remark

STEPS = ("import", "device", "allocation", "matrix product", "convolution")

_REPORT = """
import json, sys
def told(step, value=""):
    print(json.dumps([step, str(value)]), flush=True)
def failed(step, error):
    print(json.dumps(["failed", step, type(error).__name__ + ": " + str(error)[:600]]), flush=True); sys.exit(1)
step = "import"
try:
"""
_END = """
except SystemExit:
    raise
except BaseException as error:
    failed(step, error)
"""
_BODIES = {
    "pytorch": """
    import torch; told("import", torch.__version__)
    step = "device"
    if not torch.cuda.is_available(): raise RuntimeError("torch.cuda.is_available() is False (built for CUDA %s)" % torch.version.cuda)
    told("device", torch.cuda.get_device_name(0))
    step = "allocation"; a = torch.randn(1024, 1024, device="cuda"); told(step)
    step = "matrix product"; b = (a @ a).sum().item(); told(step)
    step = "convolution"
    torch.nn.functional.conv2d(torch.randn(4, 3, 64, 64, device="cuda"), torch.randn(8, 3, 3, 3, device="cuda")); torch.cuda.synchronize(); told(step)
""",
    "tensorflow": """
    import os; os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    import tensorflow as tf; told("import", tf.__version__)
    step = "device"
    found = tf.config.list_physical_devices("GPU")
    if not found: raise RuntimeError("TensorFlow lists no GPU (built with CUDA: %s)" % tf.test.is_built_with_cuda())
    told("device", tf.config.experimental.get_device_details(found[0]).get("device_name", found[0].name))
    with tf.device("/GPU:0"):
        step = "allocation"; a = tf.random.normal((1024, 1024)); told(step)
        step = "matrix product"; tf.linalg.matmul(a, a).numpy(); told(step)
        step = "convolution"; tf.nn.conv2d(tf.random.normal((4, 64, 64, 3)), tf.random.normal((3, 3, 3, 8)), 1, "SAME").numpy(); told(step)
""",
    "jax": """
    import os; os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax, jax.numpy as jnp; told("import", jax.__version__)
    step = "device"; found = [d for d in jax.devices() if d.platform in ("gpu", "cuda")]
    if not found: raise RuntimeError("jax.devices() lists only " + ", ".join(sorted({d.platform for d in jax.devices()})))
    told("device", found[0].device_kind)
    step = "allocation"; a = jnp.ones((1024, 1024)).block_until_ready(); told(step)
    step = "matrix product"; (a @ a).block_until_ready(); told(step)
    step = "convolution"; jax.lax.conv(jnp.ones((4, 3, 64, 64)), jnp.ones((8, 3, 3, 3)), (1, 1), "SAME").block_until_ready(); told(step)
""",
}


def try_framework(interpreter: str, framework: str, deadline: float) -> Iterator[Remark]:
    """Run the framework on its first GPU; a child that hangs is killed and said to hang."""
    program = _REPORT + _BODIES[framework] + _END
    try:
        done = subprocess.run(
            [interpreter, "-c", program],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline,
            check=False,
        )
        output, errors, hung = done.stdout, done.stderr, False
    except subprocess.TimeoutExpired as error:
        output, errors, hung = _text(error.stdout), _text(error.stderr), True
    except OSError as error:
        yield Remark("unknown", "run", f"{interpreter} can't be run: {error.strerror}.")
        return
    yield from judge_trial(framework, output, errors, hung=hung, deadline=deadline)


def _text(raw: bytes | str | None) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw or ""


def judge_trial(framework: str, output: str, errors: str, *, hung: bool, deadline: float) -> Iterator[Remark]:
    """Judge what the child said.

    >>> next(judge_trial("jax", '["import", "0.5"]', "", hung=True, deadline=60)).text
    'jax gave no answer within 60 s (at: device).'
    """
    done: list[list[str]] = []
    for line in output.split("\n"):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, list) and told and all(isinstance(part, str) for part in told):
            done.append(told)
    reached = [told[0] for told in done if told[0] in STEPS]
    following = next((step for step in STEPS if step not in reached), STEPS[-1])
    failed = next((told for told in done if told[0] == "failed" and len(told) == 3), None)
    if hung:
        # Importing touches no GPU: a slow disk is no reason to say no.
        slow = following == "import"
        fix = f"gpudoctor preflight --run --timeout {4 * deadline:.0f}" if slow else "nvidia-smi   # does it answer?"
        text = f"{framework} gave no answer within {deadline:.0f} s (at: {following})."
        yield Remark("unknown" if slow else "no", "run", text, fixes=(fix,))
    elif failed:
        answer: str = f"{framework} fails at the step {failed[1]!r}: {failed[2]}"
        yield Remark("unknown" if failed[1] == "import" and "ModuleNotFoundError" in failed[2] else "no", "run", answer)
    elif reached == list(STEPS):
        device = next((told[1] for told in done if told[0] == "device" and len(told) > 1), "the GPU")
        yield Remark("yes", "run", f"{framework} sees {device}, allocates, multiplies and convolves on it")
    else:
        last = next((line.strip() for line in reversed(errors.split("\n")) if line.strip()), "no message")
        yield Remark("no", "run", f"{framework} ended without an answer (at: {following}): {last[:300]}")
