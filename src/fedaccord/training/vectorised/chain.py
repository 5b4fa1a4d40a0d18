"""A step of many clients at once, written out by hand for the models that allow it.

A chain is a `torch.nn.Sequential` of linear layers, each followed by a bend or not, with cross
entropy as its loss: softmax regression and the usual MLP. With examples as columns, layer after
layer, Y_0 being the inputs and p the outputs' softmax,

    Z_i = W_i Y_{i-1} + b_i,    Y_i = f_i(Z_i),

the slope of the weighted loss is, at the outputs and then back from layer to layer,

    S = (p - truth) * weights,    S_i = f_i'(Z_i) * S,    S = W_i' S_i,

and a step takes rate * S_i Y_{i-1}' off W_i and rate * (row sums of S_i) off b_i. All of these are
products of small matrices, one a client, which PyTorch does in one call; nothing is recorded for
automatic differentiation, and the weights are changed where they are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from fedaccord.training.task import Model, Parameters, cross_entropy, trained_parameters


@dataclass(frozen=True)
class Bend:
    """What makes a layer not linear, and its slope, worked out from its own outputs."""

    apply: Callable[[Tensor], Tensor]
    """In place."""
    back: Callable[[Tensor, Tensor], Tensor]
    """The slope before it, given the slope after it and its outputs."""


_BENDS: dict[type[nn.Module], Bend] = {
    nn.ReLU: Bend(torch.relu_, lambda s, y: torch.ops.aten.threshold_backward(s, y, 0.0)),
    nn.Sigmoid: Bend(torch.sigmoid_, torch.ops.aten.sigmoid_backward),
    nn.Tanh: Bend(torch.tanh_, torch.ops.aten.tanh_backward),
}


@dataclass(frozen=True)
class Layer:
    """A linear layer, by the names of its parameters."""

    weight: str
    bias: str | None
    bend: Bend | None = None

    def forward(self, each: Parameters, below: Tensor) -> Tensor:
        """Y_i, given Y_{i-1}."""
        weight = each[self.weight]
        if self.bias is None:
            out = torch.bmm(weight, below)
        else:
            out = torch.baddbmm(each[self.bias].unsqueeze(2), weight, below)
        return self.bend.apply(out) if self.bend else out

    def backward(self, slope: Tensor, out: Tensor) -> Tensor:
        """S_i, given S and Y_i."""
        return self.bend.back(slope, out) if self.bend else slope

    def change(self, changed: Parameters, slope: Tensor, below: Tensor, rate: float) -> None:
        """The step itself, given S_i and Y_{i-1}."""
        changed[self.weight].baddbmm_(slope, below.mT, alpha=-rate)
        if self.bias is not None:
            changed[self.bias].sub_(slope.sum(dim=2), alpha=rate)


@dataclass(frozen=True)
class Chain:
    """The layers of a model, first to last."""

    layers: tuple[Layer, ...]

    def step(
        self, each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor, rate: float
    ) -> None:
        """One step of every client, in place; the first axis of everything counts the clients."""
        for layer, slope, below in self._back(each, inputs, labels, weights):
            layer.change(each, slope, below, rate)

    def slope(
        self, parameters: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor
    ) -> Parameters:
        """The slope for one client: from zero, a step with rate -1."""
        one = {name: value.unsqueeze(0) for name, value in parameters.items()}
        found = {name: torch.zeros_like(value) for name, value in one.items()}
        batch = [value.unsqueeze(0) for value in (inputs, labels, weights)]
        for layer, slope, below in self._back(one, *batch):
            layer.change(found, slope, below, -1.0)
        return {name: value.squeeze(0) for name, value in found.items()}

    def _back(
        self, each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor
    ) -> Iterator[tuple[Layer, Tensor, Tensor]]:
        """Each layer, last to first, with its S_i and Y_{i-1}; it may be changed at once."""
        outs = [inputs.flatten(2).mT]
        for layer in self.layers:
            outs.append(layer.forward(each, outs[-1]))
        slope = torch.softmax(outs[-1], dim=1)
        truth = labels.unsqueeze(1)
        slope.scatter_add_(1, truth, slope.new_tensor(-1.0).expand(truth.shape))
        slope *= weights.unsqueeze(1)
        for n in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[n]
            slope = layer.backward(slope, outs[n + 1])
            lower = torch.bmm(each[layer.weight].mT, slope) if n else slope
            yield layer, slope, outs[n]
            slope = lower


def find_chain(model: Model) -> Chain | None:
    """A model's layers, if it is a chain; None: only PyTorch knows how to differentiate it."""
    module = model.module
    if type(module) is not nn.Sequential or model.task.loss is not cross_entropy:
        return None
    flat = len(model.dataset.shape) == 1
    layers: list[Layer] = []
    for name, part in module._modules.items():  # the children, also those that occur twice
        if type(part) is nn.Flatten and (part.start_dim, part.end_dim) == (1, -1):
            flat = True
        elif type(part) is nn.Linear and flat:
            bias = None if part.bias is None else f"{name}.bias"
            layers.append(Layer(f"{name}.weight", bias))
        elif type(part) in _BENDS and layers and layers[-1].bend is None:
            layers[-1] = replace(layers[-1], bend=_BENDS[type(part)])
        else:
            return None
    names = [name for layer in layers for name in (layer.weight, layer.bias) if name is not None]
    # Layers that share their weights have them under one name only, frozen ones under none here;
    # hooks may do anything.
    if not layers or set(names) != trained_parameters(module).keys():
        return None
    return None if any(_hooked(part) for part in module.modules()) else Chain(tuple(layers))


def _hooked(module: nn.Module) -> bool:
    """Whether something else runs with it."""
    return any(
        (
            module._forward_hooks,
            module._forward_pre_hooks,
            module._backward_hooks,
            module._backward_pre_hooks,
        )
    )
