#!/bin/sh
# Stands in for a coding agent and the language model behind it. It understands nothing: what it does and says lies in
# files beside it, `does` and `answer`, for its first run of a job and its second (`does.2`, `answer.2`). While there is a
# file `wait`, it waits. Where there is a file `echo`, it answers with its prompt.
here=$(dirname "$0")
prompt=$(cat)
while [ -e "$here/wait" ]; do sleep 0.05; done
case "$DEVIT_TASK_ID" in *.2) run=.2 ;; *) run= ;; esac
if [ -e "$here/does$run" ]; then . "$here/does$run"; fi
if [ -e "$here/echo" ]; then printf '%s\n' "$prompt"; fi
if [ -e "$here/answer$run" ]; then cat "$here/answer$run"; fi
