#!/bin/sh
# Plugin for node-problem-detector: 0 in order, 1 a critical finding, 2 unknown; what is said becomes the condition's message.
line=$("${GPUDOCTOR:-/usr/local/bin/gpudoctor}" --nagios --profile quick --timeout 20 --fail-on critical --lock /run/gpudoctor-npd.lock)
status=$?
printf '%s\n' "${line%% | *}"
case $status in
    0) exit 0 ;;
    2) exit 1 ;;
    *) exit 2 ;;
esac
