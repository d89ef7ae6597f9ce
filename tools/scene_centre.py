"""Makes the `scene_centre` of a detector in models/catalog.toml: the mean of its map of features over photographs.

`python -m tools.scene_centre FOLDER…`. The one in the catalogue is of 21 photographs of COCO val2017 and the colour photographs
that scikit-image ships; no clip that `tools.bench.scene` measures on is among them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np

from edge.infer import Catalog, Runtime
from edge.perceive.objects import Preprocessing, prepare
from edge.settings import InferSettings

PACKAGED = ("astronaut", "coffee", "chelsea", "rocket", "cat")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="with JPEG or PNG files")
    pictures = [cv2.imread(str(path)) for folder in parser.parse_args().folders for path in sorted(folder.glob("*.*g"))]
    from skimage import data

    pictures += [np.ascontiguousarray(getattr(data, name)()[:, :, ::-1]) for name in PACKAGED]
    settings = InferSettings()
    spec = Catalog.load(settings).default("objects")
    network = Runtime(settings).open(spec)
    how = Preprocessing.from_params(spec.params)
    means = [
        network.run({network.inputs[0].name: prepare(picture, how)[0]})[-1].mean(axis=(0, 2, 3)) for picture in pictures
    ]
    print("scene_centre = [")
    centre = np.mean(means, axis=0)
    for at in range(0, len(centre), 16):
        print("  " + ", ".join(f"{value:.3f}" for value in centre[at : at + 16]) + ",")
    print("]")


if __name__ == "__main__":
    main()
