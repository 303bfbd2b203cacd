import { describe, expect, it } from "vitest";
import { run } from "./support/program.ts";

const python = (code: string, job = {}) => run("python", { code, ...job });

describe("a Python program", () => {
  it("runs as a plain main.py with its arguments, its standard input and its exit code", async () => {
    const { stdout, stderr, exitCode } = await python(
      "import sys\nprint(__name__, __file__, sys.argv, sys.path[0])\nprint(sys.stdin.read())\nsys.exit(7)",
      { args: ["one", "zwei ü", ""], stdin: "Ünïcode ☃" },
    );
    expect(stdout).toBe("__main__ /mnt/data/main.py ['main.py', 'one', 'zwei ü', ''] /mnt/data\nÜnïcode ☃\n");
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 7 });
  });

  it("keeps __future__ imports, multi-line strings, module globals and line numbers as they are written", async () => {
    const { stdout, stderr, exitCode } = await python(
      [
        "from __future__ import annotations",
        "counter = 0",
        'text = """a',
        "  b",
        '"""',
        "def count():",
        "    global counter",
        "    counter += 1",
        "count()",
        "print(repr(text), counter)",
        "1 / 0",
      ].join("\n"),
    );
    expect(stdout).toBe("'a\\n  b\\n' 1\n");
    expect(stderr).toMatch(
      /^Traceback \(most recent call last\):\n {2}File "\/mnt\/data\/main.py", line 11, in <module>\n/,
    );
    expect(stderr).toMatch(/ZeroDivisionError: division by zero\n$/);
    expect(exitCode).toBe(1);
  });

  it("that does not parse ends with its line and exit code 1", async () => {
    const { stderr, exitCode } = await python("x = 1\nif x\n    pass\n");
    expect(stderr).toContain('main.py", line 2\n');
    expect(stderr).toContain("SyntaxError: expected ':'");
    expect(exitCode).toBe(1);
  });

  it("imports its neighbours and leaves no byte code in the workspace", async () => {
    const { stdout, files } = await python(
      "import helper, pkg.inner, os\nprint(helper.x + pkg.inner.y, sorted(os.listdir()), os.listdir('pkg'))",
      { files: { "helper.py": "x = 20", "pkg/inner.py": "y = 22" } },
    );
    expect(stdout).toBe("42 ['helper.py', 'main.py', 'pkg'] ['inner.py']\n");
    expect([...files.keys()]).toEqual([]);
  });

  it("that is stopped has shown every line it printed", async () => {
    const { stdout, cause } = await python(
      "import time\nfor i in range(3): print('line', i)\nprint('\\rdone: 5 %', end='')\ntime.sleep(30)",
      { limit: 500 },
    );
    expect(stdout).toBe("line 0\nline 1\nline 2\n\rdone: 5 %");
    expect(cause).toBe("wall_limit");
  });

  it("prints whole lines from several processes at once", async () => {
    const { stdout } = await python(
      [
        "from multiprocessing import Process",
        "def work(name):",
        "    for _ in range(300): print(name * 20)",
        "jobs = [Process(target=work, args=(c,)) for c in 'abcd']",
        "[job.start() for job in jobs]; [job.join() for job in jobs]",
      ].join("\n"),
    );
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(1200);
    expect(lines.filter((line) => !/^([abcd])\1{19}$/.test(line))).toEqual([]);
  });

  it("writes a flood of lines into a file in blocks", async () => {
    const { stdout } = await python(
      [
        "import os, subprocess, sys",
        "with open('out.txt', 'w') as out:",
        "    subprocess.run([sys.executable, '-c', 'for i in range(200000): print(i)'], stdout=out, check=True)",
        "print(sum(1 for _ in open('out.txt')))",
        "print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.stdout.line_buffering)'],",
        "    stdout=open('mode.txt', 'w'), check=True).returncode, open('mode.txt').read().strip())",
      ].join("\n"),
    );
    expect(stdout).toBe("200000\n0 False\n");
  });

  it("runs without a standard output or standard input", async () => {
    const { stdout } = await python(
      "import subprocess\nprint(subprocess.run('python3 -c \"import sys; sys.exit(9)\" >&- <&-', shell=True).returncode)",
    );
    expect(stdout).toBe("9\n");
  });
});

