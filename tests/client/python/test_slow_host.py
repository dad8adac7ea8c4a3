"""Connecting where the daemon is slow to answer."""

import contextlib
import socket
import threading
import time

import kiln


def relay(source, target, delay):
    """Passes on what arrives, the first of it late."""
    time.sleep(delay)
    with contextlib.suppress(OSError):  # either end may have left
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_a_first_answer_after_a_third_of_a_second_is_waited_for(fake, short_folder):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{short_folder}/slow.sock")
    listener.listen()

    def serve():
        client, _ = listener.accept()
        daemon = socket.socket(socket.AF_UNIX)
        daemon.connect(fake.address.removeprefix("unix:"))
        threading.Thread(target=relay, args=(client, daemon, 0), daemon=True).start()
        relay(daemon, client, 0.3)

    threading.Thread(target=serve, daemon=True).start()
    with kiln.connect(f"unix:{short_folder}/slow.sock", default=False) as connection:
        assert connection.describe()["version"]
    listener.close()
