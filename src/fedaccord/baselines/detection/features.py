"""What of an update is looked at: how far it is from what was expected, and where it points.

For DAGMM the expected is what the autoencoder makes of the update (Zong et al., section 3.2), for
ECOD the mean update.
"""

from torch import Tensor

from fedaccord.baselines.detection.span import Seen

SHORTEST = 0.1
"""A shorter update, in usual lengths, is measured as this long: 0 would divide by itself."""
_TINY = 1e-12


def squared_distance(seen: Seen, expected: Tensor) -> Tensor:
    """|x - y|^2 of an update x and what was expected of it, y."""
    return (seen.inside - expected).square().sum(dim=1) + seen.outside


def relative_distance(seen: Seen, squared: Tensor) -> Tensor:
    """|x - y| / |x|, by the squared distance."""
    return (squared + _TINY).sqrt() / seen.lengths.clamp_min(SHORTEST * seen.usual)


def cosine_similarity(seen: Seen, expected: Tensor) -> Tensor:
    """x y / (|x| |y|); 0 if either is nothing."""
    lengths = seen.lengths * (expected.square().sum(dim=1) + _TINY).sqrt()
    return (seen.inside * expected).sum(dim=1) / lengths.clamp_min(_TINY)
