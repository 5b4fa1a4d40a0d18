"""What is said about a calibration."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedaccord.training.law import Law
    from fedaccord.trials.calibration import Calibration


def calibration_sentences(calibration: "Calibration") -> list[str]:
    """What was measured, how well the law fits, and the numbers that follow."""
    lines = [_measured(calibration)]
    if calibration.cost_per_sample is not None:
        lines.append(f"cost_per_sample = {calibration.cost_per_sample:.4g}")
    law, at_the_end, rounds = calibration.law, calibration.law_at_the_end, calibration.rounds
    lines += [
        f"All rounds: {_formula(law, 'G')}. {_verdict(law)}",
        f"After {rounds} rounds: {_formula(at_the_end, str(rounds))}. {_verdict(at_the_end)}",
    ]
    if calibration.valuation is not None:
        lines.append(f"valuation = {calibration.valuation:.4g} (what a loss of 1 costs, times a)")
        if not at_the_end.fits:
            lines.append("Do not rely on that valuation: the law does not fit.")
    return lines


def _measured(calibration: "Calibration") -> str:
    model, seconds = calibration.model, calibration.speed.seconds
    slower = calibration.speed.slowest / seconds
    return (
        f"Measured with {model.task.name} on {model.dataset.name}: "
        f"{seconds:.3g} seconds per sample in a round (up to {slower:.1f} times that), "
        f"{seconds * calibration.rounds:.3g} in a slot of {calibration.rounds} rounds."
    )


def _formula(law: "Law", rounds: str) -> str:
    last = f" + {law.rounds:.4g} / G" if rounds == "G" else ""
    floor = law.floor if rounds == "G" else law.floor + law.rounds / float(rounds)
    return f"test loss = {law.data:.4g} / sqrt(X {rounds}){last} + {floor:.4g}"


def _verdict(law: "Law") -> str:
    error = f"Typical error {law.error:.3g}."
    if law.fits:
        return f"{error} The law fits: it explains {100 * law.explained:.1f} % of the variance."
    return f"{error} The law does NOT fit: {', and '.join(law.objections)}."
