"""RDMA ports and network interfaces: ibstat, ibstatus, ibv_devinfo, rdma link, ibdev2netdev, show_gids, ip, ifconfig, ethtool."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudoctor.facts.base import Fact
from gpudoctor.facts.comms import GidEntry
from gpudoctor.facts.driver import KernelModule
from gpudoctor.facts.host import NetInterface, RdmaPort
from gpudoctor.parsers.base import Format, NotThisFormat
from gpudoctor.patterns.lazy import LazyRegex

# Rate in Gb/s that a port of the card can do, by PCI device number (ibstat prints MT4123, ibv_devinfo 4123).
_CARD_RATE = {
    4099: 56, 4103: 56, 4113: 56, 4115: 100, 4119: 100, 4121: 100, 4123: 200, 4129: 400, 4131: 800, 41692: 400,
}  # fmt: skip
_STATES = {"active": "active", "down": "down", "initializing": "init", "init": "init", "armed": "armed", "arm": "armed"}


def _state(text: str) -> str | None:
    word = re.sub(r"[^a-z]", "", text.lower().replace("port_", ""))
    return _STATES.get(word)


def _physical(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def _layer(text: str) -> str | None:
    word = text.strip().lower()
    return word if word in ("infiniband", "ethernet") else None


def _rated(port: RdmaPort, card: int | None) -> RdmaPort:
    """Card numbers tell the possible rate on InfiniBand only: Ethernet ports of one card come in many speeds."""
    if card is not None and port.link_layer == "infiniband":
        rate = _CARD_RATE.get(card)
        port.rate_max = float(rate) if rate else None
    return port


_PAIR = LazyRegex(r"^\s*(?P<key>[\w .#-]{2,40}?)\s*:\s*(?P<value>.*?)\s*$")


def ibstat(text: str) -> Iterator[Fact]:
    """Ports as ibstat lists them; one adapter at a time.

    >>> sample = '''CA 'mlx5_2'
    ...     CA type: MT4123
    ...     Number of ports: 1
    ...     Port 1:
    ...         State: Active
    ...         Physical state: LinkUp
    ...         Rate: 100
    ...         Link layer: InfiniBand'''
    >>> port = next(ibstat(sample))
    >>> port.device, port.state, port.rate, port.rate_max, port.link_layer
    ('mlx5_2', 'active', 100.0, 200.0, 'infiniband')
    """
    lines = text.split("\n")
    head = re.search(r"CA '(?P<name>[\w.+-]+)'", lines[0])
    if not head:
        raise NotThisFormat
    card: int | None = None
    port: RdmaPort | None = None
    for number, line in enumerate(lines[1:], start=1):
        found = _PAIR.match(line)
        if re.search(r"CA '[\w.+-]+'", line) or not found:
            break
        key, value = found["key"].lower(), found["value"]
        if key == "ca type" and (digits := re.search(r"MT(\d+)", value)):
            card = int(digits[1])
        elif re.fullmatch(r"port \d+", key):
            if port:
                yield _rated(port, card)
            port = RdmaPort(at=number, device=head["name"], port=int(key.split()[1]))
        elif port:
            _port_field(port, key, value, number)
    if port is None:
        raise NotThisFormat
    yield _rated(port, card)


def _port_field(port: RdmaPort, key: str, value: str, number: int) -> None:
    if key == "state":
        port.state, port.at_fields["state"] = _state(value.rsplit(":", maxsplit=1)[-1]), number
    elif key in ("physical state", "phys state", "phys_state"):
        port.physical, port.at_fields["physical"] = _physical(value), number
    elif key == "rate":
        rate = re.match(r"(\d+(?:\.\d+)?)", value)
        if rate:
            port.rate, port.at_fields["rate"] = float(rate[1]), number
        if lanes := re.search(r"\((\d+)X (\w+)\)", value):
            port.lanes, port.speed_name = int(lanes[1]), lanes[2]
    elif key in ("link layer", "link_layer"):
        port.link_layer, port.at_fields["link_layer"] = _layer(value), number
    elif key == "active_mtu":
        size = re.match(r"(\d+)", value)
        if size:
            port.mtu, port.at_fields["mtu"] = int(size[1]), number


def ibstatus(text: str) -> Iterator[Fact]:
    """A port as ibstatus prints it.

    >>> sample = '''Infiniband device 'mlx5_0' port 1 status:
    ...     state:           4: ACTIVE
    ...     phys state:      5: LinkUp
    ...     rate:            25 Gb/sec (1X EDR)
    ...     link_layer:      InfiniBand'''
    >>> port = next(ibstatus(sample))
    >>> port.device, port.state, port.rate, port.lanes
    ('mlx5_0', 'active', 25.0, 1)
    """
    lines = text.split("\n")
    head = re.search(r"Infiniband device '(?P<name>[\w.+-]+)' port (?P<port>\d+) status", lines[0])
    if not head:
        raise NotThisFormat
    port = RdmaPort(device=head["name"], port=int(head["port"]))
    for number, line in enumerate(lines[1:12], start=1):
        found = _PAIR.match(line)
        if not found or "Infiniband device" in line:
            break
        _port_field(port, found["key"].lower(), found["value"], number)
    yield port


def ibv_devinfo(text: str) -> Iterator[Fact]:
    """An adapter as ibv_devinfo prints it.

    >>> sample = '''hca_id: mlx5_bond_0
    ...     vendor_part_id:  4119
    ...     phys_port_cnt:   1
    ...         port:   1
    ...             state:       PORT_ACTIVE (4)
    ...             max_mtu:     4096 (5)
    ...             active_mtu:  1024 (3)
    ...             link_layer:  Ethernet'''
    >>> port = next(ibv_devinfo(sample))
    >>> port.device, port.state, port.mtu, port.link_layer
    ('mlx5_bond_0', 'active', 1024, 'ethernet')
    """
    lines = text.split("\n")
    head = re.search(r"hca_id:\s*(?P<name>[\w.+-]+)", lines[0])
    if not head:
        raise NotThisFormat
    port: RdmaPort | None = None
    card: int | None = None
    for number, line in enumerate(lines[1:], start=1):
        found = _PAIR.match(line)
        if not found or "hca_id" in line:
            break
        key, value = found["key"].lower(), found["value"]
        if key == "vendor_part_id" and value.isdigit():
            card = int(value)
        elif key == "port" and value.isdigit():
            if port:
                yield _rated(port, card)
            port = RdmaPort(at=number, device=head["name"], port=int(value))
        elif port:
            _port_field(port, key, value, number)
    if port is None:
        raise NotThisFormat
    yield _rated(port, card)


_RDMA_LINK = LazyRegex(
    r"link (?P<device>[\w.+-]+)/(?P<port>\d+) .*?state (?P<state>\w+) physical_state (?P<physical>\w+)(?: netdev (?P<netdev>\S+))?"
)
_IBDEV = LazyRegex(r"(?P<device>[\w.+-]+) port (?P<port>\d+) ==> (?P<netdev>\S+) \((?P<state>Up|Down)\)")


def rdma_link(text: str) -> Iterator[Fact]:
    """A line of `rdma link` or ibdev2netdev.

    >>> port = next(rdma_link("link mlx5_0/1 state DOWN physical_state DISABLED netdev enp3s0f0np0"))
    >>> port.device, port.state, port.physical, port.netdev
    ('mlx5_0', 'down', 'disabled', 'enp3s0f0np0')
    """
    line = text.partition("\n")[0][:400]
    found = _RDMA_LINK.search(line)
    if found:
        yield RdmaPort(
            device=found["device"],
            port=int(found["port"]),
            state=_state(found["state"]),
            physical=_physical(found["physical"]),
            netdev=found["netdev"],
        )
        return
    short = _IBDEV.search(line)
    if not short:
        raise NotThisFormat
    state = "active" if short["state"] == "Up" else "down"
    yield RdmaPort(device=short["device"], port=int(short["port"]), state=state, netdev=short["netdev"])


_GID = LazyRegex(
    r"^\s*(?P<device>[\w.+-]+)\s+(?P<port>\d+)\s+(?P<index>\d+)\s+(?P<gid>[0-9a-fA-F:]{15,39})\s+(?:(?P<ip>\d+\.\d+\.\d+\.\d+)\s+)?"
    r"(?P<version>v\d)(?:\s+(?P<netdev>\S+))?"
)


def show_gids(text: str) -> Iterator[Fact]:
    """The table that show_gids prints.

    >>> sample = '''DEV     PORT  INDEX  GID                                     IPv4        VER  DEV
    ... ---     ----  -----  ---                                     ------------  ---  ---
    ... mlx5_0  1     0      fe80:0000:0000:0000:9cbb:b7ff:feb3:937a              v1   eth2
    ... mlx5_0  1     3      0000:0000:0000:0000:0000:ffff:c000:0215 192.0.2.21   v2   eth2'''
    >>> [(row.index, row.version, row.local) for row in show_gids(sample)]
    [(0, 'v1', True), (3, 'v2', False)]
    """
    lines = text.split("\n")
    if not re.search(r"DEV\s+PORT\s+INDEX\s+GID", lines[0]):
        raise NotThisFormat
    for number, line in enumerate(lines[1:], start=1):
        if line.lstrip().startswith("---"):
            continue
        found = _GID.match(line)
        if not found:
            break
        yield GidEntry(
            at=number,
            device=found["device"],
            port=int(found["port"]),
            index=int(found["index"]),
            label=str(int(found["index"])),
            gid=found["gid"].lower(),
            version=found["version"].lower(),
            address=found["ip"],
            local=found["gid"].lower().startswith("fe80"),
            netdev=found["netdev"],
        )


_VIRTUAL = LazyRegex(
    r"docker|veth|br-|virbr|cni|flannel|cali|cilium|tunl|vxlan|kube|lxc|lxd|podman|weave|tun|tap|ipvlan|macvlan|dummy|nerdctl|tailscale|wg\d"
)
_IP_LINK = LazyRegex(
    r"^\d+: (?P<name>[^\s:@]+)(?:@\S+)?: <(?P<flags>[A-Z_,-]*)>(?: mtu (?P<mtu>\d+))?.*?(?: state (?P<state>\w+))?(?:\s|$)"
)
_INET = LazyRegex(r"^\s+inet (?:addr:)?(?P<address>\d+\.\d+\.\d+\.\d+)")


def ip_link(text: str) -> Iterator[Fact]:
    """An interface as `ip link` and `ip addr` print it.

    >>> sample = '''2: eth2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default qlen 1000
    ...     link/ether 02:00:5e:10:00:01 brd ff:ff:ff:ff:ff:ff
    ...     inet 192.0.2.21/24 brd 192.0.2.255 scope global eth2'''
    >>> link = next(ip_link(sample))
    >>> link.name, link.mtu, link.state, link.address, link.virtual
    ('eth2', 9000, 'up', '192.0.2.21', False)
    """
    lines = text.split("\n")
    found = _IP_LINK.match(lines[0].strip())
    if not found:
        raise NotThisFormat
    flags = found["flags"].split(",")
    state = re.search(r" state (\w+)", lines[0])
    address = None
    for line in lines[1:8]:
        if line[:1].isdigit():
            break
        if inet := _INET.match(line):
            address = inet["address"]
            break
    yield NetInterface(
        name=found["name"],
        state=state[1].lower() if state else ("up" if "UP" in flags else "down"),
        address=address,
        mtu=int(found["mtu"]) if found["mtu"] else None,
        loopback="LOOPBACK" in flags,
        virtual=bool(_VIRTUAL.match(found["name"])),
    )


_IFCONFIG = LazyRegex(
    r"^(?P<name>[\w.@:-]+?):?\s+(?:Link encap:(?P<encap>\w[\w ]*?)\s\s|flags=\d+<(?P<flags>[A-Z_,]*)>(?:\s+mtu (?P<mtu>\d+))?)"
)


def ifconfig(text: str) -> Iterator[Fact]:
    """An interface as both generations of ifconfig print it.

    >>> sample = '''docker0   Link encap:Ethernet  HWaddr 02:42:00:00:00:33
    ...           inet addr:172.17.0.1  Bcast:0.0.0.0  Mask:255.255.0.0
    ...           UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1'''
    >>> link = next(ifconfig(sample))
    >>> link.name, link.address, link.mtu, link.virtual
    ('docker0', '172.17.0.1', 1500, True)
    """
    lines = text.split("\n")
    found = _IFCONFIG.match(lines[0])
    if not found:
        raise NotThisFormat
    address = None
    mtu = int(found["mtu"]) if found["mtu"] else None
    flags = set((found["flags"] or "").split(","))
    for line in lines[1:10]:
        if not line[:1].isspace():
            break
        if address is None and (inet := _INET.match(line)):
            address = inet["address"]
        if size := re.search(r"\bMTU:(\d+)", line):
            mtu, flags = int(size[1]), set(line.split())
    yield NetInterface(
        name=found["name"],
        state="up" if "RUNNING" in flags else "down",
        address=address,
        mtu=mtu,
        loopback="LOOPBACK" in flags or found["name"] == "lo",
        virtual=bool(_VIRTUAL.match(found["name"])),
    )


_ETHTOOL = LazyRegex(r"Settings for (?P<heading>[\w.@-]+):|[$#>%] ?(?:sudo )?ethtool (?P<name>[A-Za-z][\w.@-]*)")


def ethtool(text: str) -> Iterator[Fact]:
    """The settings of one interface from ethtool.

    >>> link = next(ethtool("Settings for eth2:\\n\\tSpeed: 25000Mb/s\\n\\tDuplex: Full\\n\\tLink detected: yes"))
    >>> link.name, link.speed, link.state
    ('eth2', 25000, 'up')
    >>> link = next(ethtool("$ ethtool eth2 | grep -E 'Speed|modes'\\n Supported link modes: 1000baseT/Full\\n  10000baseT/Full\\n Speed: 100Mb/s"))
    >>> link.speed, link.speed_max
    (100, 10000)
    """
    lines = text.split("\n")
    head = _ETHTOOL.search(lines[0])
    if not head:
        raise NotThisFormat
    link = NetInterface(name=head["heading"] or head["name"])
    supported = False
    for number, line in enumerate(lines[1:80], start=1):
        if line and not line[:1].isspace():
            break
        if key := re.match(r"\s+([A-Z][\w -]*):", line):
            supported = key[1] == "Supported link modes"
        if supported:
            modes = [int(mode) for mode in re.findall(r"\b(\d{2,6})base\w+/Full", line)]
            link.speed_max = max([*modes, link.speed_max or 0]) or None
        if speed := re.match(r"\s+Speed: (\d+)Mb/s", line):
            link.speed, link.at = int(speed[1]), number
        elif detected := re.match(r"\s+Link detected: (yes|no)", line):
            link.state = "up" if detected[1] == "yes" else "down"
    if link.speed is not None and link.speed_max is not None:
        link.slow = link.speed < link.speed_max
    if not head["heading"] and link.speed is None and link.state is None and link.speed_max is None:
        raise NotThisFormat
    yield link


_GREP = LazyRegex(
    r"lsmod\s*\|\s*[ef]?grep\s+(?:-\w+\s+)*[\"']?(?P<name>nvidia[_-]peermem|nv_peer_mem|peermem|peer_mem)"
)
_PROMPT = LazyRegex(r"^\s*(?:\([\w.-]+\) ?)?(?:\[?[\w.-]+@[\w.-]+|[\w.~/-]*[$#>%]\s|root#)|[$#]\s*$|[$#] \w")


def peer_memory_grep(text: str) -> Iterator[Fact]:
    """An `lsmod | grep nvidia_peermem` that found nothing: the next line is a prompt again, or there is none.

    >>> next(peer_memory_grep("[root@gpu3 ~]# lsmod | grep nvidia_peermem\\n[root@gpu3 ~]# ")).loaded
    False
    >>> list(peer_memory_grep("$ lsmod | grep peermem\\nnvidia_peermem   16384  0"))
    []
    """
    lines = text.split("\n")
    found = _GREP.search(lines[0])
    if not found:
        raise NotThisFormat
    following = lines[1] if len(lines) > 1 else ""
    if following.strip() and not _PROMPT.search(following):
        return
    name = found["name"].replace("-", "_")
    yield KernelModule(name="nvidia_peermem" if name == "peermem" else name, loaded=False)


FORMATS = (
    Format("ibstat", ("CA 'mlx", "CA 'ib", "CA 'roce", "CA 'hfi", "CA 'bnxt", "CA 'rocep"), ibstat, lines=60),
    Format("ibstatus", ("Infiniband device '",), ibstatus, lines=12),
    Format("ibv_devinfo", ("hca_id:",), ibv_devinfo, lines=120),
    Format("rdma link", ("physical_state ", " ==> "), rdma_link, lines=1),
    Format("show_gids", ("INDEX\tGID", "INDEX   GID", "INDEX  GID"), show_gids, lines=200, answers=("gid_entry",)),
    Format("ip link", ("BROADCAST,", "<LOOPBACK,", "POINTOPOINT,"), ip_link, lines=8),
    Format("ifconfig", ("Link encap:", "flags="), ifconfig, lines=10),
    Format("ethtool", ("Settings for ", "ethtool "), ethtool, lines=80),
    Format("lsmod | grep peermem", ("lsmod",), peer_memory_grep, lines=2),
)
