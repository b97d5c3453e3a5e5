#!/bin/sh
# A notification hook to begin with: shows what happened to a task, then waits until whoever was notified
# acknowledges it. In ~/.config/provost/provost.toml:
#
#   [hooks.notify]
#   command = "/path/to/notify-ack.sh"
#
# Ends with 0 when it was acknowledged and with 1 when it was not. Variables of its own, for `env` of that section:
#   ACK_TIMEOUT  seconds to wait; 10
#   ACK_WAIT     how to wait: socat, nc, provost or marker; without it, the first of them that can be had
#   NOTIFY_LOG   a file that gets a line for each notification and for what came of it
set -u

readonly seconds="${ACK_TIMEOUT:-10}"

# On one line: what an agent has written must not look like a line of ours, or move a cursor.
log() {
    [ -z "${NOTIFY_LOG:-}" ] || printf '%s\n' "$(printf '%s' "$*" | tr '[:cntrl:]' ' ')" >>"$NOTIFY_LOG"
}

show() {
    log "$PROVOST_EFFECT_ID $DEVIT_NOTIFY_TASK_ID $DEVIT_NOTIFY_STATUS $DEVIT_NOTIFY_SUMMARY"
    if [ -n "${DBUS_SESSION_BUS_ADDRESS:-}" ] && command -v notify-send >/dev/null; then
        # After `--`, so that no summary is taken for an option, and without what would be markup there.
        body="$(printf '%s' "$DEVIT_NOTIFY_SUMMARY" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g')"
        notify-send --app-name=provost -- "$DEVIT_NOTIFY_WORKER: $DEVIT_NOTIFY_STATUS" "$body"
    fi
}

# The first way that this machine has.
choose() {
    if [ -z "${DEVIT_ACK_SOCKET:-}" ]; then
        echo marker
    elif command -v socat >/dev/null; then
        echo socat
    elif nc -h 2>&1 | grep --quiet -e '-[A-Za-z]*U'; then
        echo nc
    elif command -v "${PROVOST:-provost}" >/dev/null; then
        echo provost
    else
        echo marker
    fi
}

# Whether standard input is the one byte that releases a hook.
is_release() {
    [ "$(od -An -tx1 | tr -d ' \n')" = 01 ]
}

# Without any program: the marker appears with the ACK.
wait_for_marker() {
    left="$((seconds * 5))"
    until [ -e "$DEVIT_ACK_MARKER" ]; do
        [ "$left" -gt 0 ] || return 1
        left="$((left - 1))"
        sleep 0.2
    done
}

wait_for_ack() {
    case "$1" in
    socat) socat -T "$seconds" -u "UNIX-CONNECT:$DEVIT_ACK_SOCKET" - | is_release ;;
    nc) nc -d -U -w "$seconds" "$DEVIT_ACK_SOCKET" | is_release ;;
    provost) "${PROVOST:-provost}" hook wait --timeout "${seconds}s" >/dev/null ;;
    marker) wait_for_marker ;;
    *)
        echo "ACK_WAIT is $1; it can be socat, nc, provost or marker" >&2
        exit 2
        ;;
    esac
}

show
if wait_for_ack "${ACK_WAIT:-$(choose)}"; then
    log "$PROVOST_EFFECT_ID acknowledged"
else
    log "$PROVOST_EFFECT_ID not acknowledged"
    exit 1
fi
