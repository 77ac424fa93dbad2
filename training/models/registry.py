"""The named architectures, and building a network from a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from valleyscope.training._plugins import is_plugin, load_factory
from valleyscope.training.models.libraries import build_library_model, is_library_model

if TYPE_CHECKING:
    from torch import nn


class Samples(Protocol):
    """The properties of a data set that a network depends on."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def classes(self) -> int: ...


@dataclass(frozen=True)
class Architecture:
    """An architecture: its description, its options with their defaults, and the inputs that fit.

    `sides` are the heights and widths of images that fit; None means input of any shape. `factory` names the
    function that builds the network, and the module that it is in.
    """

    name: str
    description: str
    factory: str
    input_shape: tuple[int, ...]
    options: Mapping[str, Any]
    sides: range | tuple[int, ...] | None = None
    batch_norm: bool = False

    @property
    def needs(self) -> str:
        """The inputs that fit, as text."""
        if self.sides is None:
            return "input of any shape"
        if isinstance(self.sides, range):
            return f"images (C, H, W) with sides of {self.sides.start} to {self.sides[-1]} pixels"
        return f"images (C, H, W) with sides of {' or '.join(map(str, self.sides))} pixels"

    def check_input(self, shape: tuple[int, ...]) -> None:
        """Raise a ValueError if samples of this shape do not fit."""
        if self.sides is not None and (len(shape) != 3 or any(side not in self.sides for side in shape[1:])):
            raise ValueError(
                f"model {self.name!r} does not fit samples of shape {shape}: it needs {self.needs}; "
                "choose another model or data set"
            )


_ARCHITECTURES = {
    architecture.name: architecture
    for architecture in (
        Architecture(
            name="cnn",
            description="Two convolutions with pooling and two linear layers, for small images",
            factory="valleyscope.training.models.cnn:cnn",
            input_shape=(1, 8, 8),
            options={"channels": [16, 32], "hidden": 128, "kernel": 3, "padding": "same"},
            sides=range(8, 33),
        ),
        Architecture(
            name="lenet",
            description="LeNet 20-50-500: two 5x5 convolutions with pooling and two linear layers",
            factory="valleyscope.training.models.lenet:lenet",
            input_shape=(1, 28, 28),
            options={},
            sides=(28, 32),
        ),
        Architecture(
            name="mlp",
            description="Linear layers with ReLU between them, LeNet-300-100 by default",
            factory="valleyscope.training.models.mlp:mlp",
            input_shape=(1, 28, 28),
            options={"hidden": [300, 100]},
        ),
        Architecture(
            name="vgg16",
            description="VGG16 without BatchNorm, with dropout and three linear layers (connectivity experiments)",
            factory="valleyscope.training.models.vgg:vgg16",
            input_shape=(3, 32, 32),
            options={"width": 64, "dropout": 0.5},
            sides=(32,),
        ),
        Architecture(
            name="vgg16_bn",
            description="VGG16 with BatchNorm and one linear layer (pruning tables)",
            factory="valleyscope.training.models.vgg:vgg16_bn",
            input_shape=(3, 32, 32),
            options={"width": 64},
            sides=(32,),
            batch_norm=True,
        ),
        Architecture(
            name="resnet56",
            description="Residual network for CIFAR with shortcuts that pad with zeros (option A) and BatchNorm",
            factory="valleyscope.training.models.resnet:resnet",
            input_shape=(3, 32, 32),
            options={"depth": 56, "width": 16},
            sides=range(8, 257),
            batch_norm=True,
        ),
        Architecture(
            name="wrn28x10",
            description="Wide residual network, pre-activation, convolutions with bias and BatchNorm",
            factory="valleyscope.training.models.wide_resnet:wide_resnet",
            input_shape=(3, 32, 32),
            options={"depth": 28, "widen": 10, "dropout": 0.0},
            sides=range(8, 257),
            batch_norm=True,
        ),
    )
}

_DEFAULT_CLASSES = 10


def describe_models() -> dict[str, Architecture]:
    """Return every named architecture: its description, its options with their defaults, the inputs that fit.

    >>> describe_models()["mlp"].options
    {'hidden': [300, 100]}
    """
    return dict(_ARCHITECTURES)


