"""Values that cross rooms: frozen, slotted, units beside the fields."""
