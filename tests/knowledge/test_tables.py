"""The tables themselves: shape, sources, and that every row can be reached and every reference leads somewhere."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from knowledge.schema import TABLES

from gpudoctor.knowledge import (
    architectures,
    compat,
    cuda_errors,
    drivers,
    fixes,
    frameworks,
    gpus,
    links,
    systems,
    tables,
    xids,
)
from gpudoctor.knowledge.explain import explain

DATA = Path(tables.DATA)


def rows(name):
    return tables.table(name).rows


def test_every_table_has_a_schema():
    assert set(tables.names()) == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_table_follows_its_schema(name):
    for row in rows(name):
        TABLES[name].model_validate(dict(row))


@pytest.mark.parametrize("name", TABLES)
def test_every_source_key_resolves_and_is_used(name):
    table = tables.table(name)
    used = {key for row in table.rows for key in row["source"]}
    assert used == set(table.source)
    assert all(len(text) > 15 for text in table.source.values())
    assert table.date


@pytest.mark.parametrize("name", TABLES)
def test_one_row_per_line(name):
    text = DATA.joinpath(f"{name}.json").read_text()
    lines = [line for line in text.split('"rows": [\n')[1].splitlines() if line.startswith("{")]
    assert len(lines) == len(rows(name))
    assert all(json.loads(line.rstrip(",")) for line in lines)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("xid", "xid"),
        ("sxid", "sxid"),
        ("fixes", "key"),
        ("cuda_errors", "code"),
        ("nccl_variables", "name"),
        ("gpus", "name"),
        ("log_messages", "match"),
        ("driver_branches", "branch"),
        ("architectures", "compute_capability"),
        ("nv_status", "code"),
    ],
)
def test_keys_are_unique(name, key):
    counts = Counter(row[key] for row in rows(name))
    assert [item for item, count in counts.items() if count > 1] == []


def test_every_fix_is_used_and_every_named_fix_exists():
    named = {key for name in TABLES for row in rows(name) if name != "fixes" for key in row.get("fix", ())}
    own = {row["key"] for row in rows("fixes")}
    built_in = {"do-154", "restart-app", "check-peer", "check-cables"}
    assert named <= own
    assert own - named - built_in == set()
    assert all(fixes.step(key).title for key in own)


def test_every_bucket_is_named_and_every_named_bucket_exists():
    named = {row[key] for row in rows("nvlink5") for key in ("immediate", "investigate")}
    own = {row["bucket"] for row in rows("resolution_buckets")}
    assert named <= own
    for row in rows("xid"):
        for key in ("immediate", "investigate"):
            if key in row:
                assert xids.bucket(row[key]).text != row[key].lower().replace("_", " ")
    for name in own:
        assert explain(name).kind in ("resolution", "xid")


def test_related_xids_exist():
    known = set(xids.numbers())
    assert all(set(row.get("related", ())) <= known for row in rows("xid"))


@pytest.mark.parametrize("name", ["xid", "sxid"])
def test_every_numbered_error_is_reached(name):
    for row in rows(name):
        found = explain(f"{name} {row[name]}")
        assert found.title == row["title"]
        assert found.meaning and found.fix and found.references and found.causes


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("nvidia_smi_exit", "nvidia-smi"),
        ("nvml_return", "nvml"),
        ("nccl_results", "nccl"),
        ("ib_completion", "ib"),
        ("cublas_status", "cublas"),
        ("cudnn_status", "cudnn"),
    ],
)
def test_every_return_code_is_reached_by_number_and_name(name, family):
    names = Counter(row["name"] for row in rows(name))
    for row in rows(name):
        found = explain(f"{family} {row['code']}")
        assert row["meaning"] == found.meaning
        if family != "nvidia-smi":
            assert explain(row["name"]).title.endswith(row["name"])
            assert names[row["name"]] > 1 or explain(row["name"]).subject == f"{family} {row['code']}"


def test_every_kernel_status_is_reached():
    for row in rows("nv_status"):
        assert explain(f"nv-status {row['code']:#x}").title.startswith(row["name"])
        assert explain(row["name"]).subject == f"nv-status {row['code']:#x}"


def test_every_nccl_variable_is_reached():
    for row in rows("nccl_variables"):
        assert explain(row["name"]).subject == row["name"]


def test_every_log_message_is_reached():
    for row in rows("log_messages"):
        found = explain(f"[  12.345] {row['match']} and more")
        assert found.title.startswith(row["title"]), row["match"]


def test_every_gpu_is_reached_by_name_and_by_pci_id():
    for row in rows("gpus"):
        assert explain(row["name"]).subject == row["name"]
        for number in row["pci_ids"]:
            assert row["name"] in [item.name for item in gpus.all_by_pci_id(int(number, 16))]


def test_every_id_range_is_reached():
    for row in rows("gpu_id_ranges"):
        for text in (row["first"], row["last"]):
            assert gpus.by_pci_id(int(text, 16)).compute_capability == row["compute_capability"]


def test_listed_ids_agree_with_the_ranges():
    for row in rows("gpus"):
        for text in row["pci_ids"]:
            number = int(text, 16)
            fits = [r for r in rows("gpu_id_ranges") if int(r["first"], 16) <= number <= int(r["last"], 16)]
            assert [r["compute_capability"] for r in fits] == [row["compute_capability"]], row["name"]


def test_every_architecture_is_reached():
    for row in rows("architectures"):
        cc = row["compute_capability"]
        assert architectures.by_capability(cc).name == row["architecture"]
        assert explain(f"sm_{cc.replace('.', '')}").kind == "architecture"


def test_every_toolkit_branch_and_floor_is_reached():
    for row in rows("cuda_driver"):
        assert drivers.toolkit(row["version"]).linux_min == row.get("linux_min")
        assert explain(f"cuda {row['version']}").kind == "cuda toolkit"
    for row in rows("driver_branches"):
        assert drivers.branch(row["branch"]).open_modules == row["open_modules"]
        assert explain(f"driver {row['branch']}.10").kind == "driver"
    for row in rows("cuda_minor_compat"):
        assert drivers.floor_for_cuda(f"{row['cuda_major']}.0") == row["linux_min"]


def test_every_framework_build_is_reached():
    for row in rows("frameworks"):
        found = frameworks.build(row["framework"], row["version"], row["build"])
        assert (found.version, found.build) == (row["version"], row["build"])
        assert row["build"] in str(explain(f"{row['framework']} {row['version']}").facts)


def test_every_link_system_and_listing_is_reached():
    for row in rows("link_speeds"):
        assert links.find(row["kind"], row["generation"], row["width"]).gb_s == row["gb_s"]
    for row in rows("operating_systems"):
        assert systems.os(row["id"], row["version"]).package_manager == row["package_manager"]
        assert explain(f"{row['id']} {row['version']}").kind == "operating system"
    for row in rows("cuda_systems"):
        for name in row["systems"]:
            assert compat.check(compat.Setup(cuda=row["cuda_from"], os=name)).answer == "works"


def test_every_nvlink_row_decodes_to_its_own_resolution_in_both_layouts():
    for row in rows("nvlink5"):
        for word in (row["v1"], row["subcode"]):
            event = xids.decode_nvlink5(row["xid"], row["reason"] << 20 | word, row["error_status"], row["units"][0])
            expected = "IGNORE" if row["promotable"] else row["immediate"]
            assert event.immediate.name == expected, row
            assert event.investigate.name == row["investigate"]
            assert event.exact


def test_every_link_down_reason_and_word_bit_is_reached():
    for row in rows("link_down_reasons"):
        event = xids.decode_nvlink5(149, row["code"] << 20 | 454, 0, "NETIR_LINK_EVT")
        assert event.reason == row["text"]
        assert (event.locality == "remote") == row["peer"] or not event.exact
    for row in rows("nvlink4_bits"):
        for bit in row["bits"]:
            words = tuple(1 << bit if index == row["word"] else 0 for index in range(1, 8))
            assert xids.decode_nvlink4(words)[0].endswith(row["text"])


def test_every_recovery_action_is_reached():
    for row in rows("recovery_actions"):
        assert xids.recovery(row["value"]).name == row["name"]
        if "_" in row["name"]:
            assert explain(row["name"]).kind in ("recovery action", "resolution")


def test_every_cuda_error_is_reached_by_number_and_name():
    for row in rows("cuda_errors"):
        assert cuda_errors.by_number(row["code"]).meaning == row["meaning"]


def test_importing_the_look_ups_reads_no_table_and_no_heavy_library():
    code = (
        "import sys; from gpudoctor.knowledge import (explain, compat, xids, sxids, gpus, drivers, frameworks, links,"
        "nccl, systems, return_codes, cuda_errors, tables, architectures, fixes);"
        "assert tables.table.cache_info().currsize == 0;"
        "heavy = {'pydantic', 'yaml', 'pathlib', 'textual', 'psutil', 'argparse'} & set(sys.modules);"
        "others = [m for m in sys.modules if m.startswith('gpudoctor.') and not m.startswith('gpudoctor.knowledge')];"
        "print(heavy, others)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", _with_path(code)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set() []"


def test_a_look_up_reads_only_what_it_needs():
    code = (
        "from gpudoctor.knowledge import tables, explain; opened = []; real = tables.table.__wrapped__;"
        "explain.explain('xid 79'); print(tables.table.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", _with_path(code)], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 3


def _with_path(code):
    roots = [str(Path(tables.__file__).parents[2]), str(Path(msgspec.__file__).parents[1])]
    return f"import sys; sys.path[:0] = {roots!r}; {code}"
