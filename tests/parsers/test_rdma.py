"""RDMA ports and interfaces in the forms that the tools print."""

import pytest

from gpudoctor.parsers import rdma
from gpudoctor.parsers.base import NotThisFormat


def test_two_ports_of_one_adapter() -> None:
    ports = list(
        rdma.ibstat(
            "CA 'mlx5_0'\n\tCA type: MT4123\n\tNumber of ports: 2\n"
            "\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 200\n\t\tLink layer: InfiniBand\n"
            "\tPort 2:\n\t\tState: Down\n\t\tPhysical state: Disabled\n\t\tRate: 10\n\t\tLink layer: Ethernet\n"
            "CA 'mlx5_1'\n\tCA type: MT4123\n"
        )
    )
    assert [(p.port, p.state, p.physical, p.rate, p.rate_max) for p in ports] == [
        (1, "active", "linkup", 200.0, 200.0),
        (2, "down", "disabled", 10.0, None),
    ]


def test_ibdev2netdev() -> None:
    (port,) = rdma.rdma_link("mlx5_4 port 1 ==> ens5f0np0 (Down)")
    assert (port.device, port.netdev, port.state) == ("mlx5_4", "ens5f0np0", "down")


def test_new_ifconfig() -> None:
    text = "bond0: flags=5187<UP,BROADCAST,RUNNING,MASTER,MULTICAST>  mtu 9000\n        inet 192.0.2.7  netmask 255.255.255.0\n"
    (link,) = rdma.ifconfig(text)
    assert (link.name, link.mtu, link.address, link.state) == ("bond0", 9000, "192.0.2.7", "up")


def test_ip_link_without_state() -> None:
    (link,) = rdma.ip_link(
        "5: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN mode DEFAULT\n"
    )
    assert (link.name, link.state, link.virtual) == ("docker0", "down", True)


def test_peer_memory_in_other_shells() -> None:
    assert [fact.loaded for fact in rdma.peer_memory_grep("user@n1:~$ lsmod | grep -i peermem\nuser@n1:~$ exit")] == [
        False
    ]
    assert list(rdma.peer_memory_grep("# lsmod | grep nvidia_peermem\nnvidia_peermem  16384  0\n")) == []
    assert [fact.loaded for fact in rdma.peer_memory_grep("$ lsmod | grep nvidia_peermem")] == [False]


@pytest.mark.parametrize(
    "parse",
    [
        rdma.ibstat,
        rdma.ibstatus,
        rdma.ibv_devinfo,
        rdma.rdma_link,
        rdma.show_gids,
        rdma.ip_link,
        rdma.ifconfig,
        rdma.ethtool,
    ],
)
@pytest.mark.parametrize("text", ["", "hca_id", "CA 'mlx5_0'", "x" * 5000, ":" * 500, "=> ==> port"])
def test_garbled_text_is_refused(parse: object, text: str) -> None:
    with pytest.raises(NotThisFormat):
        list(parse(text))  # type: ignore[operator]
