"""`tf.contrib.tensorboard.plugins.projector`: which variables TensorBoard's projector shows, and how."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from timberframe.gfile import MakeDirs
from timberframe_core.errors import InvalidArgumentError
from timberframe_core.graphdef import messages

__all__ = ["PROJECTOR_FILENAME", "EmbeddingInfo", "ProjectorConfig", "SpriteMetadata", "visualize_embeddings"]

PROJECTOR_FILENAME = "projector_config.pbtxt"
"""The file in a folder of events that the projector reads."""

ProjectorConfig: Any = messages.ProjectorConfig
EmbeddingInfo: Any = messages.EmbeddingInfo
SpriteMetadata: Any = messages.SpriteMetadata


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes a ProjectorConfig into the folder of a FileWriter, or into a folder."""
    folder = summary_writer.get_logdir() if hasattr(summary_writer, "get_logdir") else summary_writer
    if not folder:
        raise InvalidArgumentError("projector.visualize_embeddings: the writer has no folder; one is required")
    MakeDirs(folder)
    (Path(os.fspath(folder)) / PROJECTOR_FILENAME).write_text(text_format.MessageToString(config))
