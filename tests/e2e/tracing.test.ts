/**
 * Tracing through the whole system, in both topologies, with a receiver of the test's own: one trace for a request, from
 * the API to the jail, and nothing of what callers send in it. A receiver that is slow or away costs spans and nothing else.
 */

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundleOf } from "@svc/cli/components";
import { SERVICE_PROCESSES } from "@svc/cli/topology";
import { Api } from "@svc/test-kit/system/api";
import { freePort } from "@svc/test-kit/system/free-ports";
import { IN_GUESTS, RUNNER } from "@svc/test-kit/system/guests";
import { OtlpReceiver, type ReceivedSpan } from "@svc/test-kit/system/otlp-receiver";
import { declare, driveOn, startPaused } from "@svc/test-kit/system/programmatic";
import { type System, startSystem } from "@svc/test-kit/system/system";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const newTraceId = () => randomBytes(16).toString("hex");
const SPAN_ID = "00f067aa0ba902b7";
const from = (traceId: string, flags = "01", more: Record<string, string> = {}) => ({
  headers: { traceparent: `00-${traceId}-${SPAN_ID}-${flags}`, ...more },
});
/** In the order of time. What a guest's own runner does is part of its run. */
const STAGES = IN_GUESTS
  ? ["jail.setup", "jail.run"]
  : ["jail.setup", "stage", "jail.run", "collect", "store"];
const RESUMED_STAGES = STAGES.slice(STAGES.indexOf("jail.run"));
/** Spans of an execution that stores a file: each with its component, its parent and the parent's component. */
const WHOLE = [
  "api: POST /v1/exec, below the caller",
  "egress-gateway: gateway.register, below gateway.register of worker",
  ...STAGES.map((stage) => `${RUNNER}: ${stage}, below runner.execute of ${RUNNER}`),
  `${RUNNER}: runner.execute, below runner.execute of worker`,
  "worker: gateway.register, below worker.run of worker",
  "worker: queue, below POST /v1/exec of api",
  "worker: runner.execute, below worker.run of worker",
  "worker: worker.run, below POST /v1/exec of api",
].sort();
/** Of clocks that tell whole milliseconds, and of two processes. */
const CLOCK_MS = 2;

function shape(spans: readonly ReceivedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const place = ({ parentSpanId }: ReceivedSpan) => {
    if (parentSpanId === undefined) return "first";
    const parent = byId.get(parentSpanId);
    if (parent !== undefined) return `below ${parent.name} of ${parent.service}`;
    return parentSpanId === SPAN_ID ? "below the caller" : "below nothing";
  };
  return spans.map((span) => `${span.service}: ${span.name}, ${place(span)}`).sort();
}

test("bundles of components do not contain the SDK of tracing, which has its own", () => {
  const mark = /OTLPTraceExporter/;
  for (const name of SERVICE_PROCESSES) expect(readFileSync(bundleOf(name), "utf8")).not.toMatch(mark);
  expect(readFileSync(join(bundleOf("api"), "../tracing-sdk.mjs"), "utf8")).toMatch(mark);
});

