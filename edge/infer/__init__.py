"""ONNX Runtime, the model catalogue and the networks that several rooms share."""

from edge.infer.catalog import Catalog, ModelFile, ModelSpec
from edge.infer.network import Network, TensorInfo
from edge.infer.runtime import Runtime
from edge.infer.text import TextEmbedder
from edge.infer.vad import SpeechChange, VoiceActivity

__all__ = [
    "Catalog",
    "ModelFile",
    "ModelSpec",
    "Network",
    "Runtime",
    "SpeechChange",
    "TensorInfo",
    "TextEmbedder",
    "VoiceActivity",
]
