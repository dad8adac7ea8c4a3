#!/usr/bin/env bash
# On the host of the service: the image, as `docker run` starts it; podman is what stands for docker.
set -euo pipefail
# shellcheck source=tests/deploy/clean_root/typed.sh
source "$(dirname "$0")/typed.sh"
docker() { podman "${storage[@]}" --cgroup-manager cgroupfs "$1" "${engine[@]}" "${@:2}"; }
read -ra storage <<< "$KILN_STORAGE"
host=$1

engine=(--cgroups=disabled --network host)
typed "docker run -d --name kiln --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges -v state:/var/lib/kiln -v cache:/var/cache/kiln kiln:cpu --advertise $host:7411 > /dev/null"
engine=()
typed "until docker logs kiln 2>&1 | grep -q 'kiln login'; do sleep 0.1; done"
docker logs kiln 2>&1 | sed -nE 's/.*(kiln login [^"]*[0-9a-f]).*/\1/p' | head -n 1 > "$2"
typed "docker exec kiln kiln doctor --token \"\$(docker exec kiln cat /var/lib/kiln/token)\""
