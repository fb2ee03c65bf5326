"""Ops that accelerators leave to the host."""

_LIBRARY = "a decomposition by the host's LAPACK, which no portable kernel matches"
_TEXT = "works on strings or files, which live on the host"
_CHANCE = "draws its windows by chance on the host at each launch"
_SHOWN = "shows its data, strings among them, in its error"
_SMALL = "few graphs use it, on few images or at their edges: no kernel has been worth it yet"
_RARE = "rare, and sequential: the host is faster than a launch"

_BY_REASON = {
    _LIBRARY: (
        "Cholesky", "CholeskyGrad", "LogMatrixDeterminant", "MatrixDeterminant", "MatrixInverse", "MatrixSolve",
        "MatrixSolveLs", "MatrixTriangularSolve", "Qr", "SelfAdjointEigV2", "Svd",
    ),
    _TEXT: (
        "GenerateVocabRemapping", "MergeV2Checkpoints", "RecordInput", "ReduceJoin", "RegexFullMatch", "RestoreV2",
        "SaveV2", "ShardedFilename", "ShardedFilespec", "StaticRegexFullMatch", "StringJoin",
    ),
    _RARE: ("EditDistance",),
    _SMALL: ("CropAndResize", "CropAndResizeGradBoxes", "CropAndResizeGradImage", "Dequantize",
             "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVars",
             "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannel",
             "FakeQuantWithMinMaxVarsPerChannelGradient", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3",
             "QuantizeAndDequantizeV4", "QuantizeAndDequantizeV4Grad", "QuantizeV2"),
    _CHANCE: ("FractionalAvgPool", "FractionalAvgPoolGrad", "FractionalMaxPool", "FractionalMaxPoolGrad"),
    _SHOWN: ("Assert",),
}  # fmt: skip

UNSUPPORTED_OPS = {op: reason for reason, ops in _BY_REASON.items() for op in ops}
"""Ops that have no kernel here on purpose, with the reason."""