describe("the Python libraries", () => {
  it.each([
    "numpy pandas matplotlib.pyplot seaborn scipy.stats PIL.Image openpyxl",
    "sklearn.linear_model statsmodels.api sympy networkx",
    "docx pypdf reportlab.pdfgen.canvas xlsxwriter xlrd bs4 lxml.etree yaml jinja2 tabulate requests",
    "sqlite3 ssl ctypes decimal curses readline lzma bz2 zoneinfo",
  ])("import without a word: %s", async (names) => {
    const { stdout, stderr, exitCode } = await python(
      `import importlib, warnings\nwarnings.simplefilter("default")\nfor n in ${JSON.stringify(names)}.split(): importlib.import_module(n)\nprint("ok")`,
    );
    expect({ stdout, exitCode }).toEqual({ stdout: "ok\n", exitCode: 0 });
    expect(stderr.split("\n").filter((line) => !/DeprecationWarning|^\s|^$/.test(line))).toEqual([]);
  });

  it("write and read tables as Excel and CSV files", async () => {
    const { stdout, stderr, files } = await python(
      [
        "import pandas as pd",
        "frame = pd.DataFrame({'name': ['Zoë', '李'], 'value': [1.5, 2]})",
        "frame.to_excel('table.xlsx', index=False)",
        "frame.to_csv('table.csv', index=False)",
        "print(pd.read_excel('table.xlsx').equals(frame), pd.read_csv('table.csv').equals(frame))",
        "print(frame.groupby('name').sum().to_markdown())",
      ].join("\n"),
    );
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^True True\n\| name/);
    expect(files.get("table.xlsx")?.subarray(0, 4).toString("latin1")).toBe("PK\u0003\u0004");
  });

  it("write documents with reportlab", async () => {
    const { stderr, files } = await python(
      [
        "from reportlab.graphics.shapes import Drawing, Rect, String",
        "from reportlab.lib.styles import getSampleStyleSheet",
        "from reportlab.platypus import Paragraph, SimpleDocTemplate, Table",
        "drawing = Drawing(200, 100); drawing.add(Rect(1, 1, 50, 50)); drawing.add(String(10, 60, 'hello'))",
        "text = Paragraph('Hello <b>there</b>', getSampleStyleSheet()['Normal'])",
        "SimpleDocTemplate('a.pdf').build([text, Table([[1, 2]]), drawing])",
      ].join("\n"),
    );
    expect(stderr).toBe("");
    expect(files.get("a.pdf")?.toString("latin1", 0, 5)).toBe("%PDF-");
  });

  it("calculate in one thread", async () => {
    const { stdout } = await python(
      "import numpy as np, os\nnp.ones((600, 600)) @ np.ones((600, 600))\nprint(len(os.listdir('/proc/self/task')))",
    );
    expect(stdout).toBe("1\n");
  });

  it("find locales, time zones, TLS settings, the user and process pools", async () => {
    const { stdout, stderr } = await python(
      [
        "import getpass, locale, mimetypes, multiprocessing, os, pathlib, socket, ssl, tempfile, time, zoneinfo",
        "locale.setlocale(locale.LC_ALL, 'en_US.UTF-8'); print(f'{1234567:n}')",
        "print(zoneinfo.ZoneInfo('Europe/Berlin').key, time.tzname[0])",
        "print(ssl.create_default_context().verify_mode.name)",
        "print(getpass.getuser(), pathlib.Path.home(), socket.gethostbyname('localhost'), socket.getservbyname('https'))",
        "print(mimetypes.guess_type('a.xlsx')[0], tempfile.gettempdir())",
        "print(multiprocessing.Pool(2).map(abs, [-1, -2]))",
      ].join("\n"),
    );
    expect(stderr).toBe("");
    expect(stdout.split("\n")).toEqual([
      "1,234,567",
      "Europe/Berlin UTC",
      "CERT_REQUIRED",
      "sandbox /mnt/data 127.0.0.1 443",
      "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet /tmp",
      "[1, 2]",
      "",
    ]);
  });
});

describe("a zygote", () => {
  it.each(["sys.version_info = (3, 10, 9)", "sys.implementation.name = 'other'"])(
    "that would be none of the interpreter's says so and ends: %s",
    async (change) => {
      const code = `import sys; ${change}; sys.path.insert(0, "/usr/lib/svc/warm"); import _svc_zygote; _svc_zygote.serve([])`;
      const { stdout } = await python(
        `import subprocess, sys\nprint(subprocess.run([sys.executable, "-c", ${JSON.stringify(code)}], stderr=subprocess.STDOUT))`,
      );
      expect(stdout).toMatch(
        /^warm starts need CPython 3\.11 or later; programs start cold\n.*returncode=1\)\n$/,
      );
    },
  );
});
