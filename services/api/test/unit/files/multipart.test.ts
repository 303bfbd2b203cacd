import { boundaryOf, parsePartHeaders } from "@svc/api/files/multipart/part-headers";
import { type ChunkSource, MultipartReader } from "@svc/api/files/multipart/reader";
import { ServiceError } from "@svc/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const BOUNDARY = "--svc\r1";
const DELIMITER = `--${BOUNDARY}`;

function sourceOf(bytes: Buffer, sizes: readonly number[]): ChunkSource {
  let at = 0;
  let turn = 0;
  return {
    next: async () => {
      if (at >= bytes.length) return undefined;
      const size = sizes[turn++ % sizes.length] ?? bytes.length;
      at += size;
      return bytes.subarray(at - size, Math.min(at, bytes.length));
    },
  };
}

interface Collected {
  name: string | undefined;
  filename: string | undefined;
  body: string;
}

async function collect(form: Buffer | string, sizes: readonly number[] = [64]): Promise<Collected[]> {
  const reader = new MultipartReader(sourceOf(Buffer.from(form), sizes), BOUNDARY);
  const parts: Collected[] = [];
  for (;;) {
    const part = await reader.nextPart();
    if (part === undefined) return parts;
    const chunks: Buffer[] = [];
    for await (const chunk of part.body) chunks.push(chunk);
    parts.push({ name: part.name, filename: part.filename, body: Buffer.concat(chunks).toString("latin1") });
  }
}

function formOf(
  parts: readonly { headers?: string; body: Buffer | string }[],
  end = `${DELIMITER}--\r\n`,
): Buffer {
  const pieces = parts.flatMap(({ headers, body }) => [
    Buffer.from(
      `${DELIMITER}\r\n${headers ?? 'Content-Disposition: form-data; name="f"; filename="x"'}\r\n\r\n`,
    ),
    Buffer.from(body),
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...pieces, Buffer.from(end)]);
}

async function codeOf(operation: Promise<unknown> | (() => unknown)): Promise<string> {
  try {
    await (typeof operation === "function" ? operation() : operation);
    return "none";
  } catch (error) {
    return error instanceof ServiceError ? error.code : String(error);
  }
}

/** Bodies that are full of almost-delimiters. */
const tricky = fc
  .array(
    fc.constantFrom("\r", "\n", "-", "--", "\r\n--", `\r\n--${BOUNDARY.slice(0, 4)}`, "a", BOUNDARY, "\0"),
    {
      maxLength: 30,
    },
  )
  .map((pieces) => pieces.join(""))
  .filter((body) => !`\r\n${body}\r\n`.includes(`\r\n${DELIMITER}`));

describe("the multipart reader", () => {
  test("gives back every part byte by byte, however the form is cut into chunks", async () => {
    const bodies = fc.array(tricky, { maxLength: 5 });
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(bodies, sizes, async (parts, chunks) => {
        const collected = await collect(formOf(parts.map((body) => ({ body }))), chunks);
        expect(collected.map(({ body }) => body)).toEqual(parts);
      }),
      { numRuns: 400 },
    );
  });

  test("refuses every form that ends early, wherever it is cut off", async () => {
    const form = formOf([{ body: "one" }, { body: "two" }], `${DELIMITER}--`);
    for (let length = 0; length < form.length; length++) {
      expect(await codeOf(collect(form.subarray(0, length), [7]))).toBe("invalid_multipart");
    }
    expect(await collect(form, [7])).toHaveLength(2);
  });

  test("never fails otherwise than as invalid_multipart, whatever the bytes", async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        DELIMITER,
        "--",
        "\r\n",
        "\r\n\r\n",
        "Content-Disposition: form-data",
        "; name=",
        '"',
        ":",
        "\\",
      ),
      fc.string({ maxLength: 5 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 25 }), async (pieces) => {
        expect(["none", "invalid_multipart"]).toContain(await codeOf(collect(pieces.join(""), [3, 11])));
      }),
      { numRuns: 400 },
    );
  });

  test("skips preamble, epilogue, blanks behind a boundary, and bodies nobody reads", async () => {
    const form = `preamble\r\n${formOf([{ body: "skipped" }, { body: "read" }], `${DELIMITER}--\r\nepilogue`)}`;
    const padded = form.replaceAll(`${DELIMITER}\r\n`, `${DELIMITER} \t\r\n`);
    const reader = new MultipartReader(sourceOf(Buffer.from(padded), [5]), BOUNDARY);
    const first = await reader.nextPart();
    const second = await reader.nextPart();
    for await (const _ of first?.body ?? []) throw new Error("a body that is over gave bytes");
    let text = "";
    for await (const chunk of second?.body ?? []) text += chunk.toString();
    expect(text).toBe("read");
    expect(await reader.nextPart()).toBeUndefined();
    expect(await reader.nextPart()).toBeUndefined();
  });

  test("a form without parts is a form", async () => {
    expect(await collect(`${DELIMITER}--`)).toEqual([]);
  });

  test.each([
    ["text after a boundary", `${DELIMITER}x\r\n\r\n\r\n${DELIMITER}--`],
    ["endless blanks behind a boundary", `${DELIMITER}${" ".repeat(100_000)}`],
    ["endless headers", `${DELIMITER}\r\n${"x: y\r\n".repeat(10_000)}`],
    ["a part without headers", `${DELIMITER}\r\n\r\nbody\r\n${DELIMITER}--`],
    ["no boundary at all", "hello"],
    ["nothing", ""],
  ])("refuses %s", async (_name, form) => {
    expect(await codeOf(collect(form))).toBe("invalid_multipart");
  });

  test("does not read ahead of its consumer", async () => {
    let pulled = 0;
    const chunks = [`${DELIMITER}\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n`];
    const source = {
      next: async () => {
        pulled++;
        return Buffer.from(chunks.shift() ?? "x".repeat(1000));
      },
    };
    const part = await new MultipartReader(source, BOUNDARY).nextPart();
    const body = part?.body[Symbol.asyncIterator]();
    expect(pulled).toBe(1);
    await body?.next();
    expect(pulled).toBe(2);
    await body?.next();
    expect(pulled).toBe(3);
  });
});

