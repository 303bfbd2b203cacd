"""What is shipped: the oldest Python's syntax, the standard library alone, and a wheel where setuptools is at hand."""

import ast
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import svc_client

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = sorted((ROOT / "svc_client").glob("*.py"))
#: Of Python 3.9, what the client uses.
STANDARD = set(
    "__future__ asyncio base64 contextlib contextvars dataclasses decimal http inspect io ipaddress json math os pathlib random re secrets socket ssl "
    "threading time typing urllib".split()
)


class Sources(unittest.TestCase):
    def test_every_source_is_python_3_9(self):
        for path in SOURCES:
            ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 9))

    def test_nothing_but_the_standard_library_is_imported(self):
        found = set()
        for path in SOURCES:
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {one.name.split(".")[0] for one in node.names}
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    found.add(node.module.split(".")[0])
        self.assertEqual(found - STANDARD, set())

    def test_one_version(self):
        [version] = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
        self.assertEqual(version, svc_client.__version__)

    def test_everything_that_is_promised_is_there(self):
        for name in svc_client.__all__:
            self.assertTrue(hasattr(svc_client, name), name)


BUILDER = "from setuptools import build_meta; import sys; build_meta.build_wheel(sys.argv[1])"
HAS_BUILDER = all(importlib.util.find_spec(name) is not None for name in ("setuptools", "wheel"))


@unittest.skipUnless(HAS_BUILDER, "python3-setuptools and python3-wheel are not installed")
class Wheel(unittest.TestCase):
    def test_a_wheel_is_built_and_works_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "source"), pathlib.Path(folder, "target")
            shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__"))
            subprocess.run([sys.executable, "-c", BUILDER, folder], cwd=source, check=True, capture_output=True)
            [wheel] = pathlib.Path(folder).glob("svc_client-*-py3-none-any.whl")
            with zipfile.ZipFile(wheel) as archive:
                names = archive.namelist()
                archive.extractall(target)
            self.assertEqual({name for name in names if name.endswith(".py")}, {f"svc_client/{path.name}" for path in SOURCES})
            self.assertIn("svc_client/py.typed", names)
            program = "import svc_client; print(svc_client.__file__); svc_client.Svc()"
            shown = subprocess.run(
                [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(target)!r}); {program}"],
                cwd=folder, check=True, capture_output=True, text=True,
            )
            self.assertEqual(shown.stdout.strip(), str(target / "svc_client/__init__.py"))


if __name__ == "__main__":
    unittest.main()
