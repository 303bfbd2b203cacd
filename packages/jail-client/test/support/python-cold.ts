/** Programs that no copy of a zygote can be, or not one of every zygote. */

import type { PythonJob } from "@svc/test-kit/jail/warm";
import { PYTHON_SERIES } from "@svc/test-kit/jail/zygotes";

/** What a copy cannot be is started anew. */
export const COLD: Record<string, PythonJob> = {
  "a module beside it that is named like one of the library": {
    files: { "main.py": "import random\nprint(random.mine)", "random.py": "mine = 1" },
  },
  "a package beside it that is named like one of the library": {
    files: { "main.py": "import json\nprint(json.mine, json.__path__)", "json/__init__.py": "mine = 1" },
  },
  arguments: {
    files: { "main.py": "import sys\nprint(sys.argv, open('/proc/self/cmdline').read().split('\\0'))" },
    argv: ["main.py", "one", "zwei ü", "", "--flag=1"],
  },
  "another interpreter option": { files: { "main.py": "print(__debug__)" }, argv: ["-O", "main.py"] },
  "a program on the command line": { files: {}, argv: ["-c", "import sys; print(sys.argv, sys.path)", "x"] },
  "a module of the library": { files: {}, argv: ["-m", "json.tool", "--help"] },
  "a fixed hash seed": {
    files: {
      "main.py": "print(hash('a'), sys.flags.hash_randomization)".replace("print", "import sys; print"),
    },
    env: { PYTHONHASHSEED: "1" },
  },
  "colours by a variable of the interpreter": {
    files: { "main.py": "def divide(n): return 1 / n\ndivide(0)\n" },
    env: { PYTHON_COLORS: "1" },
  },
  "a time zone": { files: { "main.py": "import time; print(time.tzname)" }, env: { TZ: "Asia/Tokyo" } },
  "a program that is not there": { files: {}, argv: ["main.py"] },
  "a directory with a main module": { files: { "main.py/__main__.py": "print(__file__, __package__)" } },
  "its own configuration of plots": {
    files: {
      "main.py": "import matplotlib; print(matplotlib.rcParams['font.size'])",
      matplotlibrc: "font.size: 33\n",
    },
  },
  "modules of the user": {
    files: {
      "main.py": "import mine, sys; print(mine.x, [p for p in sys.path if 'local' in p])",
      [`.local/lib/python${PYTHON_SERIES}/site-packages/mine.py`]: "x = 5",
    },
  },
  "an entry with another suffix": { files: { "main.txt": "print(__file__)" }, argv: ["main.txt"] },
  "an entry in a directory": {
    files: { "a/main.py": "import sys; print(sys.path[0])" },
    argv: ["a/main.py"],
  },
};

/** Named like modules of some zygotes only. */
export const SHADOWING: { module: string; job: PythonJob; warmIn: string[] }[] = [
  { module: "numpy", warmIn: ["python", "python-standard"] },
  { module: "subprocess", warmIn: ["python"] },
].map(({ module, warmIn }) => ({
  module,
  job: { files: { "main.py": `import ${module}\nprint(${module}.mine)`, [`${module}.py`]: "mine = 1" } },
  warmIn,
}));
