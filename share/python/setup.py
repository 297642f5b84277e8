# SPDX-License-Identifier: BSD-3-Clause
"""A wheel for any Python 3, of one kind of machine: ctypes loads the library."""
from setuptools import setup
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class AnyPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


# An expression of SPDX, by the name that this setuptools has for it.
key = "license_expression" if hasattr(Distribution().metadata, "license_expression") else "license"
setup(**{key: "BSD-3-Clause"}, distclass=Binary, cmdclass={"bdist_wheel": AnyPython})
