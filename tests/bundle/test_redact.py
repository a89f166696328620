"""Secrets and identities of forty kinds, planted in every place that is collected, are in no byte of the bundle."""

from __future__ import annotations

import gzip
import ipaddress
import json
import tarfile
from pathlib import Path

import pytest
import yaml

from gpudoctor.bundle.collect import take, write
from gpudoctor.bundle.redact import Redactor
from gpudoctor.collect.probe import load_probes
from gpudoctor.diagnosis import Doctor
from gpudoctor.sources.live import LiveHost, recording_name
from gpudoctor.sources.memory import TextSource

# line -> the part of it that must not be found again
PLANTED = {
    "PASSWORD=hunter2-Pa55": "hunter2-Pa55",
    "DB_PASSWORD: 'c0rrectHorse'": "c0rrectHorse",
    '{"db_passwd": "battery9staple"}': "battery9staple",
    "export WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567": "0123456789abcdef0123456789abcdef01234567",
    "HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345": "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "loaded with hf_ZyXwVuTsRqPoNmLkJiHgFeDcBa543210 from the hub": "hf_ZyXwVuTsRqPoNmLkJiHgFeDcBa543210",
    "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE": "AKIAIOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "remote: ghp_16C7e42F292c6912E7710c838347Ae178B4a denied": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "glpat-xYz123AbC456dEf789Gh": "glpat-xYz123AbC456dEf789Gh",
    "OPENAI_API_KEY=sk-proj-abcDEF123456ghiJKL789": "sk-proj-abcDEF123456ghiJKL789",
    "NGC_API_KEY=nvapi-Qw3rTy1234567890AsDfGhJkL": "nvapi-Qw3rTy1234567890AsDfGhJkL",
    "slack xoxb-123456789012-abcdefGHIJKL": "xoxb-123456789012-abcdefGHIJKL",
    "maps AIzaSyA1234567890abcdefghijklmnopqrstu": "AIzaSyA1234567890abcdefghijklmnopqrstu",
    "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqZG9lIn0.s5Gnat0reXYZ": "eyJzdWIiOiJqZG9lIn0",
    "Authorization: Bearer abc.def-ghi_jkl123456": "abc.def-ghi_jkl123456",
    "Authorization: Basic anVsaWE6cGFzc3dvcmQ=": "anVsaWE6cGFzc3dvcmQ=",
    "Cookie: sessionid=38afes7a8q; csrftoken=u32t4o3tb3gg43": "38afes7a8q",
    "pip install --index-url https://deploy:s3cr3tPw@pypi.corp.test/simple x": "s3cr3tPw",
    "git clone https://oauth2tokenvalue99@git.corp.test/x.git": "oauth2tokenvalue99",
    "python train.py --api-key k3yFromArgv77 --lr 1": "k3yFromArgv77",
    "mysql -u root -pMyS3cret -h db": "MyS3cret",
    "sshpass -p SshPw123 ssh juliet@login": "SshPw123",
    "curl -u bob4711:CurlPw99 https://x": "CurlPw99",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx1y2z3\nq9w8e7r6t5\n-----END RSA PRIVATE KEY-----": "MIIEpAIBAAKCAQEAx1y2z3",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7xyz juliet@laptop77": "AAAAB3NzaC1yc2EAAAADAQABAAABAQC7xyz",
    '"auths": {"nvcr.io": {"auth": "JG9hdXRodG9rZW46c2VjcmV0"}}': "JG9hdXRodG9rZW46c2VjcmV0",
    "AccountName=x;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq==;": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",
    "https://hooks.slack.com/services/T00/B00/XXXXsecretXXXX": "XXXXsecretXXXX",
    "https://b.test/o?X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027d0445342fe": "fe5f80f77d5fa3beca038a248ff027d0445342fe",
    "/home/juliet.capulet/train/run.py": "juliet.capulet",
    "Jun  1 08:17:02 verona-gpu-07 sudo: mercutio : TTY=pts/0 ; USER=root ; COMMAND=/bin/ls": "mercutio",
    "Linux verona-gpu-07.montague.test 6.8.0-31-generic #31 SMP x86_64 GNU/Linux": "montague.test",
    "Jun  1 08:17:03 verona-gpu-07 kernel: usb 1-1: x": "verona-gpu-07",
    "link/ether 3c:ec:ef:12:34:56 brd ff:ff:ff:ff:ff:ff": "3c:ec:ef:12:34:56",
    "inet 10.23.45.67/24 scope global eth0": "10.23.45.67",
    "connect to 203.0.113.99:29500 failed": "203.0.113.99",
    "inet6 2a02:8071:abcd:1234::77/64 scope global": "2a02:8071:abcd:1234::77",
    "    Serial Number                         : 1650522003820": "1650522003820",
    "Board Serial Number: ZM18S012345": "ZM18S012345",
    "    GPU UUID                              : GPU-5a1b6f2e-8d57-4c1e-9a5f-0c5a3e2b7d11": "5a1b6f2e-8d57-4c1e-9a5f-0c5a3e2b7d11",
    "root=UUID=7c3f4a52-12ab-4f5e-8b1a-99e0d2a4c6f8 ro": "7c3f4a52-12ab-4f5e-8b1a-99e0d2a4c6f8",
    "mail romeo@capulet.test about it": "romeo@capulet",
    "Node GUID: 0x0c42a1030079a1b2": "0c42a1030079a1b2",
    "/dev/disk/by-id/nvme-SAMSUNG_MZQL_S64GNE0T": "S64GNE0T",
    "C:\\Users\\tybalt99\\models": "tybalt99",
    "SLURM_JOB_NODELIST=verona-gpu-[07-12]": "gpu-[07-12]",
    "wandb: using api key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "KAGGLE_KEY=0a1b2c3d4e5f60718293a4b5c6d7e8f9": "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "CI_JOB_TOKEN in glcbt-64_qwertzuiop12345678": "qwertzuiop12345678",
    "redis://:onlyPass99@cache.montague.test:6379": "onlyPass99",
    "    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo=": "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt",
    "machine api.montague.test login paris4 password netrcPw77": "netrcPw77",
    "docker login -u escalus -p d0ckerPw55 nvcr.io": "d0ckerPw55",
    "ED25519 SHA256:Qm3rT5uVwXyZ0123456789AbCdEfGhIjKlMnOpQrStU": "Qm3rT5uVwXyZ0123456789AbCdEfGhIjKlMnOpQrStU",
    "    GPU PDI                               : 0x5d1c3b2a19087766": "5d1c3b2a19087766",
    "[SN] Serial number: MT2134X00123": "MT2134X00123",
    "from 2a02:8071:abcd:1234::78: icmp_seq=1": "2a02:8071:abcd:1234::78",
    "GID[  0]: fe80:0000:0000:0000:9a03:9b03:00aa:bbd0": "9a03:9b03:00aa:bbd0",
    "mlx5_0  1  3  0000:0000:0000:0000:0000:ffff:0a17:2d43  10.23.45.67  v2  eth0": "0a17:2d43",
    "HWaddr 3cecef123457": "3cecef123457",
    "benvolio     4242 99.0  1.0 123 456 ?        R    10:00   1:00 python train.py": "benvolio",
    "balthasar    4243 R    -  python": "balthasar",
    "uid=1004(laurence44) gid=1004(laurence44) groups=1004(laurence44),44(video)": "laurence44",
    "drwxr-xr-x 2 rosaline rosaline 4096 Jan  1 10:00 checkpoints": "rosaline",
    "slurmstepd: error: *** JOB 99 ON verona-login-3 CANCELLED AT 2025-01-01T10:00:00 ***": "verona-login-3",
    "scp run.log abram77@10.2.3.4:/tmp": "abram77",
    "VERONA-GPU-07 in capitals": "VERONA-GPU-07",
}
TEXT = "\n".join(PLANTED) + "\n"


