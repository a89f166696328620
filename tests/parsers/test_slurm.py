"""Slurm formats beyond the samples in the docstrings."""

from __future__ import annotations

import pytest

from gpudoctor.parsers.base import NotThisFormat
from gpudoctor.parsers.slurm import batch_script, conf_node, gres_conf, show_job, show_node, sinfo_reasons


def test_a_configuration_line_is_no_node_state() -> None:
    with pytest.raises(NotThisFormat):
        next(show_node("NodeName=g[1-4] CPUs=64 Gres=gpu:4 State=UNKNOWN\n"))


def test_a_reason_without_a_gpu() -> None:
    node = next(
        show_node("NodeName=g1 Arch=x86_64\n   State=DOWN+DRAIN ThreadsPerCore=2\n   Reason=Not responding [slurm@x]\n")
    )
    assert (node.drained, node.gpu_reason) == (True, False)


def test_sinfo_with_a_state_column() -> None:
    text = "REASON               USER      TIMESTAMP           STATE  NODELIST\nXid 48               root      2025-01-02T03:04:05 drain* gpu07\n"
    node = next(sinfo_reasons(text))
    assert (node.name, node.reason, node.gpu_reason) == ("gpu07", "Xid 48", True)


@pytest.mark.parametrize(
    ("option", "gpus"),
    [
        ("--gres=gpu", 1),
        ("--gres=gpu:4", 4),
        ("--gres=gpu:a100_80gb:2", 2),
        ("--gpus=8", 8),
        ("--gpus-per-node=h100:4", 4),
        ("-G 2", 2),
        ("--gpus-per-task 1", 1),
        ("--mem=64G", 0),
    ],
)
def test_gpus_of_a_script(option: str, gpus: int) -> None:
    assert next(batch_script(f"#SBATCH -N 1\n#SBATCH {option}\n")).gpus == gpus


def test_a_job_with_gpus_per_node() -> None:
    text = "JobId=1 JobName=x\n   JobState=PENDING Reason=QOSMinGRES Dependency=(null)\n   TRES=cpu=1,node=1\n   TresPerNode=gres:gpu:2\n"
    job = next(show_job(text))
    assert (job.gpus, job.reason) == (2, "QOSMinGRES")


def test_totals_are_per_node_list() -> None:
    text = "NodeName=a[1-2] Name=gpu File=/dev/nvidia[0-3]\nNodeName=b1 Name=gpu File=/dev/nvidia[0-7]\n"
    totals = {fact.nodes: fact.gpus for fact in gres_conf(text) if fact.seen_by == "gres.conf total"}
    assert totals == {"a[1-2]": 4, "b1": 8}


def test_types_and_sockets_in_slurm_conf() -> None:
    assert next(conf_node("NodeName=n1 CPUs=8 Gres=gpu:a100:4,gpu:t4:2(S:0) State=UNKNOWN")).gpus == 6
