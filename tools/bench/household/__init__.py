"""A household that code lives: months of hours in front of four cameras and a pair of glasses, with what was unusual known."""
