"""Asking NCCL's RAS: a server that answers as RAS does, of jobs that hang, move, or are silent."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gpudoctor.cli.main import main

HEAD = (
    "NCCL version 2.29.1 compiled with CUDA 13.0\n\nCommunicators... (0.00s)\n=============\n\nWarnings\n========\n\n"
)


def behind(ahead: int, late: int) -> str:
    return (
        f"{HEAD}#0-0 (78db921d1c117b4a) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"
        f"  7 ranks have launched up to operation {ahead}\n"
        f"  Rank 7 has launched up to operation {late} -- GPU 3 managed by process 1650386 on node 192.0.2.10\n"
    )


@contextmanager
def server(answers: list[str], *, silent: bool = False) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    assert connection.recv(100) == b"verbose status\n"
                    if silent:
                        done.wait(20)
                    connection.sendall(answer.encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            done.set()


@pytest.fixture
def ras(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def ask(address: str, *words: str) -> tuple[int, str, str]:
        status = main(["nccl", "ras", "--address", address, "--wait", "1", *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return ask


def test_a_rank_that_stands_still_is_named(ras: Callable[..., tuple[int, str, str]]) -> None:
    with server([behind(64, 60), behind(64, 60)]) as address:
        status, out, _ = ras(address)
    assert status == 2
    assert "nccl.straggler" in out and "Rank 7 on 192.0.2.10 is behind" in out


def test_a_job_that_moves_is_no_fault(ras: Callable[..., tuple[int, str, str]]) -> None:
    with server([behind(64, 63), behind(801, 800)]) as address:
        status, out, _ = ras(address)
    assert (status, out) == (0, "Nobody holds the job up: the job moves: between the answers its counts grew.\n")


def test_a_rank_that_reported_an_error_is_named(ras: Callable[..., tuple[int, str, str]]) -> None:
    failed = (
        f"{HEAD}#0-0 (78db921d1c117b4a) ERROR\n  Asynchronous errors on 8 ranks\n  7 ranks reported Remote process error\n"
        "  Rank 3 reported Unhandled CUDA error -- GPU 3 managed by process 1650386 on node 192.0.2.10\n"
    )
    with server([failed, failed]) as address:
        status, out, _ = ras(address)
    assert status == 2
    assert "rank 3 on 192.0.2.10 failed (Unhandled CUDA error)" in out


def test_a_rank_that_is_still_being_set_up_is_named(ras: Callable[..., tuple[int, str, str]]) -> None:
    state = (
        f"{HEAD}#0-0 (78db921d1c117b4a) MISMATCH\n  Communicator ranks have different status\n  7 ranks have status RUNNING\n"
        "  Rank 7 has status INIT -- GPU 3 managed by process 1650386 on node 192.0.2.10\n"
        "  Communicator ranks have different AllReduce operation counts\n  7 ranks have launched up to operation 64\n"
        "  Rank 7 has not launched any operations -- GPU 3 managed by process 1650386 on node 192.0.2.10\n"
    )
    with server([state, state]) as address:
        status, out, _ = ras(address)
    assert status == 2
    assert "Rank 7 on 192.0.2.10 has status INIT in 2 answers of RAS" in out


def test_nobody_listens(ras: Callable[..., tuple[int, str, str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    status, out, err = ras(f"127.0.0.1:{port}")
    assert (status, out) == (3, "")
    assert "Connection refused" in err and "NCCL 2.24 or newer" in err


@pytest.mark.parametrize("answer", ["", "HTTP/1.1 400 Bad Request\r\n\r\n", "\x00\x1b[2J" * 1000])
def test_what_is_not_ras_clears_no_job(ras: Callable[..., tuple[int, str, str]], answer: str) -> None:
    with server([answer]) as address:
        status, out, err = ras(address)
    assert (status, out) == (3, "")
    assert "what answers there is not RAS" in err and "\x1b" not in err


def test_a_listener_that_never_answers(ras: Callable[..., tuple[int, str, str]]) -> None:
    with server([""], silent=True) as address:
        status, _, err = ras(address, "--timeout", "1")
    assert status == 3
    assert "did not answer in 1 s" in err
