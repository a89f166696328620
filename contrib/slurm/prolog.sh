#!/bin/sh
# slurm.conf: Prolog=/etc/slurm/gpudoctor/prolog.sh
#             PrologFlags=Alloc
# Before a job: on a critical finding the node is drained and the job goes back into the queue.
. "$(dirname "$0")/drain.sh"
examine
[ "$status" -eq 2 ] || exit 0
drain
exit 1
