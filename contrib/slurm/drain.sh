# Sourced by the scripts beside it. Sets `status` (0 in order or only warnings, 2 critical, 3 unknown) and `reason`, the text with
# which a node is drained: "gpudoctor: GPU fell off the bus on 0000:3b:00.0".
gpudoctor=${GPUDOCTOR:-/usr/local/bin/gpudoctor}
scontrol=${SCONTROL:-scontrol}
node=${SLURMD_NODENAME:-$(hostname -s)}

examine() {
    line=$("$gpudoctor" --nagios --profile quick --timeout 15 --fail-on critical "$@")
    status=$?
    reason=${line%% | *}
    reason="gpudoctor: $(printf '%s' "${reason#* - }" | tr -d '"\\' | cut -c1-200)"
}

node_line() {
    "$scontrol" --oneliner show node "$node"
}

# A node that somebody drained already keeps that reason.
drain() {
    case $(node_line) in
        *DRAIN*) ;;
        *) "$scontrol" update "nodename=$node" state=drain "reason=$reason" ;;
    esac
}
