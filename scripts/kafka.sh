#!/usr/bin/env bash
# Fetch Kafka's jars (scripts/kafka.pom.xml says which), into .kafka/.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
fetch_jars kafka Kafka "43 MB"
