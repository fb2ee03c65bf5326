"""Clusters and their tasks, without an engine: what a program says of them, and what the installed target is asked."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import timberframe as tf
from timberframe_core.runtime import targets
from timberframe_core.runtime.targets import register_target

JOBS = {"worker": ["a:1", "b:2"], "ps": ["c:3"]}


class Engine:
    """A target that serves tasks, and writes down what it is asked."""

    def __init__(self) -> None:
        self.served: list[Any] = []
        self.target = "engine:x"
        self.joined = False

    def open(self, address: str, config: Any) -> Any:
        raise AssertionError("no session is opened")

    def reset(self, address: str, containers: Any) -> None:
        raise AssertionError("nothing is reset")

    def serve(self, cluster: Any, job: str, task: int) -> Engine:
        self.served.append((cluster, job, task))
        return self

    def join(self) -> None:
        self.joined = True


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The only target that serves tasks, for one test."""
    monkeypatch.setattr(targets._registry, "_entries", {})
    monkeypatch.setattr(targets._registry, "_kinds", {})
    found = Engine()
    register_target("engine", found)
    return found


def test_a_cluster_says_what_tasks_it_has() -> None:
    spec = tf.train.ClusterSpec(JOBS)
    assert spec.jobs == ["ps", "worker"]
    assert spec.as_dict() == JOBS
    assert (spec.num_tasks("worker"), spec.task_indices("worker"), spec.job_tasks("ps")) == (2, [0, 1], ["c:3"])
    assert spec.task_address("worker", 1) == "b:2"
    assert spec
    assert not tf.train.ClusterSpec({})


def test_a_cluster_may_leave_tasks_out() -> None:
    spec = tf.train.ClusterSpec({"worker": {1: "b:2", 3: "d:4"}})
    assert spec.as_dict() == {"worker": {1: "b:2", 3: "d:4"}}
    assert spec.job_tasks("worker") == [None, "b:2", None, "d:4"]


def test_a_cluster_goes_through_its_message() -> None:
    spec = tf.train.ClusterSpec(JOBS)
    message = spec.as_cluster_def()
    assert tf.train.ClusterSpec(message) == tf.train.ClusterSpec(spec) == spec
    assert {job.name: dict(job.tasks) for job in message.job} == {"worker": {0: "a:1", 1: "b:2"}, "ps": {0: "c:3"}}


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ({"ps": "c:3"}, "job 'ps' is 'c:3'; a list of addresses"),
        ({"ps": [3]}, "the address of task 0 of job 'ps' is 3; a str"),
        ({"ps": {"0": "c:3"}}, "job 'ps' has a task '0'; a number"),
        ({1: ["c:3"]}, "the name of a job is 1; a str"),
    ],
)
def test_what_is_no_cluster_is_refused(jobs: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tf.train.ClusterSpec(jobs)


def test_a_job_or_task_that_a_cluster_lacks_is_refused() -> None:
    spec = tf.train.ClusterSpec(JOBS)
    with pytest.raises(ValueError, match="has no job 'chief'; its jobs are ps, worker"):
        spec.num_tasks("chief")
    with pytest.raises(ValueError, match=r"job 'worker' has no task 2; it has \[0, 1\]"):
        spec.task_address("worker", 2)


def test_a_server_is_a_task_of_what_is_installed(engine: Engine) -> None:
    server = tf.train.Server(JOBS, "worker", 1)
    assert engine.served == [({"ps": {0: "c:3"}, "worker": {0: "a:1", 1: "b:2"}}, "worker", 1)]
    assert server.target == "engine:x"
    server.join()
    assert engine.joined


def test_a_server_starts_when_it_is_asked_to(engine: Engine) -> None:
    server = tf.train.Server(JOBS, "ps", start=False)
    assert engine.served == []
    server.start()
    server.start()
    assert [task for _, *task in engine.served] == [["ps", 0]]


def test_a_server_goes_through_its_message(engine: Engine) -> None:
    message = tf.train.Server(JOBS, "worker", 1, protocol="engine").server_def
    tf.train.Server(message)
    assert engine.served[0] == engine.served[1]
    assert message.protocol == "engine"


def test_a_local_server_is_a_cluster_by_itself(engine: Engine) -> None:
    assert tf.train.Server.create_local_server().target == "engine:x"
    assert engine.served == [(None, "local", 0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((JOBS,), "job_name is not given; one of ps, worker is required"),
        ((JOBS, "worker"), r"task_index is not given; job 'worker' has tasks \[0, 1\]"),
        ((JOBS, "worker", 2), "job 'worker' has no task 2"),
    ],
)
def test_a_server_must_be_a_task_of_its_cluster(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.train.Server(*arguments)


def test_a_server_without_an_engine_says_what_is_required() -> None:
    with pytest.raises(tf.errors.NotFoundError, match="no installed package serves protocol 'other'"):
        tf.train.Server(JOBS, "ps", 0, protocol="other")


def test_the_front_end_does_not_load_ray() -> None:
    program = "import sys, timberframe as tf; tf.train.ClusterSpec({'ps': ['a:1']}); print('ray' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
