"""Communication between GPUs: what the machine can do, what nccl-tests measured, and running them."""
