# shellcheck shell=bash
# What a newcomer types, and what comes back. `typed LINE` runs the line in this shell and prints it, its seconds behind
# it and what it printed below; one that fails ends all.

seconds_since() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'; }

typed() {
  local from=$EPOCHREALTIME code=0 printed
  printed=$(mktemp)
  eval "$1" > "$printed" 2>&1 || code=$?
  printf '$ %s    # %s s\n' "$1" "$(seconds_since "$from")"
  cat "$printed"
  rm -f "$printed"
  if [ "$code" -ne 0 ]; then
    echo "it ended with $code"
    exit 1
  fi
}

begin() { first=$EPOCHREALTIME; }
total() { printf '# %s: %s s\n' "$1" "$(seconds_since "$first")"; }
