import { describe, expect, it } from "vitest";
import { run } from "./support/program.ts";

const plot = (lines: string[], files: Record<string, string> = {}) =>
  run("python", { code: ["import matplotlib.pyplot as plt", ...lines].join("\n"), files });

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const isPng = (bytes: Buffer | undefined) =>
  bytes?.subarray(0, 8).equals(PNG) === true && bytes.length > 1000;

describe("plt.show()", () => {
  it("saves each open figure in the order of their numbers and closes it", async () => {
    const { stdout, stderr, files } = await plot([
      "plt.figure(2, figsize=(2, 1)); plt.plot([1, 2])",
      "plt.figure(1, figsize=(1, 2)); plt.plot([2, 1])",
      "plt.show()",
      "print(plt.get_fignums())",
      "from PIL import Image",
      "print(Image.open('plot_1.png').size, Image.open('plot_2.png').size)",
      "plt.show()",
    ]);
    expect({ stdout, stderr }).toEqual({ stdout: "[]\n(100, 200) (200, 100)\n", stderr: "" });
    expect([...files.keys()].sort()).toEqual(["plot_1.png", "plot_2.png"]);
    expect([...files.values()].every(isPng)).toBe(true);
  });

  it("counts on after the highest number in the working directory", async () => {
    const old = { "plot_7.png": "mine", "plot_x.png": "", "plot_12.png.txt": "", "sub/plot_40.png": "" };
    const { files } = await plot(["for _ in range(2):", "    plt.plot([1, 2]); plt.show()"], old);
    expect([...files.keys()]).toEqual(["plot_8.png", "plot_9.png"]);
  });

  it("follows the program into another working directory", async () => {
    const { files } = await plot([
      "import os",
      "os.mkdir('charts'); os.chdir('charts')",
      "plt.plot([1]); plt.show()",
    ]);
    expect(isPng(files.get("charts/plot_1.png"))).toBe(true);
  });

  it("gives processes that show at the same time a number each", async () => {
    const { files, stderr } = await plot([
      "from multiprocessing import Pool",
      "def draw(n):",
      "    plt.plot([n]); plt.show()",
      "with Pool(4) as pool: pool.map(draw, range(8), chunksize=1)",
    ]);
    expect(stderr).toBe("");
    expect([...files.keys()].sort()).toEqual(Array.from({ length: 8 }, (_, n) => `plot_${n + 1}.png`));
    expect([...files.values()].every(isPng)).toBe(true);
  });

  it("leaves nothing behind when a figure cannot be drawn, and the program sees the error", async () => {
    const { files, stdout } = await plot([
      "plt.title('$\\\\notatexcommand{$')",
      "try: plt.show()",
      "except ValueError as error: print('refused')",
    ]);
    expect(stdout).toBe("refused\n");
    expect([...files.keys()]).toEqual([]);
  });

  it.each([
    ["from matplotlib import pyplot", "pyplot.plot([1]); pyplot.show(block=False)"],
    ["from pylab import *", "plot([1]); show()"],
    [
      "import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as p",
      "p.plot([1]); p.show(block=True)",
    ],
    ["import matplotlib; matplotlib.use('TkAgg'); import matplotlib.pyplot as p", "p.plot([1]); p.show()"],
    ["import seaborn as sns, matplotlib.pyplot as p", "sns.histplot([1, 2, 2]); p.show()"],
    ["import pandas as pd, matplotlib.pyplot as p", "pd.Series([1, 2]).plot(); p.show()"],
    ["import importlib", "p = importlib.import_module('matplotlib.pyplot'); p.plot([1]); p.ion(); p.show()"],
  ])("works however it is reached: %s", async (imports, code) => {
    const { files, stderr, exitCode } = await run("python", { code: `${imports}\n${code}` });
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect([...files.keys()]).toEqual(["plot_1.png"]);
  });

  it("works for a python3 started by a shell with an empty environment", async () => {
    const { files, stderr } = await run("bash", {
      code: "env -i /usr/bin/python3 - <<'E'\nimport matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nE",
    });
    expect(stderr).toBe("");
    expect([...files.keys()]).toEqual(["plot_1.png"]);
  });
});

describe("matplotlib", () => {
  it("draws with Agg, says nothing, and makes no directory in the workspace", async () => {
    const { stdout, stderr } = await plot([
      "import matplotlib, os",
      "print(matplotlib.get_backend().lower())",
      "fig, ax = plt.subplots(); ax.set_title('Größe λ → ∞'); fig.show(); plt.draw(); plt.pause(0.01)",
      "print(matplotlib.get_configdir(), matplotlib.get_cachedir(), sorted(os.listdir()))",
    ]);
    expect(stdout).toBe(
      "agg\n/mnt/data/.config/matplotlib /mnt/data/.cache/matplotlib ['main.py', 'plot_1.png']\n",
    );
    expect(stderr).toBe("");
  });

  it("reads its font list from the image instead of making one", async () => {
    const { stdout } = await run("python", {
      code: [
        "import sys",
        "def watch(event, args):",
        "    if event == 'open' and 'fontlist' in str(args[0]): print(args[0], args[1])",
        "    if event == 'subprocess.Popen': print('started', args[0])",
        "sys.addaudithook(watch)",
        "from matplotlib import font_manager",
        "print(font_manager.findfont('DejaVu Sans', fallback_to_default=False).endswith('DejaVuSans.ttf'))",
      ].join("\n"),
    });
    expect(stdout).toMatch(/^\/usr\/share\/matplotlib\/fontlist-v\d+\.json r\nTrue\n$/);
  });

  it("saves PNG, SVG and PDF files", async () => {
    const { files, stderr } = await plot([
      "plt.plot([1, 2]); plt.xlabel('x')",
      "for kind in ('png', 'svg', 'pdf'): plt.savefig('chart.' + kind)",
    ]);
    expect(stderr).toBe("");
    expect(isPng(files.get("chart.png"))).toBe(true);
    expect(files.get("chart.svg")?.toString()).toContain("<svg");
    expect(files.get("chart.pdf")?.subarray(0, 5).toString()).toBe("%PDF-");
  });

  it("respects a configuration that the program brings", async () => {
    const { stdout } = await plot(["print(plt.rcParams['figure.dpi'])"], {
      ".config/matplotlib/matplotlibrc": "figure.dpi: 50\nbackend: TkAgg\n",
    });
    expect(stdout).toBe("50.0\n");
  });
});
