"""Questions in, answers from the evidence out."""
