#!/bin/sh
# Runs a server and keeps what it writes to standard output: `tap.sh FILE COMMAND...`.
file="$1"
shift
"$@" | tee "$file"
