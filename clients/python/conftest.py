"""Servers to test with."""

import os
import shutil
import subprocess

import pytest


class Server:
    """`onrush serve` on a fresh folder; what it listens on stays the same over a kill."""

    def __init__(self, folder, arguments=()):
        self.folder = folder
        self.arguments = list(arguments)
        self.address = "127.0.0.1:0"
        self.process = None
        self.start()

    def start(self):
        command = [os.environ["ONRUSH_BIN"], "serve", str(self.folder), "--listen", self.address]
        command += self.arguments
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line
        self.address = line.split()[-1]

    def kill(self):
        """As `kill -9` does."""
        self.process.kill()
        self.process.communicate()

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    def end(self):
        self.kill()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One for all tests of a file."""
    server = Server(tmp_path_factory.mktemp("server") / "database")
    yield server
    server.end()


@pytest.fixture
def own_server(tmp_path):
    """One that the test may kill."""
    server = Server(tmp_path / "database")
    yield server
    server.end()
