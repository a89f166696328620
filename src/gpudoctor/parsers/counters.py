"""Error counters of network ports: perfquery, ibqueryerrors, `ethtool -S`, `rdma statistic`, files of sysfs, alone or through grep."""

from __future__ import annotations

from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.host import PortCounter
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

# What each counts; InfiniBand's names first, then those of mlx5's hardware counters, then those of Ethernet drivers.
_MEANS = {
    "symbolerrorcounter": "signal",
    "symbol_error": "signal",
    "linkerrorrecoverycounter": "signal",
    "link_error_recovery": "signal",
    "linkdownedcounter": "down",
    "link_downed": "down",
    "portrcverrors": "signal",
    "port_rcv_errors": "signal",
    "locallinkintegrityerrors": "signal",
    "local_link_integrity_errors": "signal",
    "portxmitdiscards": "loss",
    "port_xmit_discards": "loss",
    "out_of_sequence": "loss",
    "packet_seq_err": "loss",
    "local_ack_timeout_err": "loss",
    "implied_nak_seq_err": "loss",
    "req_transport_retries_exceeded": "failed",
    "rx_discards_phy": "loss",
    "tx_discards_phy": "loss",
    "rx_out_of_buffer": "loss",
    "out_of_buffer": "loss",
    "rx_crc_errors_phy": "signal",
    "rx_symbol_err_phy": "signal",
    "rx_pcs_symbol_err_phy": "signal",
    "link_down_events_phy": "down",
    "rx_crc_errors": "signal",
    "rx_missed_errors": "loss",
}
_ALONE = LazyRegex(
    r"(?<![\w/])(?P<name>[A-Za-z][A-Za-z_]{6,40})(?:\.?:[.\s]*|\s*==\s*|\s{1,40})(?P<number>\d{1,19})(?![\w.])"
)
_LINK = LazyRegex(r"(?:^|\s)link (?P<device>[\w.+-]+)/(?P<port>\d+) ")
_SYSFS = LazyRegex(
    r"/class/infiniband/(?P<device>[\w.+-]+)/ports/(?P<port>\d+)/(?:hw_)?counters/(?P<name>\w+):\s*(?P<number>\d{1,19})\s*$"
)
_PERFQUERY = LazyRegex(r"# Port (?:extended )?counters: Lid (?P<lid>\d+) port (?P<port>\d+)")
_ETHTOOL = LazyRegex(r"ethtool\s+(?:-S|--statistics)\s+(?P<device>[A-Za-z][\w.@-]*)")


def line(text: str) -> Iterator[Fact]:
    """The counters of one line, whichever tool wrote it; zeros are left out.

    >>> [(fact.device, fact.name, fact.number, fact.means) for fact in line("/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:7")]
    [('mlx5_0', 'link_downed', 7, 'down')]
    >>> sample = "link mlx5_4/1 rx_write_requests 12 out_of_buffer 0 out_of_sequence 51 packet_seq_err 9 rx_icrc_encapsulated 0"
    >>> [(fact.device, fact.name, fact.number) for fact in line(sample)]
    [('mlx5_4', 'out_of_sequence', 51), ('mlx5_4', 'packet_seq_err', 9)]
    >>> [(fact.name, fact.number) for fact in line("SymbolErrorCounter:..............65535")]
    [('SymbolErrorCounter', 65535)]
    >>> [(fact.name, fact.number) for fact in line("   GUID 0x2c90300: port 1: [LinkDownedCounter == 4] [PortXmitWait == 83]")]
    [('LinkDownedCounter', 4)]
    """
    whole = text.partition("\n")[0][:8000]
    if found := _SYSFS.search(whole):
        yield from _counter(found["name"], found["number"], found["device"], int(found["port"]))
        return
    link = _LINK.search(whole)
    device, port = (link["device"], int(link["port"])) if link else (None, None)
    for found in _ALONE.finditer(whole):
        yield from _counter(found["name"], found["number"], device, port)


def block(text: str) -> Iterator[Fact]:
    """A listing that names its port above the counters: perfquery, or `ethtool -S` below its command.

    >>> sample = '''$ ethtool -S eth2
    ... NIC statistics:
    ...      rx_packets: 812345
    ...      rx_discards_phy: 5021'''
    >>> [(fact.device, fact.name, fact.number) for fact in block(sample)]
    [('eth2', 'rx_discards_phy', 5021)]
    """
    lines = text.split("\n")
    perfquery, ethtool = _PERFQUERY.search(lines[0]), _ETHTOOL.search(lines[0])
    if perfquery:
        device, port = f"LID {perfquery['lid']}", int(perfquery["port"])
    elif ethtool:
        device, port = ethtool["device"], 1
    else:
        raise NotThisFormat
    for at, shown in enumerate(lines[1:], start=1):
        if not shown.strip() or shown.startswith(("NIC statistics", "PortSelect")):
            continue
        found = _ALONE.search(shown[:200])
        if found is None:
            if ":" not in shown or shown.lstrip().startswith("#") or "$ " in shown:
                break
            continue
        for fact in _counter(found["name"], found["number"], device, port):
            fact.at = at
            yield fact


def _counter(name: str, number: str, device: str | None, port: int | None) -> Iterator[PortCounter]:
    means = _MEANS.get(name.lower())
    if means and int(number):
        yield PortCounter(device=device, port=port, name=name, number=int(number), means=means)


FORMATS = (
    Format(
        "port counters",
        ("# Port counters: Lid", "# Port extended counters: Lid", "ethtool -S", "ethtool --statistics"),
        block,
        lines=900,
    ),
    Format("port counter", tuple(_MEANS), line, lines=1),
)
