#!/usr/bin/env bash
# On a clean Debian that systemd runs: the packages, which lie here, the service that they start, and a kernel on it.
set -euo pipefail
source /transcript/typed.sh
typed 'apt-get update -qq'
begin
typed 'apt-get install -qq -y --no-install-recommends ./kiln_*.deb ./kiln-daemon_*.deb > /dev/null'
typed 'systemctl is-enabled kilnd && systemctl is-active kilnd'
typed 'kiln login 127.0.0.1:7411'
typed 'kiln run cumsum.kiln --in X=x_10x1024.npy --timings'
total 'the packages and the first result'
typed 'kiln doctor'
typed 'systemctl show kilnd --property MainPID,User,DynamicUser,ProtectSystem,StatusText,NRestarts,MemoryCurrent'
typed 'journalctl -u kilnd -o cat --no-pager | head -n 5'
typed 'systemctl restart kilnd && kiln run cumsum.kiln --in X=x_10x1024.npy'
typed 'apt-get remove -qq -y kiln-daemon > /dev/null && ! systemctl is-active kilnd'
