"""Uploads to a daemon elsewhere: they go on where a connection broke off, and contents that are there are not sent again."""

import socket
import threading

import numpy as np
import pytest

import kiln

MIB = 1 << 20


class Way:
    """A port before a daemon's, whose connections break once so many bytes have gone to the daemon; each break once."""

    def __init__(self, address, breaks):
        host, port = address.rsplit(":", 1)
        self._target, self._breaks = (host, int(port)), list(breaks)
        self.sent = 0  # to the daemon, over all connections
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            for pair in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source, target, counts):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
                if counts:
                    self.sent += len(data)
                    if self._breaks and self.sent > self._breaks[0]:
                        self._breaks.pop(0)
                        break
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.fixture
def way(start):
    made = []

    def make(breaks=()):
        made.append(Way(start(), breaks))
        return made[-1]

    yield make
    for each in made:
        each.close()


def assert_resumed(counters, breaks):
    """Who asks what is there while the rest of the broken connection still arrives has to ask once more."""
    assert breaks <= counters["resumed_uploads"] <= 2 * breaks


def test_an_upload_goes_on_where_its_connection_broke(way):
    path = way(breaks=[6 * MIB, 20 * MIB])
    values = np.random.default_rng(3).integers(0, 1 << 30, 8 * MIB).astype("int32")  # 32 MiB
    with kiln.connect(path.address, default=False) as connection:
        array = connection.array(values)
        counters = connection.describe()["counters"]
        assert array.numpy().tobytes() == values.tobytes()
    assert_resumed(counters, 2)
    assert counters["uploads"] == 1
    # What was on its way when it broke comes twice, but nothing before that.
    assert counters["uploaded_bytes"] == values.nbytes
    assert path.sent < values.nbytes + 12 * MIB


def test_contents_that_are_there_are_not_sent_again(way):
    path = way()
    values = np.random.default_rng(4).uniform(-1, 1, 2 * MIB).astype("float32")
    with kiln.connect(path.address, default=False) as connection:
        first = connection.array(values, by_digest=True)
        sent = path.sent
        second = connection.array(values.copy(), by_digest=True)
        assert path.sent - sent < MIB
        assert second.numpy().tobytes() == values.tobytes()
        assert connection.describe()["counters"]["found_uploads"] == 1
        # Each is an array of its own.
        x = kiln.te.placeholder((kiln.te.var("n"),), name="X")
        plus = connection.build([x, kiln.te.compute(x.shape, lambda i: x[i] + 1, name="Y")], name="plus")
        plus(first, first)
        assert first.numpy().tobytes() == (values + 1).tobytes()
        assert second.numpy().tobytes() == values.tobytes()


def test_large_arguments_of_a_call_go_on_too(way):
    path = way(breaks=[5 * MIB])
    values = np.arange(4 * MIB, dtype="float32")
    with kiln.connect(path.address, default=False) as connection:
        x = kiln.te.placeholder((kiln.te.var("n"),), name="X")
        plus = connection.build([x, kiln.te.compute(x.shape, lambda i: x[i] + 1, name="Y")], name="plus")
        assert plus(values).numpy().tobytes() == (values + 1).tobytes()
        assert_resumed(connection.describe()["counters"], 1)
