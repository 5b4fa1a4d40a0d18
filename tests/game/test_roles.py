import numpy as np

import fedaccord as fa
from fedaccord.game.roles import Role, roles


def test_roles_at_the_equilibrium() -> None:
    found = roles(np.array([0.0, 3.0, 5.0]), np.array([5.0, 5.0, 5.0]))
    assert found == (Role.FREE_RIDER, Role.PARTIAL_CONTRIBUTOR, Role.CONTRIBUTOR)


def test_roles_under_an_agreement() -> None:
    """A client that contributes nothing at the equilibrium but something now is converted."""
    found = roles(
        np.array([0.0, 3.0, 5.0, 3.0, 5.0]), np.full(5, 5.0), np.array([0.0, 0.0, 0.0, 3.0, 5.0])
    )
    assert found == (
        Role.FREE_RIDER,
        Role.CONVERTED_CONTRIBUTOR,
        Role.CONVERTED_CONTRIBUTOR,
        Role.PARTIAL_CONTRIBUTOR,
        Role.CONTRIBUTOR,
    )


def test_the_papers_uniform_agreement_has_all_four() -> None:
    agreement = fa.solve_agreement(fa.paper_consortium(), "uniform")
    counts = [agreement.roles.count(role) for role in Role]
    assert counts == [1, 1, 48, 50]
    assert str(Role.CONVERTED_CONTRIBUTOR) == "converted contributor"
