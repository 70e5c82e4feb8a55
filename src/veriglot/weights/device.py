"""Where a network of PyTorch runs: the first accelerator that is here, otherwise the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["device_for"]


def device_for(wanted: str | None = None) -> torch.device:
    """The device of a name such as `cpu` or `cuda:0`; without one the first accelerator, otherwise the CPU.

    Raises:
        UsageError: PyTorch knows no such device.
    """
    import torch

    from veriglot.errors import UsageError

    if wanted:
        try:
            return torch.device(wanted)
        except RuntimeError as error:
            raise UsageError(
                f"PyTorch knows no device {wanted!r}.", remedy="Give `cpu`, `cuda`, `cuda:0`, `mps`."
            ) from error
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return found or torch.device("cpu")
