"""Compiles the hot modules; everything else about the package stands in pyproject.toml."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hot_modules

PURE = os.environ.get("PENSTOCK_PURE") == "1"
GENERATED = Path("build", "c")


class Build(build):
    """A build that starts empty, so that nothing of an earlier one gets into a wheel."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildHot(build_ext):
    """Python to C below build/, C to machine code; a module that is compiled from the same sources is left alone."""

    def build_extensions(self) -> None:
        compiler = self.compiler.compiler_so[0]
        if not shutil.which(compiler):
            sys.exit(_cannot_compile(f"there is no C compiler ({compiler})"))
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            sys.exit(_cannot_compile("Python's C headers are missing"))
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        if hot_modules.is_current(Path(self.get_ext_fullpath(ext.name)), ext.name):
            return
        from Cython.Build import cythonize  # a plain build does without

        [hot] = cythonize([ext], build_dir=str(GENERATED), force=True, annotate=bool(os.environ.get("ANNOTATE")))
        ext.sources = [*hot.sources, _fingerprint_source(ext.name)]
        self.force = True
        super().build_extension(ext)


def _cannot_compile(reason: str) -> str:
    return (
        f"error: Penstock compiles its hot modules, but {reason}: install gcc and python3-dev "
        "(the names on Debian and Ubuntu), or set PENSTOCK_PURE=1 for the slow, plain build."
    )


def _fingerprint_source(module: str) -> str:
    """A C file that puts the fingerprint into the compiled module, for `hot_modules.is_current`."""
    path = GENERATED / f"{module}.fingerprint.c"
    path.write_text(f'const char penstock_compiled_from[] = "{hot_modules.fingerprint(module)}";\n')
    return str(path)


def _extension(module: str) -> Extension:
    source = hot_modules.source(module).relative_to(hot_modules.ROOT)
    return Extension(module, [str(source)], extra_compile_args=["-g0"])


setup(
    ext_modules=[] if PURE else [_extension(module) for module in hot_modules.REASONS],
    cmdclass={"build": Build, "build_ext": BuildHot},
)
