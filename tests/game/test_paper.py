import pytest

import fedaccord as fa


def test_the_papers_setting() -> None:
    consortium = fa.paper_consortium()
    assert consortium.size == 100
    assert consortium.valuation[[0, -1]].tolist() == [1.0, 100.0]
    assert set(consortium.cost_per_sample) == {0.985e-8}
    assert set(consortium.samples) == {10_000.0}
    assert set(consortium.discount_factor) == {0.8}
    assert (consortium.rounds, consortium.server_fee) == (50, 0.0)


def test_parameters_of_the_papers_setting_can_be_changed() -> None:
    consortium = fa.paper_consortium(4, 7, 3, 2.0, 0.1)
    assert consortium.valuation.tolist() == [25.0, 50.0, 75.0, 100.0]
    assert consortium.samples.tolist() == [7.0] * 4
    assert consortium.rounds == 3
    with pytest.raises(fa.InvalidInput, match="clients: must be a whole number, 1 or more, got 0"):
        fa.paper_consortium(0)
