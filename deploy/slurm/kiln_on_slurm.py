"""The fleet that deploy/slurm/kiln.sbatch started, for clients on any node that sees its folder:

    import kiln_on_slurm
    with kiln_on_slurm.fleet("FOLDER") as fleet:
        f = fleet.build([A, B])
        y = f(x)
"""

import pathlib

import kiln


def addresses(folder):
    """Where the servers are that listen."""
    return [file.read_text().strip() for file in sorted(pathlib.Path(folder, "servers").glob("[0-9]*"))]


def fleet(folder, policy="affinity"):
    """A kiln.Fleet of the servers, also of those that Slurm starts later."""
    credentials = pathlib.Path(folder, "credentials")
    token = (credentials / "token").read_text().strip()
    return kiln.Fleet(lambda: addresses(folder), token, str(credentials / "cert.pem"), "kiln", policy)
