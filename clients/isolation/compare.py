"""Runs PostgreSQL's isolation specs on PostgreSQL and on Onrush, and compares what each step answers.

    python clients/isolation/compare.py --specs postgresql-15/src/test/isolation/specs \\
        --postgres 'host=127.0.0.1 port=5432 user=postgres' \\
        --onrush 'host=127.0.0.1 port=5433 user=test' [skip-locked nowait ...]

A permutation is `same` when both servers answer each step alike, wait at the same steps and go on in the same order;
`refused` when Onrush refuses a statement by name (SQLSTATE 0A000 or 42601) that PostgreSQL takes; `taken` when a
statement fails on PostgreSQL and none on Onrush; `failed` when it is the other way round; else it `differs`.
Needs psycopg 3. Both servers should have no other clients. Exits with 1 if a permutation is taken, failed, or differs.
"""

import argparse
import collections
import itertools
import pathlib
import queue
import re
import threading
import time

import psycopg

REFUSED = {"0A000", "42601"}
# A statement that neither ends nor is seen waiting in so many seconds is taken for one that waits.
UNDECIDED_SECONDS = 3.0
# A permutation that takes longer has come to a stop.
PERMUTATION_SECONDS = 40.0

TOKEN = re.compile(r'\s+|#[^\n]*|\{(.*?)\}|"((?:[^"]|"")*)"|\(([^)]*)\)|([^\s{}"()#]+)', re.S)


class Spec:
    """One file: set-up, sessions with their steps, permutations."""

    def __init__(self, text):
        self.setups, self.teardown, self.sessions, self.permutations = [], "", [], []
        self.owner = {}
        tokens = []
        for match in TOKEN.finditer(text):
            block, quoted, marker, word = match.groups()
            if block is not None:
                tokens.append(("block", block))
            elif marker is not None:
                tokens.append(("marker", marker))
            elif quoted is not None or word is not None:
                tokens.append(("word", quoted if quoted is not None else word))
        session, at = None, 0
        while at < len(tokens):
            kind, word = tokens[at]
            if word == "setup" and session is None:
                self.setups.append(tokens[at + 1][1])
            elif word == "setup":
                session["setup"] += tokens[at + 1][1]
            elif word == "teardown" and session is None:
                self.teardown = tokens[at + 1][1]
            elif word == "teardown":
                session["teardown"] += tokens[at + 1][1]
            elif word == "session":
                session = {"name": tokens[at + 1][1], "setup": "", "teardown": "", "steps": {}}
                self.sessions.append(session)
            elif word == "step":
                session["steps"][tokens[at + 1][1]] = tokens[at + 2][1]
                self.owner[tokens[at + 1][1]] = session["name"]
                at += 1
            elif word == "permutation":
                steps = []
                while at + 1 < len(tokens) and tokens[at + 1][1] != "permutation":
                    at += 1
                    if tokens[at][0] == "word":
                        steps.append(tokens[at][1])
                self.permutations.append(steps)
                at += 1
                continue
            at += 2
        if not self.permutations:
            self.permutations = list(self.all_permutations())

    def all_permutations(self):
        """Each order of all steps in which each session's stand in their order."""
        names = [list(session["steps"]) for session in self.sessions]
        order = [number for number, steps in enumerate(names) for _ in steps]
        for chosen in sorted(set(itertools.permutations(order))) if len(order) < 9 else []:
            left = [iter(steps) for steps in names]
            yield [next(left[number]) for number in chosen]

    def text(self, step):
        owner = next(session for session in self.sessions if session["name"] == self.owner[step])
        return owner["steps"][step]


def answers(connection, text):
    """What a text of statements answers: rows of the last result of each, or its error's SQLSTATE."""
    try:
        cursor = connection.execute(text)
        results = []
        while True:
            if cursor.description:
                results.append([tuple(map(str, row)) for row in cursor.fetchall()])
            if not cursor.nextset():
                return ("rows", results)
    except psycopg.Error as error:
        return ("error", error.sqlstate, str(error).splitlines()[0])


class Runner:
    """A session's connection and the thread that runs its steps."""

    def __init__(self, dsn):
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.pid = self.connection.info.backend_pid
        self.todo, self.done = queue.Queue(), queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while (text := self.todo.get()) is not None:
            self.done.put(answers(self.connection, text))

    def close(self):
        self.connection.cancel()
        self.todo.put(None)
        self.connection.close()


