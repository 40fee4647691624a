"""Runs drivers' own tests, which nobody here wrote, against Onrush, and says which of them fail.

    python clients/suites/run.py asyncpg pgx sqlalchemy
    python clients/suites/run.py asyncpg --postgres 'host=127.0.0.1 port=5432 user=postgres'

Each suite comes from its registry, in the version below, and is kept in target/tmp/suites. ONRUSH_BIN names the server
(target/debug/onrush without it), which is started on an empty folder for each suite.

Tests that fail are listed in SUITE.fails beside this file, each with a reason where one is known. A test that fails
and is not in the list, or is in it and passes, is printed, and the command exits with 1. `--write` makes the list
anew; reasons stay. With `--postgres` the suite runs there too, and what fails there is left out: such tests need what
the machine does not have, as clusters of their own.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KEPT = ROOT / "target" / "tmp" / "suites"
ASYNCPG, PGX, SQLALCHEMY = "0.30.0", "v5.7.1", "2.1.9"
SUITE_SECONDS = 900
# Fail, and keep tests behind them from passing.
LEFT_OUT = {
    # It asks for the order in which rows were written, without ORDER BY, and leaves its table behind where it fails.
    "tests/test_execute.py::TestExecuteMany::test_executemany_client_failure_in_transaction",
}


def run(*command, **options):
    return subprocess.run(command, check=True, **options)


def python():
    """A Python of its own, with what the suites need."""
    needed = [f"asyncpg=={ASYNCPG}", "pytest==8.4.2", "pytest-timeout==2.4.0", "distro"]
    needed += ["psycopg[binary]==3.2.13", "typing-extensions", "greenlet"]
    program, installed = KEPT / "venv" / "bin" / "python", KEPT / "venv" / "installed"
    if not installed.exists() or installed.read_text() != "\n".join(needed):
        run(sys.executable, "-m", "venv", KEPT / "venv")
        run(program, "-m", "pip", "-q", "install", *needed)
        installed.write_text("\n".join(needed))
    return program


def sources(program, name, version):
    """The folder of a package's sources, which have its tests."""
    folder = KEPT / f"{name}-{version}"
    if not folder.exists():
        only_source = ["--no-deps", "--no-binary", ":all:"]
        run(program, "-m", "pip", "-q", "download", *only_source, "-d", KEPT, f"{name}=={version}")
        with tarfile.open(KEPT / f"{name}-{version}.tar.gz") as archive:
            archive.extractall(KEPT, filter="data")
    return folder


def pytest_results(suite, folder, environment, options):
    """What each test of a folder came to."""
    program = python()
    told = subprocess.run(
        [program, "-m", "pytest", "-q", "-rA", "--tb=native", "-p", "no:cacheprovider", *options],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SUITE_SECONDS,
    )
    (KEPT / f"{suite}.txt").write_text(told.stdout)
    if "INTERNALERROR" in told.stdout:
        sys.exit(f"pytest has not come to the end: see {KEPT / suite}.txt")
    results = {}
    for outcome, test in re.findall(r"^(PASSED|FAILED|ERROR) (\S+?::.*?)(?: - .*)?$", told.stdout, re.M):
        results[test] = results.get(test, True) and outcome == "PASSED"
    return results


def sqlalchemy(server):
    folder = sources(python(), "sqlalchemy", SQLALCHEMY)
    # It makes extensions before any test, which few of its tests need: those fail by themselves without them.
    provision = folder / "lib" / "sqlalchemy" / "dialects" / "postgresql" / "provision.py"
    written = provision.read_text()
    provision.write_text(re.sub(r'\("(citext|hstore)", \(13,\)\)', r'("\1", (99,))', written))
    for schema in ("test_schema", "test_schema_2"):
        execute(server, f"CREATE SCHEMA IF NOT EXISTS {schema}")
    url = "postgresql+psycopg://{user}@{host}:{port}/{dbname}".format(**{"dbname": "postgres", **server})
    results = pytest_results(
        "sqlalchemy", folder, dict(os.environ), ["-p", "no:xdist", "--dburi", url, "test/dialect/test_suite.py"]
    )
    # The version of the server is part of each name.
    return {re.sub(r"_postgresql\+psycopg_\d+_\d+", "", test): passed for test, passed in results.items()}


def execute(server, statement):
    words = " ".join(f"{name}={value}" for name, value in server.items())
    text = "import psycopg, sys; psycopg.connect(sys.argv[1], autocommit=True).execute(sys.argv[2])"
    run(python(), "-c", text, words, statement)


