#!/usr/bin/env bash
# Make sure that the services which tests start for themselves are installed, where apt-get (for Kafka and HDFS:
# Maven, for S3: pip) may be used. What cannot be had is no mistake: the tests that want it are skipped, and say so at their end.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

# How to tell that a service is there, one line each. `type -P` finds programs only, and not these functions.
rabbitmq() { type -P epmd && ls /usr/lib/rabbitmq/bin/rabbitmq-server; }
postgresql() { type -P initdb || ls /usr/lib/postgresql/*/bin/initdb; }
prometheus() { type -P prometheus && type -P promtool; }
chromium() { type -P chromium || type -P chromium-browser || type -P google-chrome; }

need() {
    local there=$1
    shift
    "$there" >/dev/null 2>&1 || apt_install "$@" || skipped "$there"
}
# moto's server, an S3 on loopback, in an environment of its own: it brings thirty packages that nothing else needs.
s3() {
    [ -e .s3/ready ] && return 0
    say "fetching moto with pip (140 MB on disk)"
    rm -rf .s3
    python3 -m venv .s3 && .s3/bin/pip install --quiet "moto[s3]==5.2.5" "flask>=3.1" "flask-cors>=6.0" && touch .s3/ready
}
skipped() { say "$1 cannot be had here: its tests will be skipped"; }

# Packages of servers start them at once, on their usual ports; the tests want their own on others.
POLICY=/usr/sbin/policy-rc.d
start_nothing() {
    local prefix
    prefix=$(apt_prefix) && [ ! -e "$POLICY" ] || return 0
    # shellcheck disable=SC2086
    printf '#!/bin/sh\nexit 101\n' | $prefix tee "$POLICY" >/dev/null && $prefix chmod 755 "$POLICY"
    # shellcheck disable=SC2064
    trap "$prefix rm -f $POLICY" EXIT
}

scripts/kafka.sh || skipped kafka
scripts/hdfs.sh || skipped hdfs
s3 || skipped s3
there() { rabbitmq && postgresql && chromium && prometheus; }
there >/dev/null 2>&1 && exit 0
start_nothing
# The packages that bring it: the first that apt-get knows is installed.
need rabbitmq rabbitmq-server
need postgresql postgresql
need chromium chromium chromium-browser
need prometheus prometheus
