#!/usr/bin/env bash
# Fetch Kafka's jars (scripts/kafka.pom.xml says which) with Maven into .kafka/; where they are there already, do nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

POM=scripts/kafka.pom.xml
cmp -s "$POM" .kafka/pom.xml && exit 0

type -P mvn >/dev/null || apt_install maven ||
    fail "Kafka's jars are fetched with Maven, and there is none: install it (on Debian or Ubuntu, as root: apt-get install maven)."
say "fetching Kafka with Maven (43 MB)"
rm -rf .kafka
# A repository may be away for a moment, and Maven remembers that unless told to look again (-U).
for pause_s in 5 20 0; do
    told=$(mvn --quiet --batch-mode -U --file "$POM" dependency:copy-dependencies 2>&1) && break
    [ "$pause_s" = 0 ] &&
        fail "Maven could not fetch Kafka: $(grep -m 1 ERROR <<<"$told" || printf '%s' "$told" | head -n 1)"
    say "Maven could not fetch Kafka; trying again in $pause_s s"
    sleep "$pause_s"
done
cp "$POM" .kafka/pom.xml # last: it says that all is there