def build_model(
    spec: str | Mapping[str, Any] = "cnn",
    dataset: Samples | None = None,
    *,
    input_shape: Sequence[int] | None = None,
    classes: int | None = None,
    seed: int | None = None,
    **options: Any,
) -> nn.Module:
    """Build a network from a name, or from a mapping of `name` and options; keyword options override it.

    The shape of the input and the number of classes come from the data set, from the two arguments, or are the
    architecture's defaults. With `seed` the initial weights depend on it alone, the same on every device, and torch's
    global generator does not change. `torchvision:resnet18`, `timm:resnet10t` and `hf:NAME` are networks for images of
    other libraries, with their options. `package.module:factory` calls your function with `input_shape`, `classes` and
    the options; the network it returns is checked on one sample.

    >>> sum(parameter.numel() for parameter in build_model("lenet").parameters())
    431080
    """
    given = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = given.pop("name", None)
    given.update(options)
    if dataset is not None:
        input_shape = dataset.shape if input_shape is None else input_shape
        classes = dataset.classes if classes is None else classes
    expected = None if dataset is None else getattr(dataset, "output_shape", None)
    if isinstance(name, str) and (is_library_model(name) or is_plugin(name)):
        return _build_seeded(seed, lambda: _build_custom(name, input_shape, classes, given, expected))
    if not isinstance(name, str) or name not in _ARCHITECTURES:
        raise ValueError(
            f"model {name!r} is unknown; use one of {', '.join(_ARCHITECTURES)}, torchvision:resnet18, timm:NAME or "
            "hf:NAME for networks of other libraries, or package.module:factory for your own code"
        )
    architecture = _ARCHITECTURES[name]
    if unknown := sorted(set(given) - set(architecture.options)):
        known = ", ".join(architecture.options) or "no options"
        raise ValueError(f"model {name!r} has no option {', '.join(map(repr, unknown))}; it has {known}")
    shape = _checked_shape(name, architecture.input_shape if input_shape is None else input_shape)
    least = 2 if expected is None or getattr(dataset, "loss", "cross_entropy") == "cross_entropy" else 1
    classes = _checked_classes(name, _DEFAULT_CLASSES if classes is None else classes, least)
    architecture.check_input(shape)
    module, _, function = architecture.factory.partition(":")
    factory = getattr(import_module(module), function)
    return _build_seeded(seed, lambda: factory(shape, classes, **{**architecture.options, **given}))


def _checked_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    if not len(shape) or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in shape):
        raise ValueError(
            f"model {name!r}: input_shape is {tuple(shape)}, must be whole numbers of 1 or more, as (C, H, W)"
        )
    return tuple(shape)


def _checked_classes(name: str, classes: int, least: int = 2) -> int:
    if isinstance(classes, bool) or not isinstance(classes, int) or classes < least:
        raise ValueError(f"model {name!r}: classes is {classes!r}, must be a whole number of {least} or more")
    return classes


def _build_seeded(seed: int | None, build: Callable[[], nn.Module]) -> nn.Module:
    """Build a network with a seeded generator on the CPU, the same on all devices."""
    import torch

    if seed is None:
        return build()
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ValueError(f"seed is {seed!r}, must be a whole number from 0 to 2**64 - 1")
    device = torch.get_default_device()
    with torch.random.fork_rng(devices=[]), nullcontext() if device.type == "meta" else torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        model = build()
    return model.to(device)


def _build_custom(
    name: str,
    input_shape: Sequence[int] | None,
    classes: int | None,
    options: Mapping[str, Any],
    expected: tuple[int, ...] | None,
) -> nn.Module:
    """Build a network of a library or plug-in, and check that it maps one sample to the outputs that are expected."""
    import torch
    from torch import nn

    if input_shape is None or classes is None:
        raise ValueError(f"model {name!r} needs a dataset, or both input_shape and classes: it has no defaults")
    shape, classes = _checked_shape(name, input_shape), _checked_classes(name, classes, 1)
    expected = (classes,) if expected is None else expected
    if is_library_model(name):
        model = build_library_model(name, shape, classes, options)
    else:
        model = load_factory("model", name)(input_shape=shape, classes=classes, **options)
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model {name!r}: the factory returned a {type(model).__name__}, must return a torch.nn.Module"
        )
    training = model.training
    first = next(model.parameters(), torch.empty(0))
    try:
        with torch.no_grad():
            output = model.eval()(torch.zeros(1, *shape, device=first.device, dtype=first.dtype))
    except (RuntimeError, ValueError, AssertionError) as error:  # networks of libraries check sizes by assertions
        raise ValueError(f"model {name!r} does not fit samples of shape {shape}: {error}") from error
    finally:
        model.train(training)
    found = tuple(output.shape[1:]) if isinstance(output, torch.Tensor) else type(output).__name__
    if found != expected and (expected or found != (1,)):
        raise ValueError(
            f"model {name!r} maps a sample of shape {shape} to {found}, must be "
            + (
                f"one value for each of {classes} classes"
                if expected == (classes,)
                else f"the shape of a target, {expected}"
            )
        )
    return model
