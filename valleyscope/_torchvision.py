"""An import hook: `import torchvision` works also where its compiled operators cannot load.

The torchvision of PyPI is built for the CUDA build of torch. Beside a CPU build its library of operators does not load,
and `import torchvision` fails while it registers the shapes and gradients of those operators. Its data sets,
transforms and models use none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType

_REGISTRATIONS = ("torchvision._meta_registrations", "torchvision._autograd_registrations")


class TorchvisionFinder(MetaPathFinder):
    """Find torchvision where the other finders do, and load it with `_Loader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torchvision":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Run torchvision as it is; if (and only if) an operator is missing, once more without the registrations."""

    def exec_module(self, module: ModuleType) -> None:
        before = set(vars(module))
        try:
            super().exec_module(module)
        except RuntimeError as error:
            if "operator torchvision::" not in str(error):
                raise
        else:
            return
        for name in set(vars(module)) - before:
            delattr(module, name)
        for name in [name for name in sys.modules if name.startswith("torchvision.")]:
            del sys.modules[name]
        for name in _REGISTRATIONS:
            sys.modules[name] = ModuleType(name, "Empty: the operators of torchvision cannot load beside this torch.")
        super().exec_module(module)


def install() -> None:
    if not any(isinstance(finder, TorchvisionFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchvisionFinder())