describe.each([
  { SVC_TOPOLOGY: "combined", PTC_MODE: "live" },
  { SVC_TOPOLOGY: "separate", PTC_MODE: "replay" },
])("$SVC_TOPOLOGY, $PTC_MODE", ({ SVC_TOPOLOGY, PTC_MODE }) => {
  const receiver = new OtlpReceiver();
  let port: number;
  let system: System;
  let api: Api;

  beforeAll(async () => {
    port = await freePort();
    await receiver.listen(port);
    const env = {
      SVC_TOPOLOGY,
      PTC_MODE,
      OTEL_TRACING_ENABLED: "true",
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-receiver-token=of%20the%20receiver",
      OTEL_EXPORTER_OTLP_TIMEOUT: "1000",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
      OTEL_BSP_SCHEDULE_DELAY: "50",
    };
    system = await startSystem({ env });
    api = new Api(system.url);
  });
  afterAll(async () => {
    receiver.mode = "takes";
    expect(await system.stop()).toEqual([]);
    await receiver.close();
  });

  /** The spans of a trace, once as many as that have come. */
  async function spansOf(traceId: string, count: number): Promise<ReceivedSpan[]> {
    await expect.poll(() => receiver.ofTrace(traceId).length).toBeGreaterThanOrEqual(count);
    return receiver.ofTrace(traceId);
  }

  /** The spans of a trace, once those of these names have come: each component sends its own. */
  async function spansWith(traceId: string, ...names: string[]): Promise<ReceivedSpan[]> {
    const come = () => receiver.ofTrace(traceId).map(({ name }) => name);
    await expect.poll(come).toEqual(expect.arrayContaining(names));
    return receiver.ofTrace(traceId);
  }

  /** Runs a program until all its spans have come. A grant that was prefetched is registered in no request. */
  async function wholeTrace(): Promise<ReceivedSpan[]> {
    const traceId = newTraceId();
    const file = await api.stage("input.txt", "the input");
    const code = "open('made.txt', 'w').write(open('input.txt').read())";
    await api.exec({ lang: "py", code, files: [file] }, from(traceId, "01", { tracestate: "vendor=1" }));
    return spansOf(traceId, WHOLE.length);
  }

  test("an execution is one trace below the caller's span, from the API to the jail", async () => {
    const spans = await wholeTrace();
    expect(shape(spans)).toEqual(WHOLE);
    expect(new Set(spans.map(({ tracestate }) => tracestate))).toEqual(new Set(["vendor=1"]));
    expect(new Set(spans.map(({ isError }) => isError))).toEqual(new Set([false]));
  });

  test("the lines of an execution in the logs name its trace", async () => {
    const traceId = newTraceId();
    await api.exec({ lang: "bash", code: "" }, from(traceId));
    const named = (component: string, text: string) =>
      readFileSync(join(system.instance.logsDir, `${component}.log`), "utf8")
        .split("\n")
        .filter((line) => line.includes(`"msg":"${text}"`) && line.includes(`"trace_id":"${traceId}"`))
        .length;
    const lines = () => [named("api", "request"), named("worker", "run"), named(RUNNER, "run")];
    await expect.poll(lines).toEqual([1, 1, 1]);
  });

  test("its times lie within those of its request, and stages follow one another", async () => {
    const spans = await wholeTrace();
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    for (const span of spans) {
      const parent = byId.get(span.parentSpanId ?? "");
      expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
      if (parent === undefined) continue;
      expect(span.startMs, span.name).toBeGreaterThanOrEqual(parent.startMs - CLOCK_MS);
      expect(span.endMs, span.name).toBeLessThanOrEqual(parent.endMs + CLOCK_MS);
    }
    const times = STAGES.flatMap((stage) =>
      spans.filter(({ name }) => name === stage).flatMap(({ startMs, endMs }) => [startMs, endMs]),
    );
    expect(times).toHaveLength(2 * STAGES.length);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  test("spans say which execution, which language and how it ended", async () => {
    const traceId = newTraceId();
    await api.exec({ lang: "bash", code: "exit 3" }, from(traceId));
    const spans = await spansWith(traceId, "POST /v1/exec", "worker.run");
    const run = { "svc.outcome": "program_error", "svc.language": "bash", "svc.exec_id": expect.any(String) };
    for (const name of ["POST /v1/exec", "worker.run"]) {
      expect(spans.find((span) => span.name === name)).toMatchObject({ attributes: run, isError: false });
    }
    const request = spans.find(({ name }) => name === "POST /v1/exec");
    expect(request?.attributes).toMatchObject({
      "http.request.method": "POST",
      "http.route": "/v1/exec",
      "http.response.status_code": 200,
    });
    expect(request?.resource).toMatchObject({
      "service.version": expect.any(String),
      "service.instance.id": expect.any(String),
      "deployment.environment.name": "test",
    });
    expect(new Set(spans.map(({ attributes }) => attributes["svc.exec_id"]).filter(Boolean)).size).toBe(1);
    expect(receiver.headers["x-receiver-token"]).toBe("of the receiver");
  });

  test("a refusal is a span without a fault of the service; one that begins a trace has no parent", async () => {
    const before = receiver.spans.length;
    const { refusal } = await api.tryExec({ lang: "py", code: 1 });
    const own = () => receiver.spans.slice(before).filter(({ service }) => service === "api");
    await expect.poll(own).toHaveLength(1);
    expect(own()[0]).toMatchObject({
      parentSpanId: undefined,
      isError: false,
      attributes: {
        "error.type": refusal.error,
        "svc.outcome": "bad_request",
        "http.response.status_code": 400,
      },
    });
  });

  test.each([
    ["another version's end", (id: string) => `00-${id}-${SPAN_ID}-01-more`],
    ["the version that is none", (id: string) => `ff-${id}-${SPAN_ID}-01`],
    ["capitals", (id: string) => `00-${id.toUpperCase()}-${SPAN_ID}-01`],
    ["no span", (id: string) => `00-${id}-0000000000000000-01`],
    ["a short id", (id: string) => `00-${id.slice(1)}-${SPAN_ID}-01`],
    ["code", (id: string) => `00-${id}-${SPAN_ID}-01\u0027;DROP`],
    ["two of them", (id: string) => `00-${id}-${SPAN_ID}-01, 00-${id}-${SPAN_ID}-01`],
    ["kilobytes", (id: string) => `00-${id}-${SPAN_ID}-01${"0".repeat(8000)}`],
  ])(
    "a hostile traceparent, %s, is ignored: the request is served, in a trace of its own",
    async (_, write) => {
      // Letters in it, so that capitals are others.
      const id = `abcdef${newTraceId().slice(6)}`;
      const before = receiver.spans.length;
      const { stdout } = await api.exec(
        { lang: "bash", code: "echo served" },
        { headers: { traceparent: write(id), tracestate: "vendor=1" } },
      );
      expect(stdout).toBe("served\n");
      const requests = () => receiver.spans.slice(before).filter(({ name }) => name === "POST /v1/exec");
      await expect.poll(requests).toHaveLength(1);
      expect(requests()[0]).toMatchObject({ parentSpanId: undefined });
      expect(requests()[0]?.tracestate ?? "").toBe("");
      expect(receiver.sent.toLowerCase()).not.toContain(id);
    },
  );

  test("a tracestate that is too long goes no further; a trace that its caller does not keep is not sent", async () => {
    const [long, unkept] = [newTraceId(), newTraceId()];
    await api.exec({ lang: "bash", code: "" }, from(unkept, "00"));
    await api.exec({ lang: "bash", code: "" }, from(long, "01", { tracestate: `vendor=${"x".repeat(600)}` }));
    const spans = await spansWith(long, "POST /v1/exec", "worker.run", "jail.run");
    expect(spans.every(({ tracestate }) => !tracestate)).toBe(true);
    expect(receiver.ofTrace(unkept)).toEqual([]);
  });

  test("a program sees nothing of its trace", async () => {
    const traceId = newTraceId();
    const look = "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; env; ls -la /mnt/data";
    const { stdout } = await api.exec({ lang: "bash", code: look }, from(traceId));
    expect(stdout).toContain("HOME=/mnt/data");
    expect(stdout).not.toMatch(new RegExp(`${traceId}|traceparent|OTEL_`, "i"));
  });

  test("a program with tools: its resume is a trace of its own, with a link to the trace of the start", async () => {
    const [start, resume] = [newTraceId(), newTraceId()];
    const code = "print(await secret_tool(word='secret-argument'))";
    const tools = declare(["secret_tool"]);
    const paused = await startPaused(api, { code, language: "python", tools }, from(start));
    const how = from(resume);
    const { answer } = await driveOn(api, paused, { secret_tool: () => "secret-result" }, how);
    expect(answer).toMatchObject({ status: "completed", stdout: "secret-result\n" });
    const named = (spans: readonly ReceivedSpan[], name: string) => spans.find((span) => span.name === name);
    const request = "POST /v1/exec/programmatic";
    const ofStart = await spansWith(start, request, "worker.run");
    const ofResume = await spansWith(resume, request, "worker.run", ...RESUMED_STAGES);
    expect(named(ofStart, request)).toMatchObject({ links: [], attributes: { "svc.outcome": "paused" } });
    expect(named(ofResume, request)).toMatchObject({
      links: [{ traceId: start, spanId: named(ofStart, request)?.spanId }],
      attributes: { "svc.outcome": "success" },
    });
    expect(named(ofStart, "worker.run")?.attributes["svc.round"]).toBe("start");
    expect(named(ofResume, "worker.run")?.attributes["svc.round"]).toBe(
      PTC_MODE === "live" ? "resume" : "replay",
    );
    expect(receiver.sent).not.toMatch(/secret[-_](tool|argument|result)/);
    expect(receiver.sent).not.toContain(paused.continuation_token);
  });

  test("no code, names, contents, arguments, variables, users or secrets are in what is sent", async () => {
    const traceId = newTraceId();
    const words = [
      "hidden-name",
      "hidden-content",
      "hidden-code",
      "hidden-argument",
      "hidden-input",
      "hidden-user",
    ];
    const file = await api.stage("hidden-name.txt", "hidden-content");
    await api.exec(
      {
        lang: "bash",
        code: "cat hidden-name.txt > hidden-name-made.txt; echo hidden-code; exit 7",
        args: ["hidden-argument"],
        stdin: "hidden-input",
        user_id: "hidden-user",
        files: [file],
      },
      from(traceId, "01", { "x-request-id": "hidden-name", cookie: "hidden-content" }),
    );
    await spansOf(traceId, WHOLE.length);
    expect(words.filter((word) => receiver.sent.includes(word))).toEqual([]);
    const secrets = readFileSync(join(system.instance.dataDir, "secrets.env"), "utf8").trim().split("\n");
    expect(secrets.length).toBeGreaterThan(2);
    for (const line of secrets) expect(receiver.sent).not.toContain(line.slice(line.indexOf("=") + 1));
    expect(receiver.sent).not.toContain(system.instance.dataDir);
    expect(receiver.sent).not.toContain(file.id);
  });

  describe("a receiver", () => {
    const served = async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => api.exec({ lang: "bash", code: "echo served" })),
      );
      expect(answers.map(({ stdout }) => stdout)).toEqual(Array(8).fill("served\n"));
    };
    const logged = (text: string) =>
      readFileSync(join(system.instance.logsDir, "api.log"), "utf8").split(text).length - 1;

    test("that hangs, refuses, or is away costs no request; the log tells it once, and when it is back", async () => {
      receiver.mode = "hangs";
      const { requests } = receiver;
      await served();
      await expect.poll(() => receiver.requests).toBeGreaterThan(requests);
      await served();
      receiver.mode = "refuses";
      await served();
      await receiver.close();
      await served();
      await expect.poll(() => logged('"spans were dropped"')).toBeGreaterThan(0);
      const told = logged('"spans were dropped"');
      await served();
      expect(logged('"spans were dropped"')).toBe(told);
      await receiver.listen(port);
      receiver.mode = "takes";
      const traceId = newTraceId();
      await api.exec({ lang: "bash", code: "" }, from(traceId));
      await expect.poll(() => receiver.ofTrace(traceId).length).toBeGreaterThan(0);
      await expect.poll(() => logged('"spans are exported again"')).toBeGreaterThan(0);
    });
  });
});
