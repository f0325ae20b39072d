#!/usr/bin/env bash
# Fetch Hadoop's jars, with an HDFS (scripts/hdfs.pom.xml says which), into .hdfs/.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
fetch_jars hdfs Hadoop "104 MB"
