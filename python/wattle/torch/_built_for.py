"""Build environment of the C++ observer (observer.cpp): the installed torch.

Meson runs this file as a program, so it imports nothing of wattle: one fact on each line."""
from __future__ import annotations

import os
import pathlib
import re
import torch


def tag() -> str:
    """Another torch has other C++ types, which its version may not show."""
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    return f"{torch.__version__}-{str(torch.version.git_version)[:12]}-abi{abi}"


def file_stem() -> str:
    return f"observer-{re.sub(r'[^A-Za-z0-9.+-]', '_', tag())}"


def cache_folder() -> pathlib.Path:
    """Output folder of build_observer. RuntimeError: there is no home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (pathlib.Path(base) if os.path.isabs(base) else pathlib.Path.home() / ".cache") / "wattle"


def standard() -> str:
    """C++ version required by torch's headers: they check it themselves."""
    with open(pathlib.Path(headers()[1]) / "torch/all.h", encoding="utf-8") as file:
        required = re.search(r"#error C\+\+(\d+) or later", file.read())
    return f"gnu++{required[1]}" if required else "gnu++17"


def headers() -> list[str]:
    """torch.utils.cpp_extension has them too, but prints messages about CUDA."""
    top = pathlib.Path(str(torch.__file__)).parent / "include"
    return [str(top), str(top / "torch/csrc/api/include")]


def libraries() -> str:
    return str(pathlib.Path(str(torch.__file__)).parent / "lib")


def definitions() -> list[str]:
    """NDEBUG as torch's own extensions have it: some of its types differ without."""
    return ["-DNDEBUG", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", f'-DWATTLE_TORCH="{tag()}"']


if __name__ == "__main__":
    print(file_stem(), standard(), libraries(), ",".join(headers()), *definitions(), sep="\n")
