"""The demo: a clip of real photographs and real speech, watched and asked about."""
