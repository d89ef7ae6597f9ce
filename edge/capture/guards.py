"""Which segments may be skipped (ReflectWorld-MM, Appendix C, “Perception scheduling and anchoring”)."""

from __future__ import annotations

from edge.types.media import Segment


def worth_analysing(segment: Segment) -> bool:
    """Whether a closed segment must be analysed.

    Only a stretch that is still and silent may be skipped. Never skipped are the first segment of an event, a segment
    that contains speech, and one whose sound could not be heard in full.
    """
    return segment.first_of_event or bool(segment.speech) or segment.audio_faults > 0 or not segment.still
