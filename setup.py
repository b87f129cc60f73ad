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
from setuptools.command.editable_wheel import editable_wheel

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
    """Python to C below build/, C to machine code; in place, only what is not compiled from the sources as they are."""

    def run(self) -> None:
        if self.inplace:
            self.extensions = [each for each in self.extensions if not hot_modules.is_current(each.name)]
        self.force = self.parallel = True
        super().run()

    def build_extensions(self) -> None:
        compiler = self.compiler.compiler_so[0]
        if not shutil.which(compiler):
            sys.exit(_cannot_compile(f"there is no C compiler ({compiler})"))
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            sys.exit(_cannot_compile("Python's C headers are missing"))
        self._generate()
        super().build_extensions()

    def _generate(self) -> None:
        from Cython.Build import cythonize  # a plain build does without

        generated = {made.name: made.sources for made in cythonize(self.extensions, build_dir=GENERATED, force=True)}
        for each in self.extensions:
            each.sources = [*generated[each.name], _fingerprint_source(each.name)]


class PlainEditable(editable_wheel):
    """A plain editable install: what was compiled in place before would still win over its `.py`."""

    def run(self) -> None:
        for module in hot_modules.REASONS:
            hot_modules.compiled(module).unlink(missing_ok=True)
        super().run()


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


if PURE:
    setup(cmdclass={"build": Build, "editable_wheel": PlainEditable})
else:
    setup(
        ext_modules=[_extension(module) for module in hot_modules.REASONS],
        cmdclass={"build": Build, "build_ext": BuildHot},
    )
