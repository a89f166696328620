#!/bin/sh
# slurm.conf: Epilog=/etc/slurm/gpudoctor/epilog.sh
# After a job: on a critical finding the node is drained, so that the next job does not meet it. The job's own state is left alone.
. "$(dirname "$0")/drain.sh"
examine
[ "$status" -eq 2 ] && drain
exit 0
