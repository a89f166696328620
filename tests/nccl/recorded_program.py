"""Stands for all_reduce_perf: prints what the program printed on an HGX H200 board, row by row and as slowly, with a fault if asked.

RECORDED_FAULT: slow-gpu:N, slow-pair:N,N, wrong:N, hang, hang-p2p, shm, crash, no-permission; none is a healthy board.
"""

import os
import subprocess
import sys
import time

# Machine Learning Engineering, network chapter: H200 SXM 8x, all_reduce by size (MiB -> GB/s)
CURVE = {8: 155.53, 16: 219.89, 32: 275.84, 64: 346.51, 128: 401.93, 256: 436.15, 512: 450.29, 1024: 463.58}
RUNS = 50  # warm-up and measured iterations, out of place and in place


def main() -> None:
    words = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    fault, _, which = os.environ.get("RECORDED_FAULT", "").partition(":")
    gpus = os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    assert int(words["-g"]) == len(gpus)
    hit = set(which.split(",")) <= set(gpus)
    if fault == "no-permission":
        print("node01: Test CUDA failure common.cu:1030 'no CUDA-capable device is detected'")
        print(" .. node01 pid 4711: Test failure common.cu:925")
        sys.exit(2)
    least, most = (int(words[name][:-1]) * {"M": 1, "G": 1024}[words[name][-1]] for name in ("-b", "-e"))
    print(
        f"# nThread 1 nGpus {len(gpus)} minBytes {least << 20} maxBytes {most << 20} step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"
    )
    print("#\n# Using devices")
    for rank, gpu in enumerate(gpus):
        print(f"#  Rank {rank:2} Group  0 Pid   4711 on     node01 device {rank:2} [0x{16 + int(gpu):02x}] NVIDIA H200")
    print(
        "#\n#                                                              out-of-place                       in-place          "
    )
    print(
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    )
    print(
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       ",
        flush=True,
    )
    without_p2p, without_shm = "NCCL_P2P_DISABLE" in os.environ, "NCCL_SHM_DISABLE" in os.environ
    if fault == "shm" and not without_shm:
        print(
            "node01:4711:4790 [1] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-7Yk2fQ to 33030532 bytes"
        )
        print(
            "node01: Test NCCL failure common.cu:961 'unhandled system error (run with NCCL_DEBUG=INFO for details)'",
            flush=True,
        )
        sys.exit(3)
    if fault == "hang-p2p" and not without_p2p:
        time.sleep(600)
    slower = 40 if without_p2p else 10 if fault in ("slow-gpu", "slow-pair") and hit else 1
    for size, healthy in CURVE.items():
        if not least <= size <= most:
            continue
        busbw = healthy / slower
        algbw = busbw * len(gpus) / (2 * (len(gpus) - 1))
        time.sleep(min(0.4, RUNS * (size << 20) / algbw / 1e9))
        wrong = 393216 if fault == "wrong" and hit else 0
        half = f"{(size << 20) / algbw / 1000:8.1f} {algbw:7.2f} {busbw:7.2f} {wrong:6}"
        print(f"{size << 20:12} {size << 18:13}     float     sum      -1 {half} {half}", flush=True)
        if fault == "hang" and size == 64:
            subprocess.Popen(["sleep", "600"])
            time.sleep(600)
        if fault == "crash" and size == 64:
            print(
                "node01:4711:4790 [0] NCCL WARN Cuda failure 'uncorrectable NVLink error detected during the execution'"
            )
            print(
                "node01: Test NCCL failure common.cu:376 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '"
            )
            print(" .. node01 pid 4711: Test failure common.cu:585", flush=True)
            os.abort()
    failed = fault == "wrong" and hit
    print(
        f"# Out of bounds values : {8 if failed else 0} {'FAILED' if failed else 'OK'}\n# Avg bus bandwidth    : {sum(CURVE.values()) / len(CURVE) / slower:g} \n#"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
