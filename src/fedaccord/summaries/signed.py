"""What is said about an agreement file that was verified."""

from fedaccord.signed.verification import Verification


def agreement_found(found: Verification) -> list[str]:
    """What was found out, in sentences."""
    parties = len(found.signed) + len(found.missing)
    if found.problems:
        return [f"Wrong: {problem}." for problem in found.problems]
    if found.missing:
        return [
            "Nothing was changed, and the proof holds.",
            f"Signed by {len(found.signed)} of {parties}. Not signed by: "
            f"{', '.join(found.missing)}.",
        ]
    return [
        f"Verified: nothing was changed, the proof holds, and all {parties} parties have signed."
    ]
