"""`tf.data.Iterator`: goes through datasets, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timberframe.data.structure import Structured, attrs_of, check_same, declared, values_of
from timberframe_core.errors import InvalidArgumentError, InvalidTypeError, OutOfRangeError, WrongStateError
from timberframe_core.graph.apply import apply_op, convert_to_tensor
from timberframe_core.graph.function import FuncGraph, unique_function_name
from timberframe_core.graph.graph import get_default_graph
from timberframe_core.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from timberframe.data.dataset import Dataset

GLOBAL_ITERATORS = "iterators"
"""The collection of the handles of all iterators."""


class Iterator(Structured):
    """A position in a dataset, kept by the session. `get_next` gives tensors of the next element."""

    def __init__(
        self,
        iterator_resource: Any,
        initializer: Any,
        output_types: Any,
        output_shapes: Any,
        output_classes: Any = None,
    ) -> None:
        self._resource: Tensor = iterator_resource
        self._initializer = initializer
        self.structure = declared(output_types, output_shapes, output_classes)
        self._string_handle: Tensor = apply_op("IteratorToStringHandle", [iterator_resource])
        graph = get_default_graph()
        graph.add_to_collection(GLOBAL_ITERATORS, iterator_resource)

    @classmethod
    def _made(cls, resource: Tensor, initializer: Any, structure: Any) -> Iterator:
        found = cls(resource, initializer, (), ())
        found.structure = structure
        return found

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """Returns an iterator that `make_initializer` puts at the start of any dataset whose elements are like this.

        output_shapes: None where all are unknown. shared_name: by which iterators of several graphs are one.
        """
        structure = declared(output_types, output_shapes, output_classes)
        resource = apply_op(
            "IteratorV2", [], {"shared_name": shared_name or "", "container": "", **attrs_of(structure)}
        )
        return Iterator._made(resource, None, structure)

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """Returns the iterator that a string stands for, which another one's `string_handle()` gave when it was run."""
        structure = declared(output_types, output_shapes, output_classes)
        handle = convert_to_tensor(string_handle, "string")
        resource = apply_op("IteratorFromStringHandleV2", [handle], attrs_of(structure))
        return Iterator._made(resource, None, structure)

    @property
    def initializer(self) -> Operation:
        """The operation that puts the iterator at the start of its dataset."""
        if self._initializer is None:
            raise InvalidArgumentError("Iterator does not have an initializer; make_initializer(dataset) makes one")
        found: Operation = self._initializer
        return found

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """Returns an operation that puts the iterator at the start of a dataset, whose
        elements must be like its own.
        """
        check_same("Iterator.make_initializer: the dataset", dataset.structure, self.structure)
        with get_default_graph().name_scope(name or "make_initializer"):
            made: Operation = apply_op("MakeIterator", [dataset.variant, self._resource])
        return made

    def get_next(self, name: str | None = None) -> Any:
        """Returns the next element; OutOfRangeError when it is run after the last one."""
        made = apply_op("IteratorGetNext", [self._resource], attrs_of(self.structure), name)
        return values_of(self.structure, made)

    def string_handle(self, name: str | None = None) -> Tensor:
        """Returns a string that stands for the iterator in a session, to feed `from_string_handle`."""
        if name is None:
            return self._string_handle
        made: Tensor = apply_op("IteratorToStringHandle", [self._resource], None, name)
        return made


class EagerIterator(Iterator):
    """Goes through a dataset in eager execution: `for element in iterator`, or `get_next`, which raises
    OutOfRangeError at the end. Its threads end with the last reference to it."""

    def __init__(self, dataset: Dataset) -> None:
        attrs = {"shared_name": "", "container": "", **attrs_of(dataset.structure)}
        self._resource = apply_op("IteratorV2", [], attrs)
        self._initializer = None
        self.structure = dataset.structure
        apply_op("MakeIterator", [dataset.variant, self._resource])

    def __iter__(self) -> EagerIterator:
        return self

    def __next__(self) -> Any:
        try:
            return self.get_next()
        except OutOfRangeError:
            raise StopIteration from None

    next = __next__


def initializable(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """See `Dataset.make_initializable_iterator`."""
    if get_default_graph().eager:
        raise WrongStateError(
            "make_initializable_iterator is called in eager execution, where nothing is to be initialised; "
            "`for element in dataset` goes through it"
        )
    _check_graph(dataset)
    attrs = {"shared_name": shared_name or "", "container": "", **attrs_of(dataset.structure)}
    resource = apply_op("IteratorV2", [], attrs)
    initializer = apply_op("MakeIterator", [dataset.variant, resource])
    return Iterator._made(resource, initializer, dataset.structure)


def one_shot(dataset: Dataset) -> Iterator:
    """See `Dataset.make_one_shot_iterator`."""
    if get_default_graph().eager:
        return EagerIterator(dataset)
    _check_graph(dataset)
    outer = get_default_graph()
    factory = FuncGraph(unique_function_name(outer, "_make_dataset", scoped=False), outer)
    with factory.as_default():
        factory.finish([_copied(dataset.variant, factory, {})])
    attrs = {"dataset_factory": factory, **attrs_of(dataset.structure)}
    return Iterator._made(apply_op("OneShotIterator", [], attrs), None, dataset.structure)


def _copied(tensor: Tensor, factory: FuncGraph, copies: dict[Operation, Operation]) -> Tensor:
    """Returns the tensor in the function, with copies of all operations that it needs."""
    op = tensor.op
    if op not in copies:
        stateful = op.op_def.stateful and not op.type.endswith(("Dataset", "DatasetV2", "MatchingFiles"))
        if op.op_def.role == "placeholder" or stateful or any(t.dtype.name == "resource" for t in op.inputs):
            raise InvalidArgumentError(
                f"make_one_shot_iterator: the dataset needs {op.type} '{op.name}', which has state or must be fed; "
                "make_initializable_iterator() is for such datasets"
            )
        inputs = [_copied(t, factory, copies) for t in op.inputs]
        control = [_copied_operation(c, factory, copies) for c in op.control_inputs]
        new = factory.create_op(op.op_def, inputs, op.attrs, op.name, control_inputs=control, exact_name=True)
        new._where = op._where
        copies[op] = new
    return copies[op].outputs[tensor.value_index]


def _copied_operation(op: Operation, factory: FuncGraph, copies: dict[Operation, Operation]) -> Operation:
    if op not in copies:
        if op.outputs:
            _copied(op.outputs[0], factory, copies)
        else:
            inputs = [_copied(t, factory, copies) for t in op.inputs]
            control = [_copied_operation(c, factory, copies) for c in op.control_inputs]
            copies[op] = factory.create_op(
                op.op_def, inputs, op.attrs, op.name, control_inputs=control, exact_name=True
            )
    return copies[op]


def _check_graph(dataset: Dataset) -> None:
    if dataset.variant.op.graph is not get_default_graph():
        raise InvalidTypeError("the dataset was made in another graph than the iterator; both must be in the same one")


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Returns the dtypes of the components of an element of a dataset or iterator."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Returns the shapes of the components of an element of a dataset or iterator."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """Returns the classes of the components of an element of a dataset or iterator."""
    return dataset_or_iterator.output_classes