def asyncpg(server):
    program = python()
    folder = sources(program, "asyncpg", ASYNCPG)
    # Apart from the sources of the driver itself, which are not built.
    tests = KEPT / "asyncpg" / "tests"
    if not tests.exists():
        tests.parent.mkdir(exist_ok=True)
        tests.symlink_to(folder / "tests")
    environment = {
        **os.environ, "PGHOST": server["host"], "PGPORT": server["port"],
        "PGUSER": server["user"], "PGDATABASE": server.get("dbname", "postgres"),
    }
    # One of its tests looks at how its sources are written.
    left_out = [f"--deselect={test}" for test in ["tests/test__sourcecode.py", *LEFT_OUT]]
    results = pytest_results("asyncpg", tests.parent, environment, ["--timeout=30", *left_out, "tests"])
    return {**dict.fromkeys(LEFT_OUT, False), **results}


def pgx(server):
    module = f"github.com/jackc/pgx/v5@{PGX}"
    told = run("go", "mod", "download", "-json", module, stdout=subprocess.PIPE, text=True, cwd=KEPT)
    folder = json.loads(told.stdout)["Dir"]
    words = " ".join(f"{name}={value}" for name, value in server.items())
    told = subprocess.run(
        ["go", "test", "-count=1", "-p=1", "-timeout=300s", "-json", "./..."], cwd=folder, text=True, errors="replace",
        env={**os.environ, "PGX_TEST_DATABASE": words, "GOFLAGS": "-mod=mod"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SUITE_SECONDS,
    )
    (KEPT / "pgx.txt").write_text(told.stdout)
    results = {}
    for line in told.stdout.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            event = json.loads(line)
            # Tests inside of tests are counted with these.
            if "Test" in event and "/" not in event["Test"] and event["Action"] in ("pass", "fail"):
                package = event["Package"].split("/v5")[-1].strip("/") or "."
                results[f"{package}:{event['Test']}"] = event["Action"] == "pass"
    return results


SUITES = {"asyncpg": asyncpg, "pgx": pgx, "sqlalchemy": sqlalchemy}


@contextlib.contextmanager
def onrush():
    """A server on a folder of its own."""
    program = os.environ.get("ONRUSH_BIN", str(ROOT / "target" / "debug" / "onrush"))
    if not os.access(program, os.X_OK):
        sys.exit(f"there is no program {program}: cargo build --workspace --bin onrush, or set ONRUSH_BIN")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        log = open(KEPT / "server.log", "w")
        served = subprocess.Popen([program, "serve", "--listen", f"127.0.0.1:{port}", folder], stdout=log, stderr=log)
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                if served.poll() is not None:
                    sys.exit(f"the server does not start: see {log.name}")
                time.sleep(0.1)
            yield {"host": "127.0.0.1", "port": str(port), "user": "postgres", "dbname": "postgres"}
            if served.poll() is not None:
                sys.exit(f"the suite has brought the server down: see {log.name}")
        finally:
            served.kill()
            served.wait()


def known_failures(suite):
    path = HERE / f"{suite}.fails"
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(re.split(r"  # ?", f"{line}  # ", maxsplit=1) for line in lines if line and not line.startswith("#"))


def judge(suite, server, postgres, is_written):
    elsewhere = SUITES[suite](postgres) if postgres else {}
    results = SUITES[suite](server)
    of_machine = {test for test, passed in elsewhere.items() if not passed}
    known = known_failures(suite)
    failed = {test for test, passed in results.items() if not passed} - of_machine
    if postgres:
        lost = {test for test, passed in elsewhere.items() if passed and test not in results}
        passed = sum(elsewhere.values())
        print(f"{suite}: {passed} pass on PostgreSQL, {passed - len(failed | lost)} of them on Onrush")
        failed |= lost
    else:
        print(f"{suite}: {sum(results.values())} pass, {len(failed)} fail")
    if is_written:
        reasons = [f"{test}  # {known.get(test, '').removesuffix('  # ')}".rstrip(" #") for test in sorted(failed)]
        (HERE / f"{suite}.fails").write_text("".join(f"{line}\n" for line in reasons))
        return True
    for test in sorted(failed - known.keys()):
        print(f"  fails and is not listed: {test}")
    for test in sorted(test for test in known if results.get(test)):
        print(f"  is listed and passes: {test}")
    return not (failed - known.keys()) and not any(results.get(test) for test in known)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", nargs="+", choices=SUITES)
    parser.add_argument("--postgres", help="a PostgreSQL to run them on, too: host=... port=... user=...")
    parser.add_argument("--write", action="store_true", help="make the lists of what fails anew")
    given = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    postgres = dict(word.split("=", 1) for word in shlex.split(given.postgres)) if given.postgres else None
    sound = []
    for suite in given.suite:
        with onrush() as server:
            sound.append(judge(suite, server, postgres, given.write))
    sys.exit(0 if all(sound) else 1)


if __name__ == "__main__":
    main()