describe("part headers", () => {
  const disposition = (text: string) => parsePartHeaders(Buffer.from(`Content-Disposition: ${text}`));

  test.each([
    ['form-data; name="file"; filename="a.txt"', "file", "a.txt"],
    ["FORM-DATA ; name=file ; filename=a.txt", "file", "a.txt"],
    ['form-data; name="file"', "file", undefined],
    ['form-data; name="file"; filename=""', "file", ""],
    ['form-data; name="f"; filename="dir/ünï 😀.csv"', "f", "dir/ünï 😀.csv"],
    ['form-data; name="f"; filename="a; b=c.txt"', "f", "a; b=c.txt"],
    ['form-data; name="f"; filename="say \\"hi\\".txt"', "f", 'say "hi".txt'],
    ['form-data; name="f"; filename="say %22hi%22 100%.txt"', "f", 'say "hi" 100%.txt'],
    ['form-data; name="f"; filename="a%0D%0Ab"', "f", "a\r\nb"],
    ['form-data; name="f"; filename="a%2Fb"', "f", "a%2Fb"],
    ['form-data; name="f"; filename="a\\b"', "f", "a\\b"],
    [`form-data; name="f"; filename="x"; filename*=UTF-8''d%C3%A4.txt`, "f", "dä.txt"],
    [`form-data; name="f"; filename*=utf-8'en'%e2%82%ac`, "f", "€"],
    [`form-data; name="f"; filename*=UTF-8''%ff`, "f", "\ufffd"],
    [`form-data; name="f"; filename*=latin1''%e4`, "f", "\ufffd"],
  ])("%s", (text, name, filename) => {
    expect(disposition(text)).toMatchObject({ name, filename });
  });

  test("a name that is not UTF-8 becomes one that no rule accepts", () => {
    const block = Buffer.from('Content-Disposition: form-data; name="f"; filename="d\xe4.txt"', "latin1");
    expect(parsePartHeaders(block).filename).toContain("\ufffd");
  });

  test("types are kept as given, folded lines are joined", () => {
    const block = 'content-type: text/csv; charset="x"\r\nContent-Disposition: form-data;\r\n name="f"';
    expect(parsePartHeaders(Buffer.from(block))).toEqual({
      name: "f",
      filename: undefined,
      contentType: 'text/csv; charset="x"',
    });
  });

  test.each([
    ["no disposition", "Content-Type: text/plain"],
    ["another disposition", 'Content-Disposition: attachment; filename="x"'],
    ["no colon", "Content-Disposition"],
    ["an empty header name", ': x\r\nContent-Disposition: form-data; name="f"'],
    ["a blank in a header name", 'Content Disposition: form-data; name="f"'],
    ["a bare line break", 'Content-Disposition: form-data; name="a\nb"'],
    ["a NUL", 'Content-Disposition: form-data; name="a\0b"'],
    ["an open quote", 'Content-Disposition: form-data; name="f'],
    ["text after a quote", 'Content-Disposition: form-data; name="f" x; filename="y"'],
    ["a parameter without value", "Content-Disposition: form-data; name"],
    ["a repeated parameter", 'Content-Disposition: form-data; name="f"; filename="a"; filename="b"'],
    [
      "a repeated header",
      'Content-Disposition: form-data; name="f"\r\nContent-Disposition: form-data; name="g"',
    ],
    ["base64", 'Content-Disposition: form-data; name="f"\r\nContent-Transfer-Encoding: base64'],
  ])("%s is refused", async (_name, block) => {
    expect(await codeOf(() => parsePartHeaders(Buffer.from(block)))).toBe("invalid_multipart");
  });

  test("a long hostile header is parsed in no time", async () => {
    const start = performance.now();
    for (const text of [
      `; a="${"\\".repeat(16_000)}`,
      ";".repeat(16_000),
      `; ${"a=b;".repeat(4000)}`,
      " ".repeat(16_000),
    ]) {
      await codeOf(() => disposition(`form-data${text}x`));
    }
    expect(performance.now() - start).toBeLessThan(1000);
  });
});

describe("the boundary", () => {
  test.each([
    ["multipart/form-data; boundary=abc", "abc"],
    ['Multipart/Form-Data;charset=utf-8; BOUNDARY="a b:c"', "a b:c"],
    [
      "multipart/form-data ; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
      "----WebKitFormBoundary7MA4YWxkTrZu0gW",
    ],
  ])("of %s", (header, boundary) => {
    expect(boundaryOf(header)).toBe(boundary);
  });

  test.each([
    [undefined, "invalid_content_type"],
    ["", "invalid_content_type"],
    ["application/json", "invalid_content_type"],
    ["multipart/form-datax; boundary=a", "invalid_content_type"],
    ["multipart/mixed; boundary=a", "invalid_content_type"],
    ["multipart/form-data", "invalid_multipart"],
    ["multipart/form-data; boundary=", "invalid_multipart"],
    [`multipart/form-data; boundary=${"a".repeat(201)}`, "invalid_multipart"],
    ["multipart/form-data; boundary=a; boundary=b", "invalid_multipart"],
  ])("%s is refused", async (header, code) => {
    expect(await codeOf(() => boundaryOf(header))).toBe(code);
  });
});
