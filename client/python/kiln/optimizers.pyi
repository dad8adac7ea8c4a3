"""How parameters go down their gradients: `program.minimize(loss, kiln.optimizers.Adam(1e-3))`. Written by generate_stubs.py; do not edit."""

from typing import Any, Callable, Sequence
from kiln._stubs import Adam as Adam, SGD as SGD


