"""The paper's evaluation: one module a figure, each `run(preset) -> table`."""
