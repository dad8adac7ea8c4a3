#!/usr/bin/env bash
# Rewrites what is generated from the tables of the language, the kernels of compiler/operators and
# the catalogue of errors; tests say when it is behind. Takes the folder of a build that has
# kiln-tables, and the virtual environment of the client, which gets the new tables.
#
#     docs/generate.sh [build/release [build/venv]]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
venv=${2:-build/venv}
python=$venv/bin/python

tables() { "$build/bin/kiln-tables" "$@"; }
tables_of_the_client() { tables | "$python" client/python/generate_tables.py; }
definitions_of_the_client() { tables compiler/operators/*.kiln | "$python" client/python/generate_tables.py; }
page_of_topi() { "$python" docs/generate_topi.py; }
page_of_operators() { "$python" docs/generate_operators.py; }

# rewrite FILE COMMAND: a command that fails leaves the file as it is.
rewrite() {
  "$2" > "$1.new" || { rm -f "$1.new"; exit 1; }
  mv "$1.new" "$1"
}

rewrite client/python/kiln/_tables.py tables_of_the_client
rewrite client/python/kiln/_operator_tables.py definitions_of_the_client
tables | "$python" docs/generate_tables.py docs/language.md
deploy/python-env.sh "$venv" test
rewrite docs/operators.md page_of_operators
rewrite docs/topi.md page_of_topi
"$python" client/python/generate_stubs.py
"$python" docs/generate_errors.py
page_of_habits() { "$python" docs/generate_habits.py; }
page_of_the_wire() { "$python" docs/generate_wire.py; }
rewrite docs/habits.md page_of_habits
rewrite docs/wire.md page_of_the_wire
page_of_the_api() { "$python" docs/generate_api.py; }
rewrite docs/api.md page_of_the_api
KILN_DAEMON=$build/bin/kilnd "$python" docs/generate_pictures.py
