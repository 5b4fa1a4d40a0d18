"""The Flower engine against the contract of all engines."""

from fedaccord.flower.engine import FlowerEngine
from tests.training.engine_contract import EngineContract


class TestFlower(EngineContract):
    engine = FlowerEngine()
