"""Who it is: galleries give scored candidates, the resolver alone decides."""

from edge.identity.corrections import (
    RULES,
    merge_people,
    not_this_person,
    preview,
    rebuild_galleries,
    sentence,
    sightings_in,
    split_person,
    undo,
)
from edge.identity.galleries import GalleryFold
from edge.identity.identifier import Identifier, name_entity
from edge.identity.names import Bearer, Said, name_claims, names_in
from edge.identity.resolution import Resolution
from edge.identity.resolver import resolve
from edge.identity.state import Gallery, GalleryState, HeardName, KnownEntity, Presence, Slot, Waiting
from edge.identity.vocabulary import is_given_name

__all__ = [
    "RULES",
    "Bearer",
    "Gallery",
    "GalleryFold",
    "GalleryState",
    "HeardName",
    "Identifier",
    "KnownEntity",
    "Presence",
    "Resolution",
    "Said",
    "Slot",
    "Waiting",
    "is_given_name",
    "merge_people",
    "name_claims",
    "name_entity",
    "names_in",
    "not_this_person",
    "preview",
    "rebuild_galleries",
    "resolve",
    "sentence",
    "sightings_in",
    "split_person",
    "undo",
]