class Run:
    """One permutation on one server."""

    def __init__(self, dsn, spec, steps):
        self.spec, self.steps, self.trace, self.refused = spec, steps, [], None
        self.control = psycopg.connect(dsn, autocommit=True)
        self.runners = {}
        self.waiting = {}
        try:
            for setup in spec.setups:
                self.note_refused(answers(self.control, setup))
            for session in spec.sessions:
                runner = self.runners[session["name"]] = Runner(dsn)
                if session["setup"]:
                    self.note_refused(answers(runner.connection, session["setup"]))
            if self.refused is None:
                self.go()
        finally:
            for session in spec.sessions:
                runner = self.runners.get(session["name"])
                if runner and session["name"] not in self.waiting and session["teardown"]:
                    answers(runner.connection, session["teardown"])
            for runner in self.runners.values():
                runner.close()
            answers(self.control, spec.teardown)
            self.control.close()

    def has_failed(self):
        return any(answer[0] == "error" for _, answer in self.trace)

    def note_refused(self, answer):
        if answer[0] == "error" and self.refused is None:
            self.refused = answer

    def go(self):
        began = time.monotonic()
        for step in self.steps:
            session = self.spec.owner[step]
            while session in self.waiting and time.monotonic() - began < PERMUTATION_SECONDS:
                self.finish(None)
            if session in self.waiting:
                self.trace.append((step, "stopped"))
                return
            runner = self.runners[session]
            runner.todo.put(self.spec.text(step))
            if (answer := self.answer(runner)) is None:
                self.waiting[session] = step
                self.trace.append((step, "waits"))
            else:
                self.note(step, answer)
            self.finish(0)
        while self.waiting and time.monotonic() - began < PERMUTATION_SECONDS:
            self.finish(None)

    def note(self, step, answer):
        if answer[0] == "error" and answer[1] in REFUSED:
            self.note_refused(answer)
        self.trace.append((step, answer[:2]))

    def finish(self, _):
        """Takes the answers of those that wait no longer."""
        for session, step in list(self.waiting.items()):
            if (answer := self.answer(self.runners[session])) is not None:
                del self.waiting[session]
                self.note(step, answer)

    def answer(self, runner):
        """What the session's step answers; None if it waits for another session."""
        began = time.monotonic()
        while True:
            try:
                return runner.done.get(timeout=0.02)
            except queue.Empty:
                pass
            waits = self.control.execute(
                "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s", (runner.pid,)
            ).fetchone()
            if waits and waits[0] in ("Lock", "Transaction", "Timeout"):
                # What was handed over may not be taken yet.
                try:
                    return runner.done.get(timeout=0.05)
                except queue.Empty:
                    return None
            if time.monotonic() - began > UNDECIDED_SECONDS:
                return None


def compare(spec, steps, postgres, onrush):
    first = Run(postgres, spec, steps)
    if first.refused and not first.trace:
        return "broken", first.refused
    second = Run(onrush, spec, steps)
    if second.refused and not first.refused:
        return "refused", second.refused
    if first.trace == second.trace:
        return "same", None
    pairs = itertools.zip_longest(first.trace, second.trace)
    outcome = {(True, False): "taken", (False, True): "failed"}.get((first.has_failed(), second.has_failed()), "differs")
    return outcome, next(pair for pair in pairs if pair[0] != pair[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--specs", required=True, type=pathlib.Path)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--onrush", required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    paths = sorted(options.specs.glob("*.spec"))
    total = collections.Counter()
    for path in paths:
        if options.names and path.stem not in options.names:
            continue
        spec = Spec(path.read_text())
        counts, examples = collections.Counter(), {}
        for steps in spec.permutations:
            outcome, why = compare(spec, steps, options.postgres, options.onrush)
            counts[outcome] += 1
            examples.setdefault(outcome, (steps, why))
            if outcome in ("broken", "refused") and why and len(spec.permutations) > 1:
                counts[outcome] += len(spec.permutations) - sum(counts.values())
                break
        total += counts
        print(f"{path.stem}: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in sorted(counts)))
        for outcome, (steps, why) in examples.items():
            if outcome != "same":
                print(f"    {outcome}: {' '.join(steps)}\n        {why}", flush=True)
    print("all: " + ", ".join(f"{total[outcome]} {outcome}" for outcome in sorted(total)))
    return 1 if any(total[outcome] for outcome in ("taken", "failed", "differs")) else 0


if __name__ == "__main__":
    raise SystemExit(main())
