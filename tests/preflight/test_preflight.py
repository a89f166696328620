"""preflight: programs read by their syntax tree, requirements, machines, the try-out."""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path

import pytest

from gpudoctor.cli.main import main
from gpudoctor.preflight.age import check_guide
from gpudoctor.preflight.api import TABLE, tensorflow_parts
from gpudoctor.preflight.check import Unreadable, preflight
from gpudoctor.preflight.environment import read_environment
from gpudoctor.preflight.model import Preflight, Remark
from gpudoctor.preflight.program import ProgramUnreadable, parse_program, read_program
from gpudoctor.preflight.render import render_text
from gpudoctor.preflight.requirements import check_requirements, wanted
from gpudoctor.preflight.script import Surroundings, check_program
from gpudoctor.preflight.trial import STEPS, judge_trial, try_framework

GUIDE = Path(__file__).parents[2] / "fixtures" / "preflight" / "vgg16-guide"


def judged(text: str, **around: object) -> list[Remark]:
    return list(check_program(parse_program("t.py", text), Surroundings(**around)))  # type: ignore[arg-type]


def said(text: str, answer: str, words: str, **around: object) -> bool:
    return any(remark.answer == answer and words in remark.text for remark in judged(text, **around))


def test_published_guide() -> None:
    result = preflight(
        sources=[str(GUIDE / "node")], scripts=[str(GUIDE / "train.py")], requirements=[str(GUIDE / "setup.sh")]
    )
    assert result.verdict == "no"
    text = render_text(result)
    assert "train.py:11: tf.distribute.experimental.CommunicatorStrategy exists in no TensorFlow" in text
    assert "tf.distribute.MirroredStrategy: several GPUs of one machine" in text
    assert "tf.distribute.MultiWorkerMirroredStrategy" in text
    assert "setup.sh:5: tensorflow-gpu no longer installs" in text
    assert "tensorflow[and-cuda]" in text
    assert "18.04 is past its end of support" in text
    assert "A100-PCIE-40GB" in text
    assert "set_memory_growth" not in text, "the program sets it"


