"""ONNX Runtime, the model catalogue and the networks that several rooms share."""

from edge.infer.catalog import Catalog, ModelFile, ModelSpec
from edge.infer.custom import NewModel, add_model
from edge.infer.download import Check, Pulled, Report
from edge.infer.download import pull as pull_models
from edge.infer.download import verify as verify_models
from edge.infer.network import Network, TensorInfo
from edge.infer.runtime import Runtime, limit_heaps, release_memory
from edge.infer.text import TextEmbedder, TokenStates, unit_words
from edge.infer.vad import SpeechChange, VoiceActivity, speech_spans

__all__ = [
    "Catalog",
    "Check",
    "ModelFile",
    "ModelSpec",
    "Network",
    "NewModel",
    "Pulled",
    "Report",
    "Runtime",
    "SpeechChange",
    "TensorInfo",
    "TextEmbedder",
    "TokenStates",
    "VoiceActivity",
    "add_model",
    "limit_heaps",
    "pull_models",
    "release_memory",
    "speech_spans",
    "unit_words",
    "verify_models",
]
