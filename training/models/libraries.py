"""Networks of other libraries by name: `torchvision:resnet18`, `timm:resnet10t`, `hf:NAME` of transformers.

They are built with random weights. `hf:NAME` is a folder with a config.json or a name in the cache on this machine;
with `pretrained: true` its weights are read, too. timm and transformers are optional.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from valleyscope.training.downloads import SWITCH, downloads_allowed

if TYPE_CHECKING:
    from torch import nn

LIBRARIES: Final = ("torchvision", "timm", "hf")


def is_library_model(name: str) -> bool:
    """Whether a name has the form `library:network` of a library that is known here."""
    library, _, network = name.partition(":")
    return library in LIBRARIES and bool(network)


def build_library_model(name: str, shape: Sequence[int], outputs: int, options: Mapping[str, Any]) -> nn.Module:
    """The network for images (C, H, W), with one value for each of the outputs."""
    library, _, network = name.partition(":")
    if len(shape) != 3:
        raise ValueError(f"model {name!r} needs images (C, H, W), the samples have shape {tuple(shape)}")
    build = {"torchvision": _torchvision, "timm": _timm, "hf": _transformers}[library]
    return build(name, network, shape, outputs, dict(options))


def _torchvision(name: str, network: str, shape: Sequence[int], outputs: int, options: dict[str, Any]) -> nn.Module:
    from torch import nn
    from torchvision import models

    if network not in models.list_models(module=models):
        raise ValueError(f"model {name!r}: torchvision has no such network for images; see torchvision.models")
    if "weights" in options or "weights_backbone" in options:
        raise ValueError(f"model {name!r} starts from random weights: remove the option weights")
    if network in ("googlenet", "inception_v3"):
        options = {"aux_logits": False, "init_weights": True} | options
    try:
        model: nn.Module = models.get_model(network, weights=None, num_classes=outputs, **options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"model {name!r} cannot be built with the options {options}: {error}") from error
    first = next((module for module in model.modules() if isinstance(module, nn.Conv2d)), None)
    if first is not None and first.in_channels == 3 and shape[0] != 3:
        _replace_input(model, first, shape[0])
    return model


def _replace_input(model: nn.Module, first: nn.Conv2d, channels: int) -> None:
    """Give the first convolution as many input channels as the images have."""
    from torch import nn

    made = nn.Conv2d(
        channels,
        first.out_channels,
        first.kernel_size,  # type: ignore[arg-type]
        first.stride,  # type: ignore[arg-type]
        first.padding,  # type: ignore[arg-type]
        first.dilation,  # type: ignore[arg-type]
        bias=first.bias is not None,
    )
    for parent in model.modules():
        for key, child in parent.named_children():
            if child is first:
                setattr(parent, key, made)


def _timm(name: str, network: str, shape: Sequence[int], outputs: int, options: dict[str, Any]) -> nn.Module:
    try:
        import timm
    except ImportError as error:
        raise ValueError(f"model {name!r} needs the library timm: pip install timm") from error
    if not timm.is_model(network):
        near = ", ".join(timm.list_models(f"*{network[:6]}*")[:5]) or "see timm.list_models()"
        raise ValueError(f"model {name!r}: timm has no such network ({near})")
    pretrained = bool(options.pop("pretrained", False))
    if pretrained and not downloads_allowed():
        raise ValueError(f"model {name!r}: pretrained weights are downloaded; allow it by {SWITCH}=1")
    try:
        made: nn.Module = timm.create_model(
            network, pretrained=pretrained, in_chans=shape[0], num_classes=outputs, **options
        )
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"model {name!r} cannot be built with the options {options}: {error}") from error
    return made


def _transformers(name: str, network: str, shape: Sequence[int], outputs: int, options: dict[str, Any]) -> nn.Module:
    try:
        import transformers
    except ImportError as error:
        raise ValueError(f"model {name!r} needs the library transformers: pip install transformers") from error
    pretrained = bool(options.pop("pretrained", False))
    local = not downloads_allowed()
    try:
        config = transformers.AutoConfig.from_pretrained(network, local_files_only=local)
        sizes = {"num_labels": outputs, "num_channels": shape[0], "image_size": shape[1]}
        for key, value in (sizes | options).items():
            if not hasattr(config, key):
                if key in options:
                    raise ValueError(f"its config has no field {key}")
                continue
            setattr(config, key, value)
        kind = transformers.AutoModelForImageClassification
        if pretrained:
            found = kind.from_pretrained(network, config=config, local_files_only=local, ignore_mismatched_sizes=True)
        else:
            found = kind.from_config(config)
    except (OSError, ValueError, TypeError) as error:
        where = f" Only files of this machine are read, unless {SWITCH}=1." if local else ""
        raise ValueError(f"model {name!r} cannot be built: {error}.{where}") from error
    return _logits_only(found)


def _logits_only(model: Any) -> nn.Module:
    """The same network, whose forward returns logits; its weights keep their names."""
    from torch import Tensor, nn

    assert isinstance(model, nn.Module)
    kind = type(model)
    assert "pixel_values" in inspect.signature(kind.forward).parameters

    class Logits(kind):  # type: ignore[misc, valid-type]
        def forward(self, pixel_values: Tensor) -> Tensor:
            logits: Tensor = super().forward(pixel_values=pixel_values).logits
            return logits

    Logits.__name__ = kind.__name__
    model.__class__ = Logits
    return model
