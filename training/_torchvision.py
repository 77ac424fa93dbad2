"""Import torchvision also where its compiled operators cannot load.

The torchvision of PyPI is built for the CUDA build of torch. Beside a CPU build its library of operators does not load,
and `import torchvision` fails while it registers the shapes and gradients of those operators. Its data sets,
transforms and models use none of them.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

_REGISTRATIONS = ("torchvision._meta_registrations", "torchvision._autograd_registrations")


def import_torchvision() -> ModuleType:
    """Return torchvision, without its operators if (and only if) they cannot load.

    The plain import comes first. Any failure other than a missing operator is the caller's to see.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
    # The failed import leaves submodules behind that the second one would not bind to the new package.
    for name in [name for name in sys.modules if name.startswith("torchvision.")]:
        del sys.modules[name]
    for name in _REGISTRATIONS:
        sys.modules[name] = ModuleType(name, "Empty: the operators of torchvision cannot load beside this torch.")
    return importlib.import_module("torchvision")
