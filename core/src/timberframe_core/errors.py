"""Exceptions, one for each of TensorFlow's status codes.

The message of an error that a node causes reads ``<op> '<node>': <fact with the actual values>; <what is required>``,
followed by the device and the line of the user's program that created the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class OpError(Exception):
    """Base class of all errors that building or running a graph raises.

    `error_code` is TensorFlow's number, `node` the node's name where one is to blame. `late` says of an error in a
    node's shapes that importing a graph leaves it to the run, as TensorFlow does. Programs that raise such errors make
    them as TensorFlow's are made, of `node_def` and `op` (both may be None) and the message.
    """

    error_code = 2
    late = False

    def __init__(
        self,
        message: str,
        node: str | None = None,
        text: str | None = None,
        error_code: int | None = None,
        node_def: Any = None,
        op: Any = None,
    ) -> None:
        """text: in a call as TensorFlow's, the message; then node_def and op are in the places before it."""
        if text is not None:
            node_def, op, message, node = message, node, text, None
        super().__init__(message)
        self.message = message
        self.node = node if op is None else op.name
        self.node_def, self.op = node_def, op
        if error_code is not None:
            self.error_code = error_code

    def __str__(self) -> str:
        return self.message  # a KeyError would show it in quotes


class CancelledError(OpError):
    """The run was cancelled: its session was closed, or another part of the run failed."""

    error_code = 1


class UnknownError(OpError):
    """A kernel or a plugin raised something that is not one of these errors."""

    error_code = 2


class InvalidArgumentError(OpError, ValueError):
    """A value, shape, dtype or name is not one that the operation accepts."""

    error_code = 3


class InvalidTypeError(InvalidArgumentError, TypeError):
    """A value or tensor is of a wrong type or dtype, where TensorFlow raises a TypeError."""


class NoneTypeError(InvalidTypeError, AttributeError):
    """None is given in place of a tensor, where TensorFlow raises an AttributeError."""


class InvalidFileError(InvalidArgumentError, OSError):
    """A file is none of its format, where TensorFlow raises an OSError."""


class InvalidIndexError(InvalidArgumentError, IndexError):
    """A position is outside of the sequence."""


class DeadlineExceededError(OpError, TimeoutError):
    """The run took longer than `RunOptions.timeout_in_ms` or `SessionConfig.operation_timeout_in_ms`."""

    error_code = 4


class NotFoundError(OpError, LookupError):
    """Something that was named does not exist: an op, a device, a file."""

    error_code = 5


class MissingFileError(NotFoundError, FileNotFoundError):
    """A file or folder does not exist, where TensorFlow raises an OSError."""


class MissingFolderError(NotFoundError, ValueError):
    """A file cannot be written because its folder does not exist, where TensorFlow raises a ValueError."""


class MissingGraphError(NotFoundError, RuntimeError):
    """A saved model has no graph of these tags, where TensorFlow raises a RuntimeError."""


class MissingNameError(NotFoundError, KeyError, ValueError):
    """A graph or file has nothing of this name; TensorFlow raises a KeyError here, a ValueError there."""


class AlreadyExistsError(OpError):
    """Something that must be new exists."""

    error_code = 6


class NameTakenError(AlreadyExistsError, KeyError):
    """A name has been registered, where TensorFlow raises a KeyError."""


class NotEmptyError(AlreadyExistsError, AssertionError):
    """A folder to write to has files already, where TensorFlow raises an AssertionError."""


class PermissionDeniedError(OpError):
    """The caller may not do this."""

    error_code = 7


class ResourceExhaustedError(OpError, MemoryError):
    """Memory, or another limited thing, does not suffice; the message has what was requested, used and free."""

    error_code = 8


class FailedPreconditionError(OpError):
    """The state does not allow the operation, such as a read of a variable that has no value yet."""

    error_code = 9


class WrongStateError(FailedPreconditionError, RuntimeError, ValueError):
    """A graph or session is used when it cannot be: after `finalize` or `close`, or where there is none."""


class AbortedError(OpError):
    """The operation was abandoned, typically because of another one that ran at the same time."""

    error_code = 10


class OutOfRangeError(OpError):
    """An iteration went past the end."""

    error_code = 11


class UnimplementedError(OpError, NotImplementedError):
    """No support for what was requested."""

    error_code = 12


class NoKernelError(UnimplementedError):
    """No kernel of a device that may run the node takes it; the message lists why each does not."""


class InternalError(OpError):
    """A broken promise between parts of Timberframe, or of a plugin."""

    error_code = 13


class UnavailableError(OpError):
    """A device or service is not there at present."""

    error_code = 14


class DataLossError(OpError):
    """Stored data is damaged."""

    error_code = 15


class InvalidRecordsError(DataLossError, InvalidArgumentError):
    """A file is too short for the records that it is said to have, where TensorFlow raises an InvalidArgumentError."""


class UnauthenticatedError(OpError):
    """Who asks is not known to a service."""

    error_code = 16


CODES: Mapping[int, type[OpError]] = {
    kind.error_code: kind
    for kind in (
        CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError, AlreadyExistsError,
        PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError, AbortedError, OutOfRangeError,
        UnimplementedError, InternalError, UnavailableError, DataLossError,
        UnauthenticatedError,
    )
}  # fmt: skip

(
    OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
    RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS,
    UNAUTHENTICATED,
) = range(17)  # fmt: skip


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """Returns the class of a code; KeyError where there is none."""
    return CODES[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """Returns the code of a class of errors."""
    return cls.error_code
