"""Speech: words, who said them, and when."""

from edge.perceive.speech.analyser import SpeechAnalyser, SpeechEvidence, Turn, build_speech

__all__ = ["SpeechAnalyser", "SpeechEvidence", "Turn", "build_speech"]
