#!/usr/bin/env bash
# Make sure that there is a Java runtime for Spark; install one where apt-get may be used.
set -euo pipefail
. "$(dirname "$0")/common.sh"

enough() {
    local found
    found=$(java_version) && [ -n "$found" ] && [ "$found" -ge "$LEAST_JAVA" ]
}

enough && exit 0

found=$(java_version || true)
missing="Spark needs a Java runtime of version $LEAST_JAVA or later and none was found"
[ -n "$found" ] && missing="Spark needs a Java runtime of version $LEAST_JAVA or later and only version $found was found"
[ -n "${JAVA_HOME:-}" ] && fail "$missing in JAVA_HOME ($JAVA_HOME): point JAVA_HOME to a newer one, or unset it."

if apt_prefix >/dev/null; then
    apt_install openjdk-17-jre-headless default-jre-headless || true
    enough && exit 0
    fail "$missing, and apt-get could not install one: install a Java runtime by hand and run this again."
fi
fail "$missing: install one (on Debian or Ubuntu, as root: apt-get install openjdk-17-jre-headless), or set JAVA_HOME to it."
