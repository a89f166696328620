#!/bin/sh
# slurm.conf: HealthCheckProgram=/etc/slurm/gpudoctor/healthcheck.sh
#             HealthCheckInterval=300
#             HealthCheckNodeState=ANY,CYCLE
# Drains the node on a critical finding. With GPUDOCTOR_RESUME=1 in slurmd's environment it also takes back a drain of its own.
. "$(dirname "$0")/drain.sh"
examine --lock "${GPUDOCTOR_LOCK:-/run/gpudoctor-slurm.lock}"
case $status in
    2) drain ;;
    0)
        if [ "${GPUDOCTOR_RESUME:-0}" = 1 ]; then
            case $(node_line) in
                *DRAIN*"Reason=gpudoctor: "*) "$scontrol" update "nodename=$node" state=resume ;;
            esac
        fi
        ;;
esac
exit 0
