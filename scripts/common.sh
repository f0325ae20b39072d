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
