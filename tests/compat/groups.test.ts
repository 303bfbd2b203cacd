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

  test("tables of places, of grids and of a database are written and read", async () => {
    const answer = await run(
      "py",
      `import geopandas, h5py, numpy as np, pandas as pd, sqlalchemy, xarray
from shapely.geometry import Point
places = geopandas.GeoDataFrame({"name": ["a", "b"]}, geometry=[Point(0, 0), Point(1, 1)], crs="EPSG:4326")
places.to_crs(3857).to_file("places.geojson", driver="GeoJSON")
print(round(geopandas.read_file("places.geojson").geometry[1].x))
xarray.DataArray(np.ones((2, 3)), name="ones").to_netcdf("grid.nc")
print(xarray.open_dataset("grid.nc").ones.sum().item())
with h5py.File("array.h5", "w") as file: file["data"] = np.arange(3)
print(h5py.File("array.h5")["data"][:].sum())
engine = sqlalchemy.create_engine("sqlite:///table.db")
pd.DataFrame({"a": [1, 2]}).to_sql("numbers", engine)
print(pd.read_sql("select sum(a) as a from numbers", engine).a[0])`,
    );
    expect(answer.stdout).toBe("111319\n6.0\n3\n3\n");
  });

  test("text, units, graphs and pictures are worked on, and a loop is compiled", async () => {
    const answer = await run(
      "py",
      `import dateparser, igraph, nltk, numba, numpy as np, orjson, pint, rapidfuzz, regex, skimage.filters
from wordcloud import WordCloud
@numba.njit
def total(n):
    t = 0
    for i in range(n): t += i
    return t
print(total(1000), skimage.filters.sobel(np.eye(9)).shape, igraph.Graph.Ring(5).diameter(), nltk.PorterStemmer().stem("running"))
print(orjson.dumps(np.arange(2), option=orjson.OPT_SERIALIZE_NUMPY), regex.findall(r"\\p{L}+", "ab 1"), rapidfuzz.fuzz.ratio("ab", "ab"))
print(dateparser.parse("5 January 2020").date(), (3 * pint.UnitRegistry().meter).to("cm"))
WordCloud().generate("hello hello world").to_file("words.png")`,
    );
    expect(answer.stdout).toBe("499500 (9, 9) 2 run\nb'[0,1]' ['ab'] 100.0\n2020-01-05 300.0 centimeter\n");
    expect(answer.files.map(({ name }) => name)).toEqual(["words.png"]);
  });

  test("models are fitted and charts written", async () => {
    const answer = await run(
      "py",
      `import altair, numpy as np, pandas as pd, statsmodels.formula.api as smf, sys, xgboost, plotly.express as px, plotly.graph_objects as go
from tqdm import tqdm
for _ in tqdm(range(3), file=sys.stdout, bar_format="{n_fmt}/{total_fmt}"): pass
print()
x = np.arange(100.0).reshape(-1, 1)
model = xgboost.XGBRegressor(n_estimators=50).fit(x, 2 * x.ravel())
print(abs(model.predict(np.array([[50.0]]))[0] - 100) < 5)
frame = pd.DataFrame({"x": x.ravel(), "y": 2 * x.ravel() + np.sin(x.ravel())})
print(round(smf.ols("y ~ x", frame).fit().params["x"], 1))
px.line(frame, x="x", y="y").write_json("chart.json")
altair.Chart(frame).mark_line().encode(x="x", y="y").save("altair.html")
go.Figure(go.Scatter(x=[1, 2], y=[3, 4])).write_html("chart.html", include_plotlyjs=False)`,
    );
    expect(answer.stdout).toMatch(/3\/3\s+True\n2\.0\n$/);
    expect(answer.files.map(({ name }) => name).sort()).toEqual(["altair.html", "chart.html", "chart.json"]);
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
document.subset_fonts(fallback=True)
document.save("letter.pdf", garbage=3, deflate=True)
print(pymupdf.open("letter.pdf")[0].get_text().strip())
print(subprocess.run(["pdftotext", "letter.pdf", "-"], check=True, capture_output=True, text=True).stdout.strip())`,
    );
    expect(answer.stdout).toBe("Grüße 日本語\nGrüße 日本語\n");
    expect(answer.files.map(({ name }) => name).sort()).toEqual(["letter.pdf"]);
  });

  test("LibreOffice makes PDF of a document and of slides, and CSV of a table, and leaves no other file", async () => {
    const answer = await run(
      "bash",
      `set -e
python3 - <<'END'
import docx, openpyxl
letter = docx.Document()
letter.add_paragraph("Grüße 日本語")
letter.save("letter.docx")
book = openpyxl.Workbook()
book.active.append([1, "=A1*2"])
book.save("table.xlsx")
END
node --input-type=module - <<'END'
import PptxGenJS from "pptxgenjs";
const slides = new PptxGenJS();
slides.addSlide().addText("A slide", { x: 1, y: 1, w: 4, h: 1 });
await slides.writeFile({ fileName: "slides.pptx" });
END
soffice --headless --convert-to pdf letter.docx slides.pptx >/tmp/log
libreoffice --headless --convert-to csv --outdir out table.xlsx >/tmp/log
pdftotext letter.pdf - | head -1
pdffonts letter.pdf | grep -c CJK
pdftotext slides.pdf - | head -1
cat out/table.csv`,
    );
    expect(answer.stdout).toBe("Grüße 日本語\n1\nA slide\n1,2\n");
    expect(answer.files.map(({ name }) => name).sort()).toEqual([
      "letter.docx",
      "letter.pdf",
      "out/table.csv",
      "slides.pdf",
      "slides.pptx",
      "table.xlsx",
    ]);
  });

  test("figures have the letters of East Asia, without and with a font named", async () => {
    const answer = await run(
      "py",
      `import matplotlib.pyplot as plt
plt.title("日本語 中文 한국어")
plt.savefig("default.png")
plt.rcParams["font.family"] = "Noto Sans CJK SC"
plt.title("中文")
plt.savefig("chinese.png")`,
    );
    // A letter that no font has, and a font that is not there, are told on standard error.
    expect(answer.files.map(({ name }) => name).sort()).toEqual(["chinese.png", "default.png"]);
  });

  test("every Python package of the group does its work", async () => {
    const answer = await run(
      "py",
      `import cairosvg, docx, docxtpl, fitz, graphviz, markdown, pikepdf, qrcode, weasyprint
from ebooklib import epub
from fpdf import FPDF
from odf.opendocument import OpenDocumentText
from odf.text import P
from pdfminer.high_level import extract_text
from reportlab.graphics import renderPDF
from svglib.svglib import svg2rlg
pdf = FPDF()
pdf.add_page()
pdf.set_font("Helvetica", size=20)
pdf.cell(text="FPDF")
pdf.output("fpdf.pdf")
twice = pikepdf.open("fpdf.pdf")
twice.pages.extend(twice.pages)
twice.save("twice.pdf")
print(extract_text("fpdf.pdf").strip(), len(fitz.open("twice.pdf")))
weasyprint.HTML(string=markdown.markdown("# Title")).write_pdf("page.pdf")
print(fitz.open("page.pdf")[0].get_text().strip())
template = docx.Document()
template.add_paragraph("Dear {{ name }}")
template.save("letter.docx")
letter = docxtpl.DocxTemplate("letter.docx")
letter.render({"name": "Ada"})
letter.save("letter.docx")
print(docx.Document("letter.docx").paragraphs[0].text)
text = OpenDocumentText()
text.text.addElement(P(text="x"))
text.save("text.odt")
book = epub.EpubBook()
book.add_item(epub.EpubHtml(title="c", file_name="c.xhtml", content="<p>x</p>"))
epub.write_epub("book.epub", book)
open("square.svg", "w").write('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="5" height="5"/></svg>')
renderPDF.drawToFile(svg2rlg("square.svg"), "square.pdf")
cairosvg.svg2png(url="square.svg", write_to="square.png")
qrcode.make("x").save("code.png")
graphviz.Digraph(body=["a->b"]).render("graph", format="png", cleanup=True)`,
    );
    expect(answer.stdout).toBe("FPDF 2\nTitle\nDear Ada\n");
    expect(answer.files.map(({ name }) => name).sort()).toEqual(
      "book.epub code.png fpdf.pdf graph.png letter.docx page.pdf square.pdf square.png square.svg text.odt twice.pdf".split(
        " ",
      ),
    );
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

  test("pandoc, Graphviz, qpdf, Ghostscript with the standard fonts, and tesseract work", async () => {
    const answer = await run(
      "bash",
      `printf '# Title\\n\\ntext\\n' | pandoc -t html
echo 'digraph { a -> b }' | dot -Tsvg | grep -c '<svg'
python3 -c '
from reportlab.pdfgen.canvas import Canvas
page = Canvas("text.pdf")
page.setFont("Helvetica", 60)
page.drawString(50, 500, "HELLO 42")
page.save()'
qpdf --check text.pdf | grep -c 'No syntax'
gs -q -dNOPAUSE -dBATCH -sDEVICE=png16m -r100 -sOutputFile=text.png text.pdf
tesseract text.png - 2>/dev/null | grep -c 'HELLO 42'
pdftoppm -png -r 100 text.pdf page && tesseract page-1.png - 2>/dev/null | grep -c 'HELLO 42'
for kind in docx odt epub; do echo '# Title' | pandoc --metadata title=x -o text.$kind && pandoc -t plain text.$kind | grep -c Title; done
echo '# Title' | pandoc -o text.pptx && unzip -p text.pptx 'ppt/slides/*' | grep -c '>Title<'
echo '# Title' | pandoc --metadata title=x --pdf-engine=weasyprint -o pandoc.pdf 2>/dev/null && pdftotext pandoc.pdf - | grep -c Title`,
    );
    expect(answer.stdout).toMatch(/^<h1 .*>Title<\/h1>\n<p>text<\/p>\n(1\n){9}$/);
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

  test("Python programs draw, find, cut and listen", async () => {
    const answer = await run(
      "py",
      `import contextlib, io, subprocess
import cv2, imageio.v3, moviepy, mutagen, numpy as np, soundfile
picture = np.zeros((200, 300, 3), np.uint8)
cv2.circle(picture, (150, 100), 50, (0, 255, 0), -1)
edges = cv2.Canny(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), 50, 150)
print(len(cv2.findContours(edges, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)[0]))
cv2.imwrite("circle.png", picture)
imageio.v3.imwrite("two.gif", [picture, picture[::-1]])
soundfile.write("tone.flac", np.sin(np.arange(44100) / 20), 44100)
print(soundfile.read("tone.flac")[0].shape, mutagen.File("tone.flac").info.length)
with contextlib.redirect_stdout(io.StringIO()):
    clip = moviepy.ColorClip((64, 48), color=(255, 0, 0), duration=2).subclipped(0, 1)
    clip.write_videofile("red.mp4", fps=5, logger=None)
print(cv2.VideoCapture("red.mp4").get(cv2.CAP_PROP_FRAME_COUNT))`,
    );
    expect(answer.stdout).toBe("1\n(44100,) 1.0\n5.0\n");
    expect(answer.files.map(({ name }) => name).sort()).toEqual([
      "circle.png",
      "red.mp4",
      "tone.flac",
      "two.gif",
    ]);
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
