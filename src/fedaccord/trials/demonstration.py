"""What `fedaccord demo` does: measures a law, makes an agreement for it, and tests its prediction.

Six hospitals have 400 of the 1,797 handwritten digits inside scikit-learn; all others are there to
test the model with, because the fewer test examples, the vaguer the law. The law is measured on the
hospitals' images. The trainings that follow have other seeds than the measurement: other images
come first, so that the prediction could turn out wrong.
"""

from dataclasses import replace

import numpy as np

from fedaccord.agreement.certificate import Certificate, certify
from fedaccord.agreement.solve import solve_agreement
from fedaccord.data.dataset import Dataset, load_dataset
from fedaccord.files.consortium import demo_consortium
from fedaccord.game.consortium import Consortium
from fedaccord.trials.calibration import Calibration, calibrate
from fedaccord.trials.setting import Progress
from fedaccord.trials.trial import Trial, train

SEEDS = 20
"""Of the measurement."""
FRESH_SEEDS = 60
"""Of the training that tests it: so many that the 95 % interval of what it measures is no wider
than the band that was predicted. With 20 it is, and a gain outside the band would say little."""
_FIRST_FRESH_SEED = 1_000
_MARGIN = 0.1
"""Of the agreement: it holds for hospitals that are less patient than they say, too."""


def demo_dataset(consortium: Consortium | None = None) -> Dataset:
    """As many digits to train on as the hospitals have, and all others to test with.

    >>> digits = demo_dataset()
    >>> digits.size, len(digits.test_labels)
    (400, 1397)
    """
    consortium = consortium or demo_consortium()
    digits = load_dataset("digits")
    size = int(consortium.samples.sum())
    return replace(
        digits,
        inputs=digits.inputs[:size],
        labels=digits.labels[:size],
        test_inputs=np.concatenate([digits.test_inputs, digits.inputs[size:]]),
        test_labels=np.concatenate([digits.test_labels, digits.labels[size:]]),
    )


def measure_demo(seeds: int | None = None, progress: Progress | None = None) -> Calibration:
    """The law of the loss, measured on the hospitals' images."""
    consortium = demo_consortium()
    return calibrate(
        demo_dataset(consortium), consortium=consortium, seeds=seeds or SEEDS, progress=progress
    )


def agree_in_demo(calibration: Calibration) -> Certificate:
    """The agreement that the hospitals come to under the measured law, and its proof.

    It is the fair share of what every hospital gains over the equilibrium, in whole images, and
    holds for every law that fits the measurements as well.
    """
    consortium = demo_consortium().with_law(calibration.law)
    return certify(
        solve_agreement(
            consortium,
            objective="fair share",
            nobody_worse=True,
            margin=_MARGIN,
            whole_samples=True,
            punishment="suspension",
        )
    )


def train_in_demo(
    certificate: Certificate, seeds: int | None = None, progress: Progress | None = None
) -> Trial:
    """The model at the equilibrium and under the agreement, with seeds that were not used yet."""
    agreement = certificate.agreement
    return train(
        {"equilibrium": agreement.equilibrium, "agreement": agreement},
        dataset=demo_dataset(agreement.consortium),
        seeds=seeds or FRESH_SEEDS,
        seed=_FIRST_FRESH_SEED,
        progress=progress,
    )