def test_forty_kinds() -> None:
    assert len(PLANTED) >= 40
    redactor = Redactor()
    redactor.learn(TEXT)
    redacted = redactor.redact(TEXT)
    assert [secret for secret in PLANTED.values() if secret in redacted] == []
    assert redactor.redact(redacted) == redacted


@pytest.fixture(scope="module")
def doctor() -> Doctor:
    return Doctor()


def plant(root: Path, commands: Path) -> int:
    """Write the text to every place that a probe reads; returns how many."""
    commands.mkdir(parents=True)
    places = 0
    for probe in load_probes():
        for pattern in sorted(
            (*probe.live.files, *probe.live.tree), key=len, reverse=True
        ):  # folders after what is in them
            path = root / pattern.lstrip("/").replace("*", "x1")
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(TEXT)
                places += 1
        if probe.live.command or probe.live.child:
            (commands / recording_name(probe.live.command or [str(probe.live.child)])).write_text(TEXT)
            places += 1
    return places


def test_nothing_planted_is_in_the_bundle(doctor, tmp_path) -> None:
    places = plant(tmp_path / "root", tmp_path / "commands")
    log = tmp_path / "train.log.gz"
    log.write_bytes(gzip.compress(TEXT.encode()))
    snapshot = take(doctor, LiveHost(str(tmp_path / "root"), str(tmp_path / "commands")), timeout=60, logs=[log])
    assert sum(len(asked.parts) for asked in snapshot.manifest.probes if asked.parts[0].status == "ok") >= 30 <= places
    bundle = tmp_path / "bundle.tar.xz"
    write(snapshot, bundle)
    found = []
    with tarfile.open(bundle) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member).read().decode("utf-8", "surrogateescape") + member.name
            found += [(member.name, secret) for secret in PLANTED.values() if secret in content]
    assert found == []


