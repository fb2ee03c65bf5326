"""Event files, which TensorBoard reads: TFRecord files of Event messages."""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from timberframe.gfile import MakeDirs
from timberframe.records.reading import read_records
from timberframe.records.writing import frame
from timberframe_core.arguments import instance
from timberframe_core.config import RunMetadata
from timberframe_core.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from timberframe_core.graph.graph import Graph, get_default_graph
from timberframe_core.graphdef import messages

EVENT_VERSION = "brain.Event:2"


class FileWriter:
    """Writes summaries, graphs and more to a new event file in a folder, which is made if it is not there.

    graph: is written first; graph_def is its older form. max_queue: how many events wait at most before they are
    written. flush_secs: after how many seconds they are in any case. filename_suffix: end of the file's name. session:
    TensorFlow's, must be None. Threads may share a writer.
    """

    def __init__(
        self,
        logdir: Any,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        if session is not None:
            raise InvalidTypeError("FileWriter: session is given; write to a file, and leave it None")
        self._folder: str = os.fspath(logdir)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._suffix = filename_suffix or ""
        self._described: set[str] = set()
        self._run_tags: set[str] = set()
        self._lock = threading.Lock()
        self._waiting = 0
        self._timer: threading.Timer | None = None
        self._file: Any = None
        """The open file; None after a flush, so that writers that have nothing to write hold no file open."""
        self._closed = False
        self._open()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def _open(self) -> None:
        MakeDirs(self._folder)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}{self._suffix}"
        path = Path(self._folder) / name
        number = 0
        while path.exists():  # another writer of the same second
            number += 1
            path = Path(self._folder) / f"{name}.{number}"
        self._path, self._file = path, path.open("wb")
        self._described.clear()
        self._write(messages.Event(wall_time=time.time(), file_version=EVENT_VERSION))
        self._flush()

    def get_logdir(self) -> str:
        """Returns the folder."""
        return self._folder

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds a Summary, or its bytes as a run gives them. global_step: the step that it belongs to."""
        given = messages.as_message(summary, messages.Summary, "FileWriter.add_summary")
        kept = messages.Summary()
        kept.CopyFrom(given)
        for value in kept.value:
            if value.HasField("metadata"):  # TensorBoard needs it once for each tag
                if value.tag in self._described:
                    value.ClearField("metadata")
                self._described.add(value.tag)
        self._add(messages.Event(summary=kept), global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Adds a graph or a GraphDef, for the page that shows it."""
        given = graph_def if graph is None else graph
        if isinstance(given, Graph):
            given = given.as_graph_def(add_shapes=True)
        checked = messages.as_message(given, messages.GraphDef, "FileWriter.add_graph")
        self._add(messages.Event(graph_def=checked.SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Adds a MetaGraphDef."""
        checked = messages.as_message(meta_graph_def, messages.MetaGraphDef, "FileWriter.add_meta_graph")
        self._add(messages.Event(meta_graph_def=checked.SerializeToString()), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Adds a SessionLog: a start, a stop, or a checkpoint."""
        checked = messages.as_message(session_log, messages.SessionLog, "FileWriter.add_session_log")
        self._add(messages.Event(session_log=checked), global_step)

    def add_run_metadata(self, run_metadata: RunMetadata, tag: str, global_step: Any = None) -> None:
        """Adds what a run recorded, under a tag: TensorBoard's page of the graph shows how long each node took.

        Raises InvalidArgumentError where the tag is in use.
        """
        instance(run_metadata, RunMetadata, "FileWriter.add_run_metadata: run_metadata", "a tf.RunMetadata")
        if tag in self._run_tags:
            raise InvalidArgumentError(f"FileWriter.add_run_metadata: tag {tag!r} is in use; each run needs its own")
        self._run_tags.add(tag)
        tagged = messages.TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add(messages.Event(tagged_run_metadata=tagged), global_step)

    def add_event(self, event: Any) -> None:
        """Adds an Event as it is."""
        checked = messages.as_message(event, messages.Event, "FileWriter.add_event")
        with self._lock:
            self._write(checked)

    def _add(self, event: Any, global_step: Any) -> None:
        event.wall_time = time.time()
        if global_step is not None:
            event.step = int(global_step)
        with self._lock:
            self._write(event)

    def _write(self, event: Any) -> None:
        if self._closed:
            raise FailedPreconditionError("FileWriter: is closed; `reopen` begins another file")
        if self._file is None:
            if not self._path.exists():  # the program has removed the folder, as many do before they train again
                self._open()
            self._file = self._path.open("ab")
        self._file.write(frame(event.SerializeToString()))
        self._waiting += 1
        if self._waiting > self._max_queue:
            self._file.flush()
            self._waiting = 0  # the timer goes on: a thread for every few events would cost more than they do
        elif self._timer is None:
            self._timer = threading.Timer(self._flush_secs, _flush_if_alive, (weakref.ref(self),))
            self._timer.daemon = True
            self._timer.start()

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._file is not None:
            self._file.close()
            self._file = None
        self._waiting = 0

    def flush(self) -> None:
        """Hands all events to the operating system."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Ends the file."""
        with self._lock:
            self._flush()
            self._closed = True

    def reopen(self) -> None:
        """Begins another file in the same folder, if it is closed."""
        with self._lock:
            if self._closed:
                self._closed = False
                self._open()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _flush_if_alive(writer: weakref.ref[FileWriter]) -> None:
    """Flushes a writer at a timer's call, which must not keep one that its program forgot: the file
    of such a one ends with it.
    """
    alive = writer()
    if alive is not None:
        alive.flush()


class FileWriterCache:
    """One FileWriter for each folder."""

    _writers: dict[str, FileWriter] = {}
    _lock = threading.Lock()

    @classmethod
    def get(cls, logdir: Any) -> FileWriter:
        """Returns the writer of a folder, made when it is first asked for; it then writes the default graph."""
        with cls._lock:
            folder = os.fspath(logdir)
            if folder not in cls._writers:
                cls._writers[folder] = FileWriter(folder, get_default_graph())
            return cls._writers[folder]

    @classmethod
    def clear(cls) -> None:
        """Closes all writers."""
        with cls._lock:
            for writer in cls._writers.values():
                writer.close()
            cls._writers.clear()


def summary_iterator(path: Any) -> Any:
    """Yields the Event messages of an event file, in order; a record that is not complete yet
    ends them with DataLossError.
    """
    for record in read_records(os.fspath(path)):
        yield messages.as_message(record, messages.Event, f"event file '{path}'")
