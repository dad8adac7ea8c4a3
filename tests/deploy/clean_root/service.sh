#!/usr/bin/env bash
# On the host of the service: the image, as `docker run` starts it; podman is what stands for docker.
set -euo pipefail
# shellcheck source=tests/deploy/clean_root/typed.sh
source "$(dirname "$0")/typed.sh"
docker() { podman "${storage[@]}" --cgroup-manager cgroupfs "$1" "${engine[@]}" "${@:2}"; }
read -ra storage <<< "$KILN_STORAGE"
host=$1

# What an engine asks of systemd, or of a host whose limits are higher, is left out.
engine=(--cgroups=disabled --network host --no-healthcheck --ulimit nofile=1024:1024 --ulimit nproc=4096:4096)
typed "docker run -d --name kiln --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges -v state:/var/lib/kiln -v cache:/var/cache/kiln kiln:cpu --advertise $host:7411 > /dev/null"
engine=()
typed "until docker logs kiln 2>&1 | grep -q 'kiln login'; do sleep 0.1; done"
docker logs kiln 2>&1 | sed -nE 's/.*(kiln login [^"]*[0-9a-f]).*/\1/p' | head -n 1 > "$2"
typed "docker exec kiln sh -c 'read -r token < /var/lib/kiln/token && kiln doctor --token \"\$token\"'"
