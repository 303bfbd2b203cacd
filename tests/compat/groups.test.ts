/** At least one program of each package group, through the public API, in an image that has them all. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { Api, output } from "@svc/test-kit/system/api";
import { OPEN_LIMITS } from "@svc/test-kit/system/open-limits";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem({ env: { ...OPEN_LIMITS, SVC_PACKAGES: "data,documents,media" } });
  api = new Api(system.url);
});

afterAll(async () => {
  expect(await system?.stop()).toEqual([]);
});

const listOf = (group: string, file: string) =>
  readFileSync(join(ROOT, "runtimes/groups", group, file), "utf8")
    .split("\n")
    .map((line) => line.replace(/\s*#.*/, ""))
    .filter(Boolean);

/** What the program wrote, with nothing on standard error. */
async function run(lang: string, code: string) {
  const answer = await api.exec({ lang, code });
  expect(answer).toMatchObject({ code: 0, status: null, stderr: "" });
  return answer;
}

describe("data", () => {
  test("every Python package of the group can be imported", async () => {
    const modules =
      "altair dateparser geopandas h5py igraph nltk numba orjson pint plotly rapidfuzz regex shapely skimage sqlalchemy tqdm wordcloud xarray xgboost".split(
        " ",
      );
    const packages = listOf("data", "packages").filter((name) => name.startsWith("python3-"));
    expect(modules).toHaveLength(packages.length);
    for (const name of modules) {
      const answer = await api.exec({ lang: "py", code: `import ${name}` });
      expect([name, answer.code, answer.code === 0 ? "" : answer.stderr]).toEqual([name, 0, ""]);
    }
  });

  test("a model is fitted and a chart written", async () => {
    const answer = await run(
      "py",
      `import numpy as np, xgboost, plotly.graph_objects as go
x = np.arange(100.0).reshape(-1, 1)
model = xgboost.XGBRegressor(n_estimators=50).fit(x, 2 * x.ravel())
print(abs(model.predict(np.array([[50.0]]))[0] - 100) < 5)
go.Figure(go.Scatter(x=[1, 2], y=[3, 4])).write_html("chart.html", include_plotlyjs=False)`,
    );
    expect(answer.stdout).toBe("True\n");
    expect((await api.bytes(output(answer, "chart.html"))).toString()).toContain("scatter");
  });
});

describe("documents", () => {
  test("a document becomes a PDF whose text can be read, also in Japanese, and no other file is left", async () => {
    const answer = await run(
      "py",
      `import subprocess, pymupdf
document = pymupdf.open()
page = document.new_page()
page.insert_htmlbox(pymupdf.Rect(50, 50, 400, 200), "Grüße 日本語")
document.save("letter.pdf")
print(pymupdf.open("letter.pdf")[0].get_text().strip())
print(subprocess.run(["pdftotext", "letter.pdf", "-"], check=True, capture_output=True, text=True).stdout.strip())`,
    );
    expect(answer.stdout).toBe("Grüße 日本語\nGrüße 日本語\n");
    expect(answer.files.map(({ name }) => name).sort()).toEqual(["letter.pdf"]);
  });

  test("Node.js programs write a document and slides", async () => {
    const answer = await run(
      "js",
      `import { writeFileSync } from "node:fs";
import { Document, Packer, Paragraph } from "docx";
import PptxGenJS from "pptxgenjs";
const paragraph = new Paragraph("A letter");
writeFileSync("letter.docx", await Packer.toBuffer(new Document({ sections: [{ children: [paragraph] }] })));
const slides = new PptxGenJS();
slides.addSlide().addText("A slide", { x: 1, y: 1 });
await slides.writeFile({ fileName: "slides.pptx" });`,
    );
    for (const name of ["letter.docx", "slides.pptx"])
      expect((await api.bytes(output(answer, name))).subarray(0, 2).toString()).toBe("PK");
  });

  test("pandoc, Graphviz, Ghostscript, qpdf and tesseract work", async () => {
    const answer = await run(
      "bash",
      `printf '# Title\\n\\ntext\\n' | pandoc -t html
echo 'digraph { a -> b }' | dot -Tsvg | grep -c '<svg'
echo 'digraph { label="HELLO 42" fontsize=60 a }' | dot -Tpdf > text.pdf
qpdf --check text.pdf | grep -c 'No syntax'
gs -q -dNOPAUSE -dBATCH -sDEVICE=png16m -r100 -sOutputFile=text.png text.pdf
tesseract text.png - 2>/dev/null | grep -c 'HELLO 42'`,
    );
    expect(answer.stdout).toMatch(/^<h1 .*>Title<\/h1>\n<p>text<\/p>\n1\n1\n1\n$/);
  });
});

describe("media", () => {
  test("sound and film are made, measured and read", async () => {
    const answer = await run(
      "bash",
      `sox -n tone.wav synth 1 sine 440
ffmpeg -v error -f lavfi -i testsrc=size=64x64:rate=5:duration=2 -i tone.wav -shortest film.mp4
ffprobe -v error -show_entries stream=codec_type -of csv=p=0 film.mp4 | sort
python3 -c 'import cv2; film = cv2.VideoCapture("film.mp4"); print(film.read()[1].shape)'
magick -size 20x10 xc:red red.png && identify -format '%wx%h\\n' red.png
exiftool -s3 -ImageSize red.png
mediainfo --Inform='Audio;%SamplingRate%' tone.wav`,
    );
    expect(answer.stdout).toBe("audio\nvideo\n(64, 64, 3)\n20x10\n20x10\n48000\n");
  });

  test("every Python package of the group can be imported", async () => {
    await run("py", "import cv2, imageio, moviepy, mutagen, soundfile");
  });
});

test("callers are told of the commands of the groups", async () => {
  const answer = await api.send("GET", "/languages");
  const { languages } = answer.ok<{ languages: { commands: string[] }[] }>();
  const wanted = ["documents", "media"].flatMap((group) => listOf(group, "commands"));
  expect(languages[0]?.commands).toEqual(expect.arrayContaining(wanted));
  const text = await api.send("GET", "/languages?format=text");
  expect(text.bytes.length).toBeLessThan(4096);
});