KEPT = """\
[  812.114] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python3, GPU has fallen off the bus.
nvidia-cudnn-cu12 9.1.0.70
nvidia-curand-cu12==10.3.5.147
libcurand.so.10.3.5.147
"version" : "12.4.127.1"
vLLM engine: max_num_batched_tokens=8192, max_tokens: 256, tokenizer=None
NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:127.0.0.1<0>
CUDA_VISIBLE_DEVICES=0,1,2,3
PWD=/workspace
    Serial Number                         : N/A
docker0: 172.17.0.1/16
torch._C.std::bad_alloc at ::add 12:30:45
password for root: no
pci 0000:3b:00.0: BAR 1 [mem 0x38bfe0000000-0x38bfefffffff 64bit pref]
0000:3b:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)
Driver Version: 550.54.15  CUDA Version: 12.4  VBIOS 92.00.45.00.03
nvidia-persistenced@0.service user@1000.service
munge          411  0.0  0.0  71000  4000 ?        Sl   07:07   0:01 /usr/sbin/munged
Bus 006 Device 001: ID 1d6b:0003 Linux Foundation 3.0 root hub
vfio-pci 0000:01:00.0: Invalid PCI ROM header signature: expecting 0xaa55, got 0xffff
connect() to 192.168.122.1 failed: Connection refused (111)
"""


def test_evidence_stays_as_it_is() -> None:
    redactor = Redactor(hosts=["gpu"], users=["root", "ubuntu"])
    redactor.learn(KEPT)
    assert redactor.redact(KEPT) == KEPT


def test_equal_things_stay_equal() -> None:
    redactor = Redactor()
    text = "GPU-5a1b6f2e-8d57-4c1e-9a5f-0c5a3e2b7d11 a\n5a1b6f2e-8d57-4c1e-9a5f-0c5a3e2b7d11\n10.0.0.1 10.0.0.2 10.0.0.1 10.9.0.1\n"
    lines = redactor.redact(text).split("\n")
    assert lines[0].startswith("GPU-00000000-0000-4000-8000-000000000001")
    assert lines[1] == lines[0].removeprefix("GPU-").removesuffix(" a")
    assert lines[2].split() == ["198.18.1.1", "198.18.1.2", "198.18.1.1", "198.18.2.1"]


def test_an_address_keeps_its_kind():
    lines = (
        Redactor()
        .redact("fe80::9a03:9b03:aa:bbd0 and 0000:0000:0000:0000:0000:ffff:0a17:2d43 is 10.23.45.67\n")
        .split()
    )
    assert lines[0].startswith("fe80::")
    assert ipaddress.IPv6Address(lines[2]).ipv4_mapped == ipaddress.IPv4Address(lines[4])
    assert len(lines[2]) == 39


def test_findings_rest_on_nothing_that_is_taken_out(doctor) -> None:
    for area in ("host", "hardware", "nccl"):
        rules = yaml.safe_load((Path(__file__).parents[1] / "rules" / f"{area}.yaml").read_text(encoding="utf-8"))
        for rule, cases in list(rules.items())[::3]:
            for case in cases["fires"][:2]:
                redactor = Redactor()
                for text in case["files"].values():
                    redactor.learn(text)
                redacted = {name: redactor.redact(text) for name, text in case["files"].items()}
                found = [
                    [(f.id, f.role) for f in doctor.diagnose(TextSource(each)).findings]
                    for each in (case["files"], redacted)
                ]
                assert found[0] == found[1], f"{rule}: {case['why']}"


def test_a_hostile_text_takes_linear_time() -> None:
    redactor = Redactor()
    for text in (
        "a" * 200_000,
        "a_" * 100_000,
        "1." * 100_000,
        ":" * 100_000,
        "curl " * 40_000,
        "password" * 30_000,
        "ab:" * 80_000,
        "A.b@" * 50_000,
        "--a-" * 50_000,
        "mysql " * 30_000,
        "ssh " * 20_000,
        "scp a " * 15_000,
        "login x " * 10_000,
        "A_" * 100_000,
        "wandb " * 15_000,
        "docker login " * 7_000,
        "a 1 " * 20_000,
        "mac " * 20_000,
    ):
        redactor.redact(text)


def test_the_report_in_the_bundle_is_valid_json(doctor, tmp_path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "commands").mkdir()
    snapshot = take(doctor, LiveHost(str(tmp_path / "root"), str(tmp_path / "commands")), timeout=30)
    assert json.loads(snapshot.summary["report.json"])["source"]["kind"] == "snapshot"


def test_the_kernel_s_version_line_names_no_host():
    """Once `version` was taken for the host of `Linux version 6.1.0`, and replaced wherever it stood."""
    redactor = Redactor()
    redactor.learn("Linux version 6.1.0-13-amd64 (builder@build) (gcc 12)\nLinux gpu-7 6.1.0-13-amd64 #1 SMP\n")
    assert redactor.redact('{"version": "550.54.15"} on gpu-7') == '{"version": "550.54.15"} on node-1'
