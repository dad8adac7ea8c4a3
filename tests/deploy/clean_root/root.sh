# shellcheck shell=bash
# New Debians in folders, for transcripts of a first use. They have what the image of a cloud has: apt, its sources and
# the certificates of this host, and nothing of Kiln. Archives of them are kept in $cache.

# new_root SUITE FOLDER [PACKAGE...]: unpacks a minimal Debian there.
new_root() {
  local suite=$1 folder=$2 packages archive
  shift 2
  packages=$(IFS=,; echo "apt,ca-certificates${*:+,$*}")
  archive=$cache/$suite-${packages//[^a-z0-9]/-}.tar
  mkdir -p "$cache"
  if [ ! -f "$archive" ]; then
    mmdebstrap --quiet --format=tar --mode=root --variant=minbase --include="$packages" "$suite" "$archive.part" \
      "${sources:-$(sources_of "$suite")}"
    mv "$archive.part" "$archive"
  fi
  mkdir -p "$folder"
  tar -C "$folder" -xf "$archive"
  reach_packages "$folder"
  printf '127.0.0.1 localhost\n::1 localhost\n' > "$folder/etc/hosts"
  mkdir -p "$folder/home/you"
}

# The host's own sources, which may be those of a mirror, for another suite.
sources_of() {
  local given=/etc/apt/sources.list.d/debian.sources
  [ -f "$given" ] || given=/etc/apt/sources.list
  sed "s/bookworm/$1/g" "$given" > "$cache/$1.${given##*.}"
  echo "$cache/$1.${given##*.}"
}

# As this host does it: by its settings of apt and pip, and with its certificates.
reach_packages() {
  local path
  for path in /etc/apt/apt.conf.d /usr/local/share/ca-certificates /etc/pip.conf /etc/resolv.conf; do
    if [ -e "$path" ]; then
      mkdir -p "$1$(dirname "$path")"
      cp -RL "$path" "$1$(dirname "$path")/"
    fi
  done
  chroot "$1" update-ca-certificates > /dev/null 2>&1
}

# in_root FOLDER COMMAND...: in a container whose root is the folder, in the network of this host or that of the command
# $in_network. $binds are more flags of bwrap.
in_root() {
  local folder=$1
  shift
  # shellcheck disable=SC2086  # words of a command
  ${in_network:-} bwrap --bind "$folder" / --dev /dev --proc /proc --tmpfs /run --perms 1777 --tmpfs /tmp --unshare-pid --die-with-parent --cap-add ALL \
    --ro-bind "$here" /transcript --chdir /home/you --clearenv --setenv HOME /home/you --setenv LANG C.UTF-8 \
    --setenv PATH /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --setenv DEBIAN_FRONTEND noninteractive \
    "${binds[@]}" -- "$@"
}

# boot FOLDER SCRIPT: starts the root's systemd as process 1 of a container, where the script is a service; what it prints
# is printed here once that has ended.
boot() {
  local unit=$1/etc/systemd/system/transcript.service
  cat > "$unit" <<UNIT
[Service]
Type=oneshot
WorkingDirectory=/home/you
Environment=HOME=/home/you DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8
ExecStart=/bin/bash $2
StandardOutput=append:/transcript.txt
ExecStopPost=/bin/sh -c 'echo "\$EXIT_STATUS" > /ended; systemctl poweroff --no-block'
UNIT
  mkdir -p "$1/etc/systemd/system/multi-user.target.wants"
  ln -s ../transcript.service "$1/etc/systemd/system/multi-user.target.wants/"
  timeout 600 systemd-nspawn --quiet --boot --register=no --keep-unit --resolv-conf=off --directory="$1" \
    --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" --bind-ro="$here:/transcript" > "$1/console.txt" 2>&1 || true
  cat "$1/transcript.txt" || cat "$1/console.txt"
  [ "$(cat "$1/ended")" = 0 ]
}
