# Shared by the other scripts: what they say, how they give up, and installing system packages where that is allowed.

LEAST_JAVA=17

say() { printf 'penstock: %s\n' "$*"; }

fail() {
    printf 'penstock: %s\n' "$*" >&2
    exit 1
}

# Print the prefix under which apt-get may run ("" as root, "sudo -n" where sudo asks no password); fail otherwise.
apt_prefix() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" = 0 ] && return 0
    command -v sudo >/dev/null && sudo -n true 2>/dev/null && printf 'sudo -n'
}

# Install the first of the named packages that apt-get knows.
apt_install() {
    local prefix package
    prefix=$(apt_prefix) || return 1
    # shellcheck disable=SC2086  # the prefix is one or several words, or none
    [ -n "${APT_UPDATED:-}" ] || $prefix apt-get update -qq >/dev/null || true # an unreachable list need not matter
    APT_UPDATED=yes
    for package in "$@"; do
        say "installing $package with apt-get"
        # shellcheck disable=SC2086
        $prefix env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
            >/dev/null 2>&1 && return 0
    done
    return 1
}

# Print the major version of the Java that Spark would start (JAVA_HOME first, then the PATH); fail if there is none.
java_version() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    command -v "$java" >/dev/null || return 1
    "$java" -version 2>&1 | sed -nE 's/.* version "(1\.)?([0-9]+).*/\2/p' | head -n 1
}

# Fetch jars (scripts/NAME.pom.xml says which) with Maven into .NAME/; where they are there already, do nothing.
fetch_jars() {
    local name=$1 called=$2 size=$3 pom=scripts/$1.pom.xml told pause_s
    cmp -s "$pom" ".$name/pom.xml" && return 0
    type -P mvn >/dev/null || apt_install maven ||
        fail "$called's jars are fetched with Maven, and there is none: install it (on Debian or Ubuntu, as root: apt-get install maven)."
    say "fetching $called with Maven ($size)"
    rm -rf ".$name"
    # A repository may be away for a moment, and Maven remembers that unless told to look again (-U).
    for pause_s in 5 20 0; do
        told=$(mvn --quiet --batch-mode -U --file "$pom" dependency:copy-dependencies 2>&1) && break
        [ "$pause_s" = 0 ] &&
            fail "Maven could not fetch $called: $(grep -m 1 ERROR <<<"$told" || printf '%s' "$told" | head -n 1)"
        say "Maven could not fetch $called; trying again in $pause_s s"
        sleep "$pause_s"
    done
    cp "$pom" ".$name/pom.xml" # last: it says that all is there
}