STRATEGIES = [
    ("import tensorflow as tf\ntf.distribute.MirroredStrategy()", None),
    ("import tensorflow as tf\ntf.distribute.MirroredStrategy(devices=['/gpu:0'], cross_device_ops=tf.distribute.NcclAllReduce())", None),
    ("from tensorflow import distribute as d\nd.MultiWorkerMirroredStrategy(communication_options=None)", None),
    ("import tensorflow as tf\ntf.distribute.experimental.CollectiveCommunication.NCCL", None),
    ("import tensorflow as tf\ntf.distribute.cluster_resolver.TFConfigClusterResolver()", None),
    ("import tensorflow as tf\ntf.distribute.MirorredStrategy()", "Did you mean tf.distribute.MirroredStrategy?"),
    ("import tensorflow as tf\ns = tf.distribute.experimental.MirroredStrategy()", "it is tf.distribute.MirroredStrategy"),
    ("from tensorflow.distribute.experimental import CommunicatorStrategy\nCommunicatorStrategy()", "CommunicatorStrategy exists in no TensorFlow"),
    ("import tensorflow as tf\ntf.distribute.MirroredStrategy(num_gpus=4)", "takes no argument 'num_gpus'"),
    ("import tensorflow as tf\ntf.distribute.OneDeviceStrategy('/gpu:0', 1)", "at most 1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), STRATEGIES, ids=[row[0].split("\n")[-1][:70] for row in STRATEGIES])
def test_strategies(text: str, words: str | None) -> None:
    wrong = [remark.text for remark in judged(text) if remark.answer == "no"]
    assert not wrong if words is None else any(words in remark for remark in wrong)


def test_installed_tensorflow_decides(tmp_path: Path) -> None:
    root = tmp_path / "tensorflow"
    exports = root / "_api" / "v2" / "distribute"
    (exports / "experimental").mkdir(parents=True)
    (exports / "__init__.py").write_text(
        "from tensorflow.python.distribute.mirrored_strategy import MirroredStrategy # line: 1\n"
    )
    (exports / "experimental" / "__init__.py").write_text(
        "from tensorflow.python.distribute.x import NewStrategyV2 as NewStrategy\n"
    )
    source = root / "python" / "distribute"
    source.mkdir(parents=True)
    (source / "mirrored_strategy.py").write_text(
        "class MirroredStrategy:\n  def __init__(self, devices=None, brand_new=None): pass\n"
    )
    parts = tensorflow_parts([tmp_path], "2.99.0")
    assert parts.arguments["MirroredStrategy"] == ("devices", "brand_new")
    assert not [
        r
        for r in judged("import tensorflow as tf\ntf.distribute.MirroredStrategy(brand_new=1)", parts=parts)
        if r.answer == "no"
    ]
    assert said(
        "import tensorflow as tf\ntf.distribute.TPUStrategy()", "no", "TensorFlow 2.99.0 as installed", parts=parts
    )
    assert tensorflow_parts([tmp_path / "elsewhere"], None) is TABLE


def test_tensorflow_advice() -> None:
    text = "import tensorflow as tf\nd = tf.data.Dataset.from_tensor_slices(x)\nd = d.map(f)\nmodel.fit(d)"
    for words in ("nearly the whole GPU", "fp32", "no prefetch", "one core"):
        assert said(text, "advice", words), words
    assert said(text, "advice", "Only one of the 4 GPUs", gpus=4)
    assert not said(text, "advice", "fp32", capability=6.1)
    good = (
        "import tensorflow as tf\nfor g in tf.config.list_physical_devices('GPU'):\n  tf.config.experimental.set_memory_growth(g, True)\n"
        "tf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
        "d = tf.data.Dataset.from_tensor_slices(x).map(f, num_parallel_calls=tf.data.AUTOTUNE).prefetch(1)\nmodel.fit(d)"
    )
    assert judged(good) == []


def test_removed_names() -> None:
    assert said(
        "import tensorflow as tf\nwith tf.Session(config=tf.ConfigProto()) as s: pass", "no", "tensorflow.Session went"
    )
    assert said(
        "from tensorflow.keras.utils import multi_gpu_model\nmulti_gpu_model(m, 2)", "no", "multi_gpu_model was removed"
    )
    assert not said("import tensorflow as tf\nwith tf.compat.v1.Session() as s: pass", "no", "Session")


DEVICES = [
    ("import torch\nx.cuda(3)", 2, "no"),
    ("import torch\ntorch.device('cuda', 1)", 2, "advice"),
    ("import torch\nm.to('cuda:5')", 4, "no"),
    ("import torch\nm.to('cuda:0')", 1, None),
    ("import tensorflow as tf\nwith tf.device('/device:GPU:1'): pass", 1, "no"),
    ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '-1'", None, "no"),
    ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '6,7'", 2, "no"),
    ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'", 2, "advice"),
    ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = args.gpu", 2, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "gpus", "answer"), DEVICES, ids=[row[0].split("\n")[-1] for row in DEVICES])
def test_fixed_devices(text: str, gpus: int | None, answer: str | None) -> None:
    assert {remark.answer for remark in judged(text, gpus=gpus)} == ({answer} if answer else set())


def test_torch_advice() -> None:
    text = "import torch\nfrom torch.utils.data import DataLoader\nl = DataLoader(d, batch_size=8)\nloss.backward()"
    assert said(text, "advice", "num_workers=0")
    assert said(text, "advice", "pin_memory")
    assert said(text, "advice", "fp32")
    assert said(
        "import torch\nfrom torch.utils.data import DataLoader\nDataLoader(d, num_workers=32, pin_memory=True)",
        "advice",
        "16 CPU cores",
        cpus=16,
    )
    assert said(
        "import torch.nn as nn\nimport torch\nm = nn.DataParallel(m)", "advice", "DistributedDataParallel is faster"
    )
    assert said(
        "import torch.distributed as dist\nimport torch\ndist.init_process_group(backend='ncll')", "no", "no backend"
    )
    ddp = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\ndist.init_process_group('nccl')\nm = DistributedDataParallel(m)\n"
    assert said(ddp, "advice", "open GPU 0")
    assert not said(ddp + "torch.cuda.set_device(rank)", "advice", "open GPU 0")
    assert said("import pytorch_lightning as pl\npl.Trainer(gpus=2)", "no", "no 'gpus'", lightning=(2, 4))
    assert not said("import pytorch_lightning as pl\npl.Trainer(gpus=2)", "no", "gpus", lightning=(1, 9))


def test_jax_kept_on_the_cpu() -> None:
    assert said("import jax\njax.config.update('jax_platform_name', 'cpu')", "no", "on the CPU")
    assert said("import os, jax\nos.environ['JAX_PLATFORMS'] = 'cpu'", "no", "on the CPU")


def test_notebook(tmp_path: Path) -> None:
    cells = [
        {
            "cell_type": "code",
            "source": ["!pip install tensorflow-gpu==2.3\n", "%matplotlib inline\n", "import tensorflow as tf\n"],
        },
        {"cell_type": "markdown", "source": ["# text (\n"]},
        {"cell_type": "code", "source": "tf.distribute.NopeStrategy()"},
    ]
    file = tmp_path / "n.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    result = preflight(scripts=[str(file)], machine=False)
    assert [remark.topic for remark in result.of("no")] == ["script"]
    assert any("Python 3.10 or older" in remark.text for remark in result.of("advice"))


@pytest.mark.parametrize("text", ["print 'python 2'", "def f(:", "\x00", "(" * 300 + ")" * 300])
def test_what_is_no_program_is_one_clear_line(text: str) -> None:
    with pytest.raises(ProgramUnreadable) as error:
        parse_program("t.py", text)
    assert "\n" not in str(error.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ProgramUnreadable):
        read_program(tmp_path / "none.py")
    with pytest.raises(Unreadable):
        preflight(requirements=[str(tmp_path / "none.txt")], machine=False)


REQUIREMENTS = [
    ("tensorflow-gpu", "no", "no longer installs"),
    ("tensorflow_gpu==2.4.1", "advice", "Python 3.10 or older"),
    ("tensorflow-cpu", "no", "no GPU support"),
    ("tensorflow==1.14.0", "no", "Python 3.7"),
    ("tensorflow==2.16.1", "advice", "and-cuda"),
    ("torch==2.4.0+cpu", "no", "without CUDA"),
    ("jax", "advice", "CPU build"),
    ("pytorch", "no", "called torch"),
    ("onnxruntime", "advice", "CPU build"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "answer", "words"), REQUIREMENTS, ids=[row[0] for row in REQUIREMENTS])
def test_requirements(line: str, answer: str, words: str) -> None:
    remarks = list(check_requirements("requirements.txt", wanted(line, plain=True)))
    assert [(remark.answer, words in remark.text) for remark in remarks] == [(answer, True)]


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.4.0",
        "tensorflow[and-cuda]==2.17.0",
        "jax[cuda12]",
        "numpy",
        "# tensorflow-gpu",
        "-r base.txt",
        "https://example.org/x.whl",
    ],
)
def test_fine_requirements(line: str) -> None:
    assert not list(check_requirements("requirements.txt", wanted(line, plain=True)))


def test_python_decides_for_old_packages() -> None:
    remarks = list(check_requirements("r.txt", wanted("tensorflow-gpu==2.4.0", plain=True), "3.12.1"))
    assert remarks[0].answer == "no"


def test_dockerfile_and_guide() -> None:
    text = "FROM ubuntu:18.04\nRUN apt-get update && pip3 install --no-cache-dir -i https://mirror.example.org/simple tensorflow-gpu && rm -r x\n# tested on CentOS 7"
    assert [spec[0] for spec in wanted(text, plain=False)] == ["tensorflow-gpu"]
    assert [remark.where for remark in check_guide("Dockerfile", text, date(2026, 1, 1))] == [
        "Dockerfile:1",
        "Dockerfile:3",
    ]


def test_this_interpreter_is_asked_without_importing() -> None:
    environment = read_environment(sys.executable)
    assert environment.version("pydantic") and not environment.problem
    assert read_environment("/no/such/python").problem == "no such program"


SMI = (
    (GUIDE / "node" / "nvidia-smi.txt")
    .read_text()
    .replace("450.191.01", "550.54.15 ")
    .replace("CUDA Version: 11.0", "CUDA Version: 12.4")
)


def test_evidence_of_another_node(tmp_path: Path) -> None:
    (tmp_path / "smi.txt").write_text(SMI)
    assert preflight(sources=[str(tmp_path)]).verdict == "unknown", "no packages are shown"
    (tmp_path / "pip.txt").write_text(
        "Package    Version\n---------- -------\nnumpy      1.26.4\ntorch      2.4.1+cpu\n"
    )
    assert "without CUDA" in preflight(sources=[str(tmp_path)]).of("no")[0].text
    (tmp_path / "pip.txt").write_text(
        "Package    Version\n---------- -------\nnumpy      1.26.4\ntorch      2.4.1+cu121\n"
    )
    result = preflight(sources=[str(tmp_path)])
    assert result.verdict == "yes", render_text(result)
    assert "not installed" in preflight(sources=[str(tmp_path)], framework="jax").of("no")[0].text


def test_trial() -> None:
    told = "\n".join(json.dumps([step, "NVIDIA L4" if step == "device" else ""]) for step in STEPS)
    remarks = list(judge_trial("pytorch", told, "", hung=False, deadline=9))
    assert remarks == [Remark("yes", "run", "pytorch sees NVIDIA L4, allocates, multiplies and convolves on it")]
    failed = '["import", "2.4"]\n["failed", "device", "RuntimeError: torch.cuda.is_available() is False"]'
    assert next(judge_trial("pytorch", failed, "", hung=False, deadline=9)).answer == "no"
    crashed = next(judge_trial("jax", '["import", "0.5"]', "Segmentation fault", hung=False, deadline=9))
    assert "at: device" in crashed.text and "Segmentation fault" in crashed.text


def test_trial_that_hangs_is_ended(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexec sleep 30\n")
    fake.chmod(0o755)
    slow = next(try_framework(str(fake), "pytorch", 1.0))
    assert "no answer within 1 s" in slow.text
    assert (slow.answer, slow.fixes) == ("unknown", ("gpudoctor preflight --run --timeout 4",)), (
        "no GPU was touched yet"
    )
    hung = next(judge_trial("pytorch", '["import", "2.13.0"]', "", hung=True, deadline=60))
    assert (hung.answer, hung.fixes[0].split()[0]) == ("no", "nvidia-smi")


def test_cpu_package_of_tensorflow_goes_first(tmp_path: Path) -> None:
    (tmp_path / "smi.txt").write_text(SMI)
    (tmp_path / "pip.txt").write_text(
        "Package         Version\n--------------- -------\nkeras           3.15.1\nnumpy           2.4.6\ntensorflow_cpu  2.21.0\n"
    )
    fixes = preflight(sources=[str(tmp_path)]).of("no")[0].fixes
    assert [fix.split()[:2] for fix in fixes] == [["pip", "uninstall"], ["pip", "install"]]


def test_missing_framework_is_not_known() -> None:
    assert Preflight(tuple(try_framework(sys.executable, "pytorch", 60.0))).verdict in ("unknown", "no", "yes")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.py"
    good.write_text("import torch\n")
    assert main(["preflight", "--no-machine", "--script", str(good)]) == 3
    out = capsys.readouterr().out
    assert out.startswith("CAN'T TELL")
    assert "the machine was not looked at" in out
    assert main(["preflight", "--no-machine", "--script", str(GUIDE / "train.py"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["verdict"] == "no"
    assert main(["preflight", "--no-machine"]) == 64
    assert main(["preflight", "--no-machine", "--script", str(tmp_path / "none.py")]) == 66
