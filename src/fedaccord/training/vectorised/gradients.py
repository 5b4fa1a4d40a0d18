"""Gradients for many clients at once: by hand where possible, else by PyTorch.

A chain is a `torch.nn.Sequential` of linear layers, with or without an activation after each, whose
loss is cross-entropy: softmax regression and the usual MLP. With examples as columns, Y_0 being the
inputs and p the softmax of the outputs, its layers compute

    Z_i = W_i Y_{i-1} + b_i,    Y_i = f_i(Z_i).

The gradient of the weighted loss, at the outputs and then back from layer to layer, is

    S = (p - truth) * weights,    S_i = f_i'(Z_i) * S,    S = W_i' S_i,

and a step subtracts rate * S_i Y_{i-1}' from W_i and rate * (row sums of S_i) from b_i. All of
these are products of small matrices, one per client, which PyTorch computes in one call. Nothing is
recorded for automatic differentiation, and the weights are updated in place. Any other model is
differentiated by PyTorch.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.modules.conv import _ConvNd

from fedaccord.training.task import Model, Parameters, cross_entropy, trained_parameters

GradientFunction: TypeAlias = Callable[[Parameters, Tensor, Tensor, Tensor], Parameters]
"""The gradient of a weighted loss, given parameters, inputs, labels and weights. Where it is for
many clients, the first axis of everything counts them."""


# --- Chains of linear layers, by hand --------------------------------------------------------


@dataclass(frozen=True)
class Activation:
    """The nonlinear part of a layer, and its gradient, computed from its own outputs."""

    apply: Callable[[Tensor], Tensor]
    """In place."""
    back: Callable[[Tensor, Tensor], Tensor]
    """The gradient with respect to its inputs, given that of its outputs, and the outputs."""


_ACTIVATIONS: dict[type[nn.Module], Activation] = {
    nn.ReLU: Activation(torch.relu_, lambda s, y: torch.ops.aten.threshold_backward(s, y, 0.0)),
    nn.Sigmoid: Activation(torch.sigmoid_, torch.ops.aten.sigmoid_backward),
    nn.Tanh: Activation(torch.tanh_, torch.ops.aten.tanh_backward),
}


@dataclass(frozen=True)
class Layer:
    """A linear layer, by the names of its parameters."""

    weight: str
    bias: str | None
    activation: Activation | None = None

    def forward(self, each: Parameters, below: Tensor) -> Tensor:
        """Y_i, given Y_{i-1}."""
        weight = each[self.weight]
        if self.bias is None:
            out = torch.bmm(weight, below)
        else:
            out = torch.baddbmm(each[self.bias].unsqueeze(2), weight, below)
        return self.activation.apply(out) if self.activation else out

    def backward(self, gradient: Tensor, out: Tensor) -> Tensor:
        """S_i, given S and Y_i."""
        return self.activation.back(gradient, out) if self.activation else gradient

    def change(self, changed: Parameters, gradient: Tensor, below: Tensor, rate: float) -> None:
        """Take the step, given S_i and Y_{i-1}."""
        changed[self.weight].baddbmm_(gradient, below.mT, alpha=-rate)
        if self.bias is not None:
            changed[self.bias].sub_(gradient.sum(dim=2), alpha=rate)


@dataclass(frozen=True)
class Chain:
    """The layers of a model, first to last."""

    layers: tuple[Layer, ...]

    def step(
        self, each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor, rate: float
    ) -> None:
        """One plain step of every client, in place."""
        for layer, gradient, below in self._back(each, inputs, labels, weights):
            layer.change(each, gradient, below, rate)

    def gradients(
        self, each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor
    ) -> Parameters:
        """The gradient for every client."""
        found = {}
        for layer, gradient, below in self._back(each, inputs, labels, weights):
            found[layer.weight] = torch.bmm(gradient, below.mT)
            if layer.bias is not None:
                found[layer.bias] = gradient.sum(dim=2)
        return {name: found[name] for name in each}

    def gradient(
        self, parameters: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor
    ) -> Parameters:
        """The gradient for one client."""
        one = {name: value.unsqueeze(0) for name, value in parameters.items()}
        batch = [value.unsqueeze(0) for value in (inputs, labels, weights)]
        return {name: value.squeeze(0) for name, value in self.gradients(one, *batch).items()}

    def _back(
        self, each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor
    ) -> Iterator[tuple[Layer, Tensor, Tensor]]:
        """Each layer, last to first, with its S_i and Y_{i-1}; it may be updated right away."""
        outs = [inputs.flatten(2).mT]
        for layer in self.layers:
            outs.append(layer.forward(each, outs[-1]))
        gradient = torch.softmax(outs[-1], dim=1)
        truth = labels.unsqueeze(1)
        gradient.scatter_add_(1, truth, gradient.new_tensor(-1.0).expand(truth.shape))
        gradient *= weights.unsqueeze(1)
        for n in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[n]
            gradient = layer.backward(gradient, outs[n + 1])
            lower = torch.bmm(each[layer.weight].mT, gradient) if n else gradient
            yield layer, gradient, outs[n]
            gradient = lower


def find_chain(model: Model) -> Chain | None:
    """A model's layers if it is a chain; None if it is left to PyTorch."""
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
        elif type(part) in _ACTIVATIONS and layers and layers[-1].activation is None:
            layers[-1] = replace(layers[-1], activation=_ACTIVATIONS[type(part)])
        else:
            return None
    names = [name for layer in layers for name in (layer.weight, layer.bias) if name is not None]
    # Layers that share weights have them under one name only, and frozen layers under none here.
    # Hooks may do anything.
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


# --- Any other model, by PyTorch ------------------------------------------------------------

_MANY = 4
"""Clients whose gradients are computed sooner at once than in turn."""


def general_gradients(model: Model) -> GradientFunction:
    """The gradients for many clients.

    All at once, unless they are few, or there are convolutions: many small ones are slower in one
    call than in turn.
    """
    in_turn = _stacked(general_gradient(model))
    if any(isinstance(part, _ConvNd) for part in model.module.modules()):
        return in_turn
    at_once: GradientFunction = vmap(grad(_weighted_loss(model)))

    def gradients(each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor) -> Parameters:
        find = at_once if len(labels) >= _MANY else in_turn
        return find(each, inputs, labels, weights)

    return gradients


def _stacked(gradient: GradientFunction) -> GradientFunction:
    """The gradients for many clients, one after another."""

    def gradients(each: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor) -> Parameters:
        found = [
            gradient({name: value[n] for name, value in each.items()}, *batch)
            for n, batch in enumerate(zip(inputs, labels, weights, strict=True))
        ]
        return {name: torch.stack([one[name] for one in found]) for name in each}

    return gradients


def general_gradient(model: Model) -> GradientFunction:
    """The gradient for one client."""
    loss = _weighted_loss(model)

    def gradient(
        parameters: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor
    ) -> Parameters:
        live = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        gradients = torch.autograd.grad(loss(live, inputs, labels, weights), list(live.values()))
        return dict(zip(live, gradients, strict=True))

    return gradient


def _weighted_loss(model: Model) -> Callable[[Parameters, Tensor, Tensor, Tensor], Tensor]:
    """The loss, with a module of its own: two threads cannot share one."""
    own = copy.copy(model)
    own.module = copy.deepcopy(model.module)

    def loss(values: Parameters, inputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        return (weights * own.losses(values, inputs, labels)).sum()

    return loss
