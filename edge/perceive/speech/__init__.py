"""Speech: words, who said them, and when."""

from edge.perceive.speech.analyser import SpeechAnalyser, SpeechEvidence, Turn, build_speech
from edge.perceive.speech.recognise import Recogniser
from edge.perceive.speech.voiceprint import VoicePrinter

__all__ = ["Recogniser", "SpeechAnalyser", "SpeechEvidence", "Turn", "VoicePrinter", "build_speech"]
